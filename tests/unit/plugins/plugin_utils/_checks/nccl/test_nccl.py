# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the nccl stage: files and devices of one host, and variables compared over the fleet."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import OF_HOST
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import Kind, check_nccl, check_nccl_fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts

CONF = "# Managed by rdma.cluster\nNCCL_IB_HCA==rxe_rail0:1,rxe_rail1:1\n"
FILES = [ManagedFile("/etc/nccl.conf", CONF), ManagedFile("/etc/rdma-cluster/nccl.env", CONF)]


def facts_with(files: list[ManagedFile]) -> dict[str, Any]:
    """The lab machine's facts, with these files on it."""
    return {**lab_facts(), "files": {file.path: written(file.content or "", file.mode) for file in files}}


def written(content: str, mode: int = 0o644) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(content.encode()).hexdigest(), "mode": mode, "owner": "0:0"}


def hca(value: str, facts: dict[str, Any] | None = None) -> list[Finding]:
    """The findings on devices for a value of NCCL_IB_HCA."""
    files = [ManagedFile("/etc/nccl.conf", f"NCCL_IB_HCA={value}\n")]
    return [finding for finding in check_nccl("node1", files, from_dict(facts or lab_facts())) if finding.check == "nccl.hca"]


def test_a_good_host_passes() -> None:
    findings = check_nccl("node1", FILES, from_dict(facts_with(FILES)))
    assert [(finding.check, finding.subject, finding.status) for finding in findings] == [
        ("nccl.file", "/etc/nccl.conf", "ok"),
        ("nccl.file", "/etc/rdma-cluster/nccl.env", "ok"),
        ("nccl.hca", "device rxe_rail0:1 of NCCL_IB_HCA", "ok"),
        ("nccl.hca", "device rxe_rail1:1 of NCCL_IB_HCA", "ok"),
    ]
    assert {finding.stage for finding in findings} == {"nccl"}
    assert findings[2].observed == "rxe_rail0/1 is ACTIVE"


@pytest.mark.parametrize(
    ("there", "observed"),
    [
        (None, "missing"),
        (written("NCCL_DEBUG=INFO\n"), "different content (sha256 "),
        (written(CONF, 0o600), "or mode (0600)"),
    ],
)
def test_a_file_that_is_not_as_planned(there: dict[str, Any] | None, observed: str) -> None:
    facts = facts_with(FILES)
    del facts["files"]["/etc/nccl.conf"]
    if there is not None:
        facts["files"]["/etc/nccl.conf"] = there
    (finding,) = stopping(check_nccl("node1", FILES, from_dict(facts)))
    assert (finding.check, finding.subject, finding.status) == ("nccl.file", "/etc/nccl.conf", "error")
    assert observed in finding.observed
    assert finding.remedy == "Run the nccl stage for node1."


@pytest.mark.parametrize("files", [None, "missing"])
def test_facts_that_do_not_report_are_unknown_and_stop(files: Any) -> None:
    facts = {**lab_facts(), "files": files}
    if files == "missing":
        del facts["files"]
    assert [(finding.check, finding.status) for finding in stopping(check_nccl("node1", FILES, from_dict(facts)))] == [
        ("nccl.file", "unknown")
    ] * 2


def test_a_device_that_is_not_there_names_those_that_are() -> None:
    (finding,) = hca("=mlx5_0:1")
    assert (finding.check, finding.status, finding.subject) == ("nccl.hca", "error", "device mlx5_0:1 of NCCL_IB_HCA")
    assert finding.observed == "no such device; the host has rxe_rail0, rxe_rail1"


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [(False, "Run the nccl stage for node1."), (True, "Correct rdma_nccl.variables.NCCL_IB_HCA of node1, or remove it.")],
)
def test_a_device_that_the_intent_names_is_corrected_there(asked: bool, remedy: str) -> None:
    """Another run of the stage would write it again."""
    files = [ManagedFile("/etc/nccl.conf", "NCCL_IB_HCA==mlx5_0:1\n")]
    (finding,) = stopping(check_nccl("node1", files, from_dict(facts_with(files)), asks_for_hca=asked))
    assert (finding.check, finding.remedy) == ("nccl.hca", remedy)


def test_a_port_that_is_not_active() -> None:
    facts = lab_facts()
    facts["devices"]["rxe_rail1"]["ports"]["1"]["state"] = "DOWN"
    good, bad = hca("=rxe_rail0:1,rxe_rail1:1", facts)
    assert (good.status, bad.status) == ("ok", "error")
    assert bad.observed == "rxe_rail1/1 is DOWN"
    assert "link stage" in bad.remedy


def test_a_port_whose_state_is_not_known_is_unknown() -> None:
    facts = lab_facts()
    facts["devices"]["rxe_rail1"]["ports"]["1"]["state"] = None
    assert [finding.status for finding in hca("=rxe_rail1:1", facts)] == ["unknown"]


@pytest.mark.parametrize(
    ("value", "statuses"),
    [
        ("=rxe_rail0", ["ok"]),
        ("rxe_rail", ["ok"]),
        ("rxe_rail0:1:0:0", ["ok"]),
        ("=rxe_rail", ["error"]),
        ("=rxe_rail0:2", ["error"]),
        ("mlx5", ["error"]),
        ("^mlx5_4", ["not_applicable"]),
        ("^=mlx5_4:1", ["not_applicable"]),
    ],
)
def test_exact_names_and_prefixes(value: str, statuses: list[str]) -> None:
    assert [finding.status for finding in hca(value)] == statuses


def test_no_device_in_the_file_is_unknown_and_stops() -> None:
    files = [ManagedFile("/etc/nccl.conf", "# Managed by rdma.cluster\n")]
    (finding,) = stopping(check_nccl("node1", files, from_dict(facts_with(files))))
    assert (finding.check, finding.observed) == ("nccl.hca", "not set: no compute rail has an RDMA device")


def test_without_a_compute_rail_no_device_is_expected() -> None:
    files = [ManagedFile("/etc/nccl.conf", "# Managed by rdma.cluster\nNCCL_NVLS_ENABLE=0\n")]
    found = {each.check: each for each in check_nccl("node1", files, from_dict(facts_with(files)), computes=False)}
    assert (found["nccl.hca"].status, found["nccl.hca"].observed) == ("not_applicable", "not set: no compute rail is planned")
    named = [ManagedFile("/etc/nccl.conf", "# Managed by rdma.cluster\nNCCL_IB_HCA==mlx5_9:1\n")]
    assert [
        each.status for each in check_nccl("node1", named, from_dict(facts_with(named)), computes=False) if each.check == "nccl.hca"
    ] == ["error"]


def test_where_nccl_has_no_rail_nothing_is_asked() -> None:
    (finding,) = check_nccl("node1", [], from_dict(lab_facts()))
    assert (finding.check, finding.status) == ("nccl.file", "not_applicable")


def test_like_hosts_are_alike_though_their_devices_have_other_names() -> None:
    found = check_nccl_fleet({
        "node1": {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_3:1", "NCCL_IB_TC": "106"},
        "node2": {"NCCL_IB_HCA": "=mlx5_2:1,mlx5_1:1", "NCCL_IB_TC": "106"},
    })  # fmt: skip
    assert {host: [(finding.check, finding.status) for finding in findings] for host, findings in found.items()} == {
        "node1": [("nccl.alike", "ok")],
        "node2": [("nccl.alike", "ok")],
    }


@pytest.mark.parametrize(
    ("odd", "subject", "observed", "expected"),
    [
        ({"NCCL_IB_TC": "104"}, "NCCL_IB_TC", "104", "106"),
        ({"NCCL_DEBUG": "INFO"}, "NCCL_DEBUG", "INFO", "not set"),
        ({"NCCL_IB_TC": None}, "NCCL_IB_TC", "not set", "106"),
        ({"NCCL_IB_HCA": "=mlx5_0:1"}, "NCCL_IB_HCA", "=mlx5_0:1", "=*:1,*:1 (* is a device)"),
        ({"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:2"}, "NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:2", "=*:1,*:1 (* is a device)"),
        ({"NCCL_IB_HCA": "mlx5_0:1,mlx5_1:1"}, "NCCL_IB_HCA", "mlx5_0:1,mlx5_1:1", "=*:1,*:1 (* is a device)"),
        ({"NCCL_IB_HCA": None}, "NCCL_IB_HCA", "not set", "=*:1,*:1 (* is a device)"),
        ({"UCX_TLS": "rc*"}, "UCX_TLS", "rc*", "not set"),
        ({"NCCL_DEBUG_SUBSYS": "*"}, "NCCL_DEBUG_SUBSYS", "*", "not set"),
    ],
)
def test_the_odd_one_out_is_named(odd: dict[str, str | None], subject: str, observed: str, expected: str) -> None:
    usual = {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "NCCL_IB_TC": "106"}
    other = {name: value for name, value in {**usual, **odd}.items() if value is not None}
    found = check_nccl_fleet({**{f"node{number}": usual for number in range(1, 6)}, "node9": other})
    (finding,) = stopping(finding for findings in found.values() for finding in findings)
    assert (finding.host, finding.check, finding.subject, finding.status) == ("node9", "nccl.alike", subject, "error")
    assert finding.observed == observed
    assert finding.expected == f"as on other hosts: {expected} on node1, node2, node3 and 2 more"
    assert finding.remedy == "Compare rdma_nccl and the rails of node9 with those of node1."


def test_a_host_without_an_interface_for_sockets_beside_hosts_with_one() -> None:
    """Their names may differ, but NCCL must not choose on one host alone."""
    set_there = {"node2": {"NCCL_SOCKET_IFNAME": "=enp0s2"}, "node3": {"NCCL_SOCKET_IFNAME": "=eno1"}}
    found = check_nccl_fleet({"node1": {}, **set_there})
    [finding] = found["node1"]
    assert (finding.subject, finding.status, finding.expected) == ("NCCL_SOCKET_IFNAME", "warning", "set, as on node2, node3")
    assert [each.status for host in set_there for each in found[host]] == ["ok", "ok"]
    assert [each.status for findings in check_nccl_fleet({"node1": {}, "node2": {}}).values() for each in findings] == ["ok", "ok"]


def test_without_a_most_frequent_value_nobody_is_taken_to_be_right() -> None:
    found = check_nccl_fleet({"node1": {"NCCL_IB_TC": "106"}, "node2": {"NCCL_IB_TC": "104"}})
    assert {host: [finding.status for finding in findings] for host, findings in found.items()} == {
        "node1": ["not_applicable"],
        "node2": ["not_applicable"],
        "the fleet": ["error"],
    }
    (finding,) = found["the fleet"]
    assert (finding.subject, finding.observed, finding.expected) == ("NCCL_IB_TC", "106 on node1; 104 on node2", "one value on all hosts")


TWO_RAILS = Kind(frozenset(("roce",)), frozenset(("a", "b")), rails_apart=True, devices_of=("rail0", "rail1"))
ONE_RAIL = Kind(frozenset(("roce",)), frozenset(("a",)), rails_apart=False, devices_of=("rail0",))
STORAGE = Kind(frozenset(), frozenset(), rails_apart=False, devices_of=())
USUAL = {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "NCCL_IB_TC": "106", "NCCL_CROSS_NIC": "0", "NCCL_COLLNET_ENABLE": "1"}


def odd_among_usual(other: dict[str, str], kind: Kind) -> list[str]:
    """What is odd on a host beside three of two rails, on which nothing is."""
    hosts = {**{f"node{number}": USUAL for number in (1, 2, 3)}, "node9": other}
    found = check_nccl_fleet(hosts, {**dict.fromkeys(hosts, TWO_RAILS), "node9": kind})
    assert not [finding for host in hosts if host != "node9" for finding in stopping(found[host])]
    return [finding.subject for finding in stopping(found["node9"])]


def test_hosts_with_other_rails_may_have_what_follows_from_them() -> None:
    other = {"NCCL_IB_HCA": "=mlx5_0:1", "NCCL_IB_TC": "106"}
    assert odd_among_usual(other, TWO_RAILS) == ["NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC", "NCCL_IB_HCA"]
    assert odd_among_usual(other, ONE_RAIL) == []
    assert odd_among_usual({**other, "NCCL_IB_TC": "104", "NCCL_IB_TIMEOUT": "22"}, ONE_RAIL) == ["NCCL_IB_TC", "NCCL_IB_TIMEOUT"]


def test_hosts_without_compute_rails_are_like_each_other_only() -> None:
    assert odd_among_usual({}, STORAGE) == []
    assert odd_among_usual({"NCCL_IB_TC": "0"}, STORAGE) == []
    hosts = {"node1": USUAL, "nfs1": {}, "nfs2": {}, "nfs3": {"NCCL_DEBUG": "INFO"}}
    found = check_nccl_fleet(hosts, {host: STORAGE if host.startswith("nfs") else TWO_RAILS for host in hosts})
    assert {host: findings[0].observed for host, findings in found.items()} == {
        "node1": "no other host has such rails",
        "nfs1": "as on 2 other hosts",
        "nfs2": "as on 2 other hosts",
        "nfs3": "INFO",
    }


def test_hosts_of_two_kinds_of_fabric_are_not_like_each_other() -> None:
    infiniband = Kind(frozenset(("infiniband",)), frozenset(("a", "b")), rails_apart=True, devices_of=("rail0", "rail1"))
    assert odd_among_usual({"NCCL_IB_SL": "1"}, infiniband) == []


@pytest.mark.parametrize("name", sorted(OF_HOST - {"NCCL_IB_HCA"}))
@pytest.mark.parametrize("value", ["2", None])
def test_what_is_a_host_s_own_may_differ(name: str, value: str | None) -> None:
    hosts = {"node1": {name: "1"}, "node2": {name: "1"}, "node3": {} if value is None else {name: value}}
    assert not [finding for findings in check_nccl_fleet(hosts).values() for finding in stopping(findings)]


def test_one_host_alone_has_nobody_to_be_like() -> None:
    assert [finding.status for finding in check_nccl_fleet({"node1": {"NCCL_IB_TC": "106"}})["node1"]] == ["not_applicable"]
    assert check_nccl_fleet({}) == {}


def test_a_large_fleet_of_strangers_is_compared_at_once() -> None:
    hosts = {f"node{number}": {f"NCCL_{name}": str(number) for name in range(10)} for number in range(2000)}
    begin = time.monotonic()
    found = check_nccl_fleet(hosts)
    assert time.monotonic() - begin < 10
    assert {len(findings) for findings in found.values()} == {10}
    assert max(len(finding.observed) for finding in found["the fleet"]) < 200
