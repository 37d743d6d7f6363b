# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which checks a gate asks, what it knows of the hosts, and how it speaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import facts_finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known, known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS, compared, merged, verdict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import nccl_differs, nccl_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import up_to
from tests.unit.builders.hosts import lab_facts, lab_intent, lab_rails, on_host
from tests.unit.builders.known import known_of

NODES = (1, 2, 3, 4)


def lab() -> dict[str, Any]:
    """What a gate knows of the lab."""
    return {f"node{node}": {"intent": lab_intent(node), "facts": comparable(lab_facts(node))} for node in NODES}


def test_every_stage_has_checks_and_those_of_fabric_pairs_and_collectives_their_own() -> None:
    assert set(HOST_CHECKS) == set(STAGES) - {"fabric", "pairs", "collectives"}
    assert set(FLEET_CHECKS) <= set(HOST_CHECKS)


@pytest.mark.parametrize("stage", HOST_CHECKS)
def test_a_converged_host_passes_every_gate_with_findings_of_its_own(stage: str) -> None:
    findings = HOST_CHECKS[stage]("node1", lab_intent(), from_dict(lab_facts()))
    assert findings
    assert {(finding.stage, finding.host) for finding in findings} == {(stage, "node1")}
    assert stopping(findings) == []


EMPTY: dict[str, Any] = {
    "devices": {},
    "netdevs": {},
    "stack": {"kind": None, "kernel": None, "modules": {}, "distribution": {"id": None, "version_id": None, "like": [], "packages": None}},
    "limits": {"service_memlock": None},
    "sysctl": {"live": {}, "boot": {}},
    "files": {},
    "units": None,
}
LOOKING = ("preflight", "driver", "link", "host", "network", "nccl")


@pytest.mark.parametrize("stage", LOOKING)
def test_a_host_that_has_nothing_passes_no_gate_that_looks(stage: str) -> None:
    assert stopping(HOST_CHECKS[stage]("node1", lab_intent(), from_dict(EMPTY)))


@pytest.mark.parametrize("stage", FLEET_CHECKS)
def test_hosts_that_are_alike_pass_the_comparison(stage: str) -> None:
    by_host = FLEET_CHECKS[stage](known_of(lab()))
    assert sorted(by_host) == ["node1", "node2", "node3", "node4"]
    assert [finding for findings in by_host.values() for finding in stopping(findings)] == []


@pytest.mark.parametrize("known", [{"intent": None, "facts": None}, {"intent": lab_intent(4), "facts": None}])
@pytest.mark.parametrize("stage", FLEET_CHECKS)
def test_a_host_of_which_not_all_is_known_does_not_end_the_comparison(stage: str, known: dict[str, Any]) -> None:
    """Its intent could not be read, or it was unreachable when its facts were: the others are compared all the same."""
    by_host = FLEET_CHECKS[stage](known_of({**lab(), "node4": known}))
    assert {"node1", "node2", "node3"} <= set(by_host)
    assert [finding for host in ("node1", "node2", "node3") for finding in stopping(by_host[host])] == []


ROCE = {"priority": 3, "dscp": 26, "pfc": True, "ecn": True}


def two_planes(node: int, nccl: dict[str, Any] | None = None, *, role: str = "compute", planes: str = "ab") -> dict[str, Any]:
    """A lab machine whose rails are on planes of their own: NCCL_CROSS_NIC and NCCL_IB_TC follow."""
    rails = [{**rail, "role": role, "plane": plane} for rail, plane in zip(lab_rails(node), planes, strict=False)]
    fabric: dict[str, Any] = {"planes": {"a": {}, "b": {}}}
    return {"intent": lab_intent(node, rails=rails, fabric=fabric, roce=ROCE, nccl=nccl or {}), "facts": lab_facts(node)}


def odd(*hosts: dict[str, Any]) -> list[tuple[str, str]]:
    """What nccl.alike finds beside three hosts that are alike."""
    known = {f"node{node}": each for node, each in enumerate((*map(two_planes, (1, 2, 3)), *hosts), start=1)}
    found = FLEET_CHECKS["nccl"](known_of(known))
    reported = [each for findings in found.values() for each in stopping(findings)]
    assert {each.check for each in reported} <= {"nccl.alike"}
    return [(each.host, each.subject) for each in reported]


def test_hosts_of_storage_alone_are_not_asked_for_variables_of_nccl() -> None:
    assert odd(*(two_planes(node, role="storage") for node in (4, 5))) == []


def test_a_host_with_rails_on_one_plane_does_not_keep_them_apart() -> None:
    assert odd(two_planes(4, planes="aa"), two_planes(5, planes="a")) == []


@pytest.mark.parametrize(
    "nccl",
    [
        {"socket_ifname": "bond0"},
        {"variables": {"NCCL_IB_GID_INDEX": 5}},
        {"variables": {"NCCL_IB_PKEY": 2}},
        {"profile": "cloud", "topology_file": "/opt/topology.xml"},
    ],
)
def test_what_is_a_host_s_own_is_not_compared(nccl: dict[str, Any]) -> None:
    assert odd(two_planes(4, nccl)) == []


def test_a_host_that_misses_a_device_is_not_odd_and_nobody_else_is() -> None:
    """Its own findings say so."""
    one = two_planes(4)
    del one["facts"]["devices"]["rxe_rail1"]
    assert odd(one) == []


def test_a_host_with_other_settings_is_odd_whatever_its_rails_are() -> None:
    reported = {"variables": {"NCCL_IB_QPS_PER_CONNECTION": 4}}
    assert odd(two_planes(4, reported, planes="aa")) == [("node4", "NCCL_IB_QPS_PER_CONNECTION")]
    assert odd(two_planes(4, {"variables": {"NCCL_CROSS_NIC": 1}})) == [("node4", "NCCL_CROSS_NIC")]
    assert odd(two_planes(4, {"variables": {"NCCL_IB_HCA": "=rxe_rail0:1"}})) == [("node4", "NCCL_IB_HCA")]


def without(*devices: str, files: bool = False, **nccl: Any) -> tuple[list[tuple[str, str, str]], list[Finding]]:
    """What stops at the gate of nccl on a host that misses devices, as (check, status, observed), and all that is found.

    files: whether those of a host with all devices are there; else there are none yet. What they say is nccl.lint's.
    """
    intent, facts = lab_intent(nccl=nccl), {**lab_facts(), "nccl_files": {}}
    facts["nccl"] = {"library": "/usr/lib/libnccl.so.2", "version": nccl.get("version"), "tests": None, "openmpi": None}
    facts["files"] = on_host(nccl_files(intent, from_dict(facts))) if files else {}
    for device in devices:
        del facts["devices"][device]
    assert not nccl_differs(intent, from_dict(facts))
    findings = HOST_CHECKS["nccl"]("node1", intent, from_dict(facts))
    return [(each.check, each.status, each.observed) for each in stopping(findings)], findings


@pytest.mark.parametrize("files", [False, True], ids=["fresh", "written before"])
@pytest.mark.parametrize("version", [None, "2.20.5"])
def test_a_device_that_is_missing_is_one_finding_of_nccl(version: str | None, files: bool) -> None:
    stops, findings = without("rxe_rail1", files=files, version=version)
    assert stops == [("nccl.hca", "unknown", "rail1 has no RDMA device")]
    assert stopping(findings)[0].remedy == "Run the driver stage for node1, and fix the findings of its gate."
    reported = [each for each in findings if each.check == "nccl.file"]
    assert [(each.status, each.observed, each.remedy) for each in reported] == [
        ("not_applicable", "unchanged: rail1 has no RDMA device", "")
    ] * 2


@pytest.mark.parametrize("version", [None, "2.20.5"])
def test_no_device_at_all_is_one_finding_of_nccl(version: str | None) -> None:
    stops, findings = without("rxe_rail0", "rxe_rail1", version=version)
    assert stops == [("nccl.hca", "unknown", "rail0, rail1 have no RDMA device")]
    assert {each.status for each in findings if each.check == "nccl.gid_index"} == {"not_applicable"}


def test_a_missing_device_that_the_user_names_is_reported_once() -> None:
    (stop,), _findings = without("rxe_rail1", variables={"NCCL_IB_HCA": "=rxe_rail0:1,rxe_rail1:1"})
    assert stop == ("nccl.hca", "error", "no such device; the host has rxe_rail0")
    stops, _findings = without("rxe_rail1", variables={"NCCL_IB_HCA": "=rxe_rail0:1"})
    assert stops == [("nccl.hca", "unknown", "rail1 has no RDMA device")]


def test_another_port_that_is_down_is_reported_beside_a_missing_device() -> None:
    intent, facts = lab_intent(), {**lab_facts(), "nccl_files": {}}
    del facts["devices"]["rxe_rail1"]
    facts["devices"]["rxe_rail0"]["ports"]["1"]["state"] = "DOWN"
    stops = stopping(HOST_CHECKS["nccl"]("node1", intent, from_dict(facts)))
    assert [(each.status, each.subject) for each in stops] == [
        ("unknown", "NCCL_IB_HCA"),
        ("error", "device rxe_rail0:1 of NCCL_IB_HCA"),
    ]


def test_nccl_s_one_gid_index_for_all_rails_is_asked_for() -> None:
    """NCCL before 2.21 takes one index for all rails; nccl.gid_index says so where they differ."""
    facts = lab_facts()
    facts["devices"]["rxe_rail1"]["ports"]["1"]["rocev2"] = {"192.168.101.1": 3}
    findings = HOST_CHECKS["nccl"]("node1", lab_intent(nccl={"version": "2.20.5"}), from_dict(facts))
    assert ("nccl.gid_index", "error") in {(finding.check, finding.status) for finding in findings}


def test_the_hosts_of_a_stage_are_known_by_the_files_of_the_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for host in ("node2", "node1", "node3"):
        folder.write_findings("link", host, [])
    folder.write_findings("network", "node4", [])
    for node in (1, 2, 4):
        folder.write_json(f"intent/node{node}.json", {"rails": lab_rails(node)})
    folder.write_json("facts/node1.json", lab_facts())
    known = known_hosts(folder, folder.hosts_of("link"))
    assert list(known) == ["node1", "node2", "node3"]
    assert known["node1"] == Known({"rails": lab_rails()}, from_dict(comparable(lab_facts())))
    assert known["node2"] == Known({"rails": lab_rails(2)}, None)
    assert known["node3"] == Known(None, None)
    facts = known["node1"].facts
    assert facts is not None
    assert facts.devices["rxe_rail0"].ports["1"].hw_counters is None
    assert (facts.reached_at, facts.time and facts.time.between_seconds) == ("127.0.0.1", [1_800_000_000.0, 1_800_000_001.0])


def test_facts_that_cannot_be_used_are_one_finding_of_a_stage() -> None:
    of_comparison, own = facts_finding("link", "node1", "TypeError at here.py:1"), facts_finding("link", "node1", "TypeError at there.py:2")
    assert merged([of_comparison], [own]) == [of_comparison]
    assert merged([], [own]) == [own]


def test_what_a_host_itself_finds_wrong_stays_beside_a_comparison() -> None:
    compared_well, good, bad = (finding(status) for status in ("ok", "ok", "error"))
    assert merged([compared_well], [good]) == [compared_well]
    assert merged([compared_well], [bad]) == [compared_well, bad]
    assert merged([finding("ok", "rail 1")], [good]) == [finding("ok", "rail 1"), good]


def finding(status: str, subject: str = "rail 0", silenced_by: str | None = None) -> Finding:
    return Finding("link", "link.state", "node1", subject, status, "DOWN", "ACTIVE", "Check the cable.", silenced_by)


def test_the_verdict_on_a_good_host() -> None:
    findings = [finding("ok"), finding("warning"), finding("not_applicable"), finding("error", silenced_by="ada")]
    assert verdict("link", "node1", findings) == "link gate: node1 passes, 4 checks."


def test_the_verdict_on_a_bad_host_names_every_offender() -> None:
    assert verdict("link", "node1", [finding("ok"), finding("error"), finding("unknown", "rail 1")]) == "\n".join(
        [
            "link gate: node1 does not pass, 2 of 3 checks:",
            "  error link.state: node1, rail 0",
            "    seen:     DOWN",
            "    expected: ACTIVE",
            "    do:       Check the cable.",
            "  unknown link.state: node1, rail 1",
            "    seen:     DOWN",
            "    expected: ACTIVE",
            "    do:       Check the cable.",
        ]
    )


def test_the_verdict_names_what_follows_from_a_cause_in_one_line() -> None:
    cause = Finding("network", "network.gid", "node1", "rail 0", "error", "none", "one", "See the address.")
    here = Finding("network", "network.mtu", "node1", "rail 0", "unknown", "no", "yes", "x", caused_by="network.gid on rail 0")
    before = Finding("network", "network.rdma_mtu", "node1", "rail 0", "unknown", "no", "yes", "x", caused_by="driver.device on rail 0")
    lines = verdict("network", "node1", [cause, here, before]).splitlines()
    assert lines[0] == "network gate: node1 does not pass, 3 of 3 checks:"
    assert lines[5:] == [
        "  unknown network.mtu: rail 0: follows from network.gid on rail 0",
        "  unknown network.rdma_mtu: rail 0: follows from driver.device on rail 0, which an earlier stage reported",
    ]


def test_the_stages_up_to_one() -> None:
    assert up_to("preflight") == ("preflight",)
    assert up_to("link") == ("preflight", "driver", "link")
    assert up_to("collectives") == STAGES


def test_the_link_gate_compares_hosts_and_looks_at_subnet_managers(tmp_path: Path) -> None:
    hosts = lab()
    manager = {"kind": "hosts", "hosts": ["node1"]}
    for known in hosts.values():
        known["intent"]["fabric"] = {**known["intent"]["fabric"], "planes": {"default": {"subnet_manager": manager}}}
        known["intent"]["rails"][0].update(link_layer="infiniband", plane="default")
        port = known["facts"]["devices"]["rxe_rail0"]["ports"]["1"]
        port.update(link_layer="InfiniBand", lid=1, sm_lid=1)
    found = compared("link", known_of(hosts), RunFolder(tmp_path))
    assert {each.check for each in found["node2"]} == {"alike.rate", "alike.names", "alike.pcie", "link.sm"}
    assert [each.observed for each in found["node1"] if each.check == "link.sm"][1:] == ["sminfo was not run"]
    master = {"lid": 1, "guid": "0x0000000000000001", "state": "MASTER", "priority": 14, "activity": 1}
    reading = {"graph": None, "subnet_managers": [master], "no_subnet_manager": None, "read_at": 0.0}
    RunFolder(tmp_path).write_json("fabric/default/managers/node2.json", reading)
    assert [each.status for each in compared("link", known_of(hosts), RunFolder(tmp_path))["node1"] if each.check == "link.sm"] == ["ok"]


def test_a_host_cannot_forge_a_line_of_a_verdict() -> None:
    evil = "DOWN\x1b]0;title\x07\n  error link.state: node9, rail 0"
    text = verdict("link", "node1", [Finding("link", "link.state", "node1", evil, "error", evil, evil, evil)])
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line.startswith("  error")] == [
        "  error link.state: node1, DOWN?]0;title?   error link.state: node9, rail 0"
    ]


CABLES = """
switches: {leaf1: , leaf2: , spine1: , spine2: }
links:
  - {from: node1 rxe_rail0, to: leaf1/1}
  - {from: node2 rxe_rail0, to: leaf2/1}
  - {from: leaf1/2-3, to: spine1/1-2}
  - {from: leaf2/2-3, to: spine2/1-2}
  - {from: leaf1/4-5, to: spine2/3-4}
  - {from: leaf2/4-5, to: spine1/3-4}
"""


def planned_lab() -> dict[str, Known]:
    """Two hosts of the lab as if their rails were hardware, with a cabling plan."""
    hosts = {}
    for node in (1, 2):
        intent = lab_intent(node)
        intent["rails"] = [{**rail, "soft": False} for rail in intent["rails"]]
        intent["fabric"]["planes"] = {"lab": {"subnet_manager": None, "ratio": None, "plan": "cables.yml"}}
        hosts[f"node{node}"] = known_of({"node": {"intent": intent, "facts": comparable(lab_facts(node))}})["node"]
    return hosts


def test_the_nccl_gate_forecasts_the_queue_pairs_of_a_planned_fabric(tmp_path: Path) -> None:
    files = {"cables.yml": CABLES}
    found = compared("nccl", planned_lab(), RunFolder(tmp_path), files.__getitem__)
    (finding,) = [each for each in found["node1"] if each.check == "nccl.queue_pairs"]
    assert (finding.status, finding.observed) == (
        "ok",
        "NCCL_IB_QPS_PER_CONNECTION=1 over 4 equal paths to 2 spines of leaf1: expect 100% of line rate when its 1 ports send by one "
        "connection each",
    )
    assert [
        each for each in compared("link", planned_lab(), RunFolder(tmp_path), files.__getitem__)["node1"] if "queue" in each.check
    ] == []


@pytest.mark.parametrize("text", [None, "", CABLES.replace("leaf2/2-3", "leaf2/2-4")], ids=["no plan read", "empty", "invalid"])
def test_without_a_readable_plan_the_nccl_gate_forecasts_nothing(tmp_path: Path, text: str | None) -> None:
    found = compared("nccl", planned_lab(), RunFolder(tmp_path), None if text is None else lambda _file: text)
    assert [each.check for each in found["node1"] if each.check == "nccl.queue_pairs"] == []
