# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate says of a network plugin. The answers of nccl-mesh-plugin are those of the real library on a host without RDMA device."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.plugin import plugin_order
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import host_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import plugin_due
from tests.unit.builders.hosts import lab_facts, lab_intent

SUM = "sha256:" + "a" * 64
MESH = {"kind": "mesh", "version": "679a394", "source": {"file": "mesh.tgz"}, "checksum": SUM, "variables": {"NCCL_MESH_GID_INDEX": 1}}
OTHER = {"kind": "file", "name": "ofi", "file": {"file": "libnccl-net-ofi.so"}, "checksum": SUM}
PATH = "/opt/rdma-cluster/nccl/mesh/libnccl-net-mesh.so"
TCP = {"name": "eth0", "pci_path": "", "speed_mbps": 100_000, "port": 0, "memory": ["host"], "max_receives": 1, "result": 0}
#: The first lines of the log of 679a394 without RDMA device.
LOG = ["3: MESH Handle size: %zu bytes (max 128)", "2: MESH Failed to get RDMA device list", "2: MESH Failed to initialize NICs"]


def device(name: str, **more: Any) -> dict[str, Any]:
    return {**TCP, "name": name, "port": 1, "speed_mbps": 400_000, **more}


BOTH = [device("rxe_rail0"), device("rxe_rail1")]


def intent_of(plugin: dict[str, Any] | None = None, version: str | None = None, profile: str = "default") -> dict[str, Any]:
    return lab_intent(nccl={"plugin": MESH if plugin is None else plugin, "version": version, "profile": profile})


def facts_of(
    intent: dict[str, Any], probe: dict[str, Any] | None = None, library: dict[str, Any] | None = None, **seen: Any
) -> dict[str, Any]:
    """A lab machine with the plugin installed."""
    facts = lab_facts()
    whole = {"sha256": "0" * 64, "machine": "x86_64", "interfaces": [9, 8], "verbs": True, **(library or {})}
    stamp = {"version": "679a394", "order": plugin_order(intent["nccl"]["plugin"]), "sha256": "0" * 64}
    answers = {"interface": 9, "name": "Mesh", "init": 0, "devices": BOTH, "log": [], **(probe or {})}
    plugin = {"path": PATH, "machine": "x86_64", "library": whole, "stamp": stamp, "probe": answers, **seen}
    facts["nccl"] = {"library": None, "version": None, "tests": None, "openmpi": None, "plugin": plugin}
    return facts


def judged(intent: dict[str, Any], facts: dict[str, Any]) -> dict[str, tuple[str, str]]:
    found = [each for each in host_findings("nccl", "node1", intent, facts) if each.check == "nccl.plugin"]
    assert all(bool(each.remedy) == (each.status in (ERROR, UNKNOWN, WARNING)) for each in found)
    return {each.subject: (each.status, each.observed) for each in found}


def test_a_plugin_that_is_well() -> None:
    intent = intent_of()
    assert judged(intent, facts_of(intent)) == {
        "plugin mesh": (
            OK,
            f"{PATH}, used because rdma_nccl.plugin requests it, and rdma_nccl.profile is not mesh; hosts without a direct cable are "
            "reached through others",
        ),
        "interface of plugin mesh": (OK, "NCCL uses v9; the library has v9, v8"),
        "devices of plugin mesh": (OK, "rxe_rail0, rxe_rail1"),
        "rail0 of plugin mesh": (OK, "rxe_rail0, 400 Gb/s, host memory only, so no GPUDirect RDMA"),
        "rail1 of plugin mesh": (OK, "rxe_rail1, 400 Gb/s, host memory only, so no GPUDirect RDMA"),
    }


def test_without_a_plugin_nothing_is_judged() -> None:
    intent = lab_intent()
    assert judged(intent, lab_facts()) == {"network plugin": (NOT_APPLICABLE, "rdma_nccl.plugin is not set")}


def test_a_plugin_that_nccl_replaces_is_not_used() -> None:
    intent = intent_of(version="2.30.7", profile="mesh")
    assert judged(intent, facts_of(intent)) == {
        "network plugin": (NOT_APPLICABLE, "NCCL 2.30.7 selects the NIC by the peer's subnet itself")
    }


@pytest.mark.parametrize(
    ("seen", "status", "observed"),
    [
        ({"library": None, "probe": None}, ERROR, f"{PATH} does not exist"),
        ({"stamp": None}, ERROR, f"{PATH} was not installed with this request"),
        ({"stamp": {"version": "x", "order": "y", "sha256": "0" * 64}}, ERROR, f"{PATH} was not installed with this request"),
        ({"unread": "plugin.json: Permission denied"}, UNKNOWN, "plugin.json: Permission denied"),
    ],
    ids=["missing", "foreign", "other", "unread"],
)
def test_a_plugin_that_is_not_installed(seen: dict[str, Any], status: str, observed: str) -> None:
    intent = intent_of()
    facts = facts_of(intent)
    facts["nccl"]["plugin"].update(seen)
    assert judged(intent, facts) == {"plugin mesh": (status, observed)}
    assert plugin_due(intent, from_dict(facts)) == (status == ERROR)


def test_facts_without_the_plugin_are_unknown() -> None:
    intent = intent_of()
    assert judged(intent, lab_facts()) == {"plugin mesh": (UNKNOWN, "the facts do not contain it")}
    assert plugin_due(intent, from_dict(lab_facts()))


def test_a_changed_library_is_due_again() -> None:
    intent = intent_of()
    facts = facts_of(intent, library={"sha256": "1" * 64})
    assert judged(intent, facts) == {"plugin mesh": (ERROR, f"{PATH} was not installed with this request")}
    assert plugin_due(intent, from_dict(facts))


@pytest.mark.parametrize(
    ("library", "version", "status", "observed"),
    [
        ({"verbs": False}, None, ERROR, "the library calls no function of libibverbs (ibv_…): it sends everything over TCP"),
        ({"machine": "aarch64"}, None, ERROR, "the library is built for aarch64, but the host is x86_64"),
        ({"interfaces": [5]}, "2.30.7", ERROR, "the library has v5, so NCCL does not use it"),
        ({"interfaces": []}, None, ERROR, "the library has none, so NCCL does not use it"),
    ],
    ids=["TCP", "machine", "old", "none"],
)
def test_a_library_that_nccl_cannot_use(library: dict[str, Any], version: str | None, status: str, observed: str) -> None:
    intent = intent_of(version=version)
    found = judged(intent, facts_of(intent, library=library))
    assert found["interface of plugin mesh"] == (status, observed)
    assert "devices of plugin mesh" not in found


@pytest.mark.parametrize(
    ("probe", "status", "observed"),
    [
        (None, UNKNOWN, "it was not loaded"),
        ({"unread": "x did not end within 30 seconds"}, UNKNOWN, "the plugin gave no answer: x did not end within 30 seconds"),
        ({"failed": "it crashed: its process ended by signal 11"}, ERROR, "it crashed: its process ended by signal 11"),
        (
            {"init": 2, "devices": None, "log": LOG},
            ERROR,
            "init failed with 2 (system error); its last message is '2: MESH Failed to initialize NICs'",
        ),
        ({"devices": []}, ERROR, "it offers no device"),
        ({"devices": None}, ERROR, "devices failed"),
        ({"devices": [TCP]}, ERROR, "eth0: no RDMA device, so the plugin uses TCP"),
    ],
    ids=["not loaded", "hung", "crashed", "init", "none", "failed", "TCP"],
)
def test_a_plugin_without_the_devices_of_rails(probe: dict[str, Any] | None, status: str, observed: str) -> None:
    intent = intent_of()
    facts = facts_of(intent, probe)
    if probe is None:
        facts["nccl"]["plugin"]["probe"] = None
    assert judged(intent, facts)["devices of plugin mesh"] == (status, observed)


def hard(facts: dict[str, Any], rate_gbps: float = 400.0) -> dict[str, Any]:
    """NICs in the place of Soft-RoCE, whose rate counts; one more has no rail."""
    for seen in facts["devices"].values():
        seen["software"] = False
        seen["ports"]["1"]["rate_gbps"] = rate_gbps
    port = {**facts["devices"]["rxe_rail1"]["ports"]["1"], "netdev": None, "gids": [], "rocev2": {}}
    facts["devices"]["mlx5_9"] = {**facts["devices"]["rxe_rail1"], "ports": {"1": port}}
    return facts


def test_each_rail_is_compared() -> None:
    intent = intent_of()
    found = judged(intent, hard(facts_of(intent, {"devices": [device("rxe_rail0", speed_mbps=100_000), device("mlx5_9")]})))
    assert found["devices of plugin mesh"] == (
        WARNING,
        "rxe_rail0, mlx5_9; mlx5_9 do not belong to a compute rail, and the plugin may use them",
    )
    assert found["rail0 of plugin mesh"] == (
        WARNING,
        "rxe_rail0, 100 Gb/s, host memory only, so no GPUDirect RDMA; NCCL plans with this speed",
    )
    assert found["rail1 of plugin mesh"] == (ERROR, "rxe_rail1 is not offered; the plugin has rxe_rail0, mlx5_9")


def test_a_table_with_another_layout_than_that_of_nccl() -> None:
    """As nccl-mesh-plugin has in v8: NCCL reads the port as the speed, in Mbit/s."""
    intent = intent_of(version="2.21.5")
    answers = {"interface": 8, "devices": [device(f"rxe_rail{rail}", speed_mbps=1, max_receives=0) for rail in (0, 1)]}
    found = judged(intent, hard(facts_of(intent, answers)))
    assert found["rail0 of plugin mesh"] == (
        ERROR,
        "rxe_rail0, 0.001 Gb/s, host memory only, so no GPUDirect RDMA; the plugin does not have the layout of NCCL's interface v8, so "
        "NCCL reads wrong values",
    )


def test_the_gid_of_the_mesh_plugin_is_that_of_the_rail() -> None:
    intent = intent_of({**MESH, "variables": {}})
    assert judged(intent, facts_of(intent))["rail0 of plugin mesh"] == (
        WARNING,
        "rxe_rail0, 400 Gb/s, host memory only, so no GPUDirect RDMA; NCCL_MESH_GID_INDEX is 3, but the rail's address has the GID index 1",
    )


def test_another_plugin_needs_no_verbs_and_has_no_gid() -> None:
    intent = intent_of(OTHER)
    answers = {"devices": [device(f"rxe_rail{rail}", memory=["host", "cuda", "dmabuf"]) for rail in (0, 1)]}
    found = judged(intent, facts_of(intent, answers, {"verbs": False}))
    assert found["plugin ofi"] == (OK, f"{PATH}, used because rdma_nccl.plugin requests it")
    assert found["rail0 of plugin ofi"] == (OK, "rxe_rail0, 400 Gb/s, GPU memory")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.28.9", "an interface of NCCL 2.28.9: v11, v10, v9, v8, v7, v6"),
        (None, "an interface of a recent NCCL: v12, v11, v10, v9, v8, v7, v6"),
    ],
)
def test_the_expected_interface_names_the_version_of_nccl(version: str | None, expected: str) -> None:
    intent = intent_of(version=version)
    found = host_findings("nccl", "node1", intent, facts_of(intent))
    assert [each.expected for each in found if each.subject == "interface of plugin mesh"] == [expected]
