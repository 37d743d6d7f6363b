# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent: defaults, and every problem in one sentence each."""

from __future__ import annotations

import copy
import datetime
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import Key
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError, IntentProblem, findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import RUN, SECTIONS

Change = Callable[[dict[str, Any]], Any]
GOOD: dict[str, Any] = {
    "rdma_rails": [
        {"name": "rail0", "nic": {"pci": "0000:3D:00.0"}, "address": "192.168.100.1/24", "soft": True},
        {"name": "rail1", "nic": {"mac": "52:54:00:1A:01:01"}, "address": "192.168.101.1/24", "soft": True},
    ],
}
PARTITION = {"key": 1, "members": "all"}
DRIVER = {
    "stack": "keep", "version": None, "source": None, "checksum": None, "add_kernel_support": None, "with_nvmf": False,
    "without_fw_update": True, "force": False, "flags": [], "profile": "doca-ofed",
    "repository": {"url": None, "key": None, "key_checksum": None}, "module_options": {}, "hold_kernel": False, "build_minutes": 60,
}  # fmt: skip
SUM = f"sha256:{'0a' * 32}"
BUNDLE = {"stack": "mlnx_ofed", "version": "24.10-1.1.4.0", "source": {"file": "files/ofed.tgz"}, "checksum": SUM}
DOCA = {"stack": "doca", "version": "3.2.0", "repository": {"key": {"file": "files/key.pub"}, "key_checksum": SUM}}
RULE = {"silenced_by": "me", "reason": "on order", "until": "2026-12-31"}


def rail(index: int, **changes: Any) -> Change:
    return lambda variables: variables["rdma_rails"][index].update(changes)


def also(more: dict[str, Any] | None = None, **changes: Any) -> Change:
    return lambda variables: variables.update({**(more or {}), **changes})


def test_an_rdma_mtu_that_a_roce_rail_cannot_carry_is_refused() -> None:
    """4096 needs 96 bytes more for headers; on Soft-RoCE it is rxe's own affair."""
    rails = [{"name": "rail0", "nic": {"pci": "0000:3d:00.0"}, "address": "192.168.0.1/24", "mtu_bytes": 4192}]
    variables = {"rdma_rails": rails, "rdma_pairs": {"mtu_bytes": 4096}}
    normalize(variables)
    assert normalize({**variables, "rdma_rails": [{**rails[0], "mtu_bytes": None}]})["rails"][0]["mtu_bytes"] is None
    rails[0]["mtu_bytes"] = 4191
    (problem,) = problems_of(variables)
    assert str(problem) == "rdma_pairs.mtu_bytes is 4096, but rail0 has an MTU of 4191, which carries 2048"
    assert problem.expected == "an MTU of at least 4192 on each RoCE rail, or a smaller one here"
    rails[0]["soft"] = True
    normalize(variables)


def problems_of(variables: Any) -> list[IntentProblem]:
    with pytest.raises(IntentError) as caught:
        normalize(variables)
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


def problems(change: Change) -> list[IntentProblem]:
    variables = copy.deepcopy(GOOD)
    change(variables)
    return problems_of(variables)


def test_defaults_are_filled_in_and_nics_are_lower_case() -> None:
    intent = normalize(GOOD)
    assert intent["rails"][0] == {
        "name": "rail0", "nic": {"pci": "0000:3d:00.0"}, "link_layer": "roce", "rate_gbps": None, "plane": "default",
        "role": "compute", "address": "192.168.100.1/24", "addresses": [], "gateway": None, "routes": [], "mtu_bytes": None, "soft": True,
        "ipoib": None, "vlan": None, "bond": None,
    }  # fmt: skip
    assert intent["rails"][1]["nic"] == {"mac": "52:54:00:1a:01:01"}
    assert intent["driver"] == DRIVER
    assert intent["fabric"] == {
        "topology": "switched", "planes": {}, "management": None, "shared_subnet": False, "mesh": None, "max_outage_ms": None,
    }  # fmt: skip
    assert intent["host"] == {
        "memlock_unlimited": True,
        "open_files": 131072,
        "keep_ipc": True,
        "sysctl": {},
        "rings": {"rx": None, "tx": None},
        "pcie": {"mrrs_bytes": "auto", "acs": "auto"},
        "cpu": {"governor": None, "max_cstate_latency_us": None, "irqbalance": None},
        "time": {"manage": False, "servers": [], "ptp": None},
        "network": {"backend": "auto"},
    }
    assert intent["roce"] is None
    assert intent["partitions"] == {}
    assert intent["gpudirect"] == {"path": "auto", "driver_version": None}
    assert intent["firmware"] == {"settings": {}, "link_type": True, "versions": {}}
    assert intent["nccl"] == {
        "conf_file": "/etc/nccl.conf", "environment_file": "/etc/rdma-cluster/nccl.env", "version": None,
        "profile": "default", "launchers": [], "socket_ifname": None, "topology_file": None,
        "install": {"kind": "none", "packages": {}, "tests": None},
        "plugin": {
            "kind": "none", "name": None, "version": None, "source": None, "file": None, "checksum": None, "variables": {},
            "build_minutes": 5,
            "transfer_seconds": 45,
        },
        "variables": {},
    }  # fmt: skip
    assert intent["pairs"] == {
        "command": "ib_write_bw", "bidirectional": False, "latency_command": "ib_write_lat", "schedule": "full", "partners": 4,
        "seed": None,
        "size_bytes": 1048576, "queue_pairs": 4, "duration_seconds": 10, "iterations": None, "deadline_seconds": 60, "mtu_bytes": None,
        "qp_timeout": None, "gpu_memory": False, "gpu_fail_below": 0.9, "floor_gbps": 0.0, "software_fail_below": 0.25, "fail_below": 0.8,
        "warn_below": 0.95,
    }  # fmt: skip
    assert intent["collectives"] == {
        "operation": "all_reduce", "also": [], "gpus": None, "launcher": "mpirun", "launcher_program": None, "launcher_arguments": [],
        "allow_root": False, "address": None, "interface": None, "folder": None, "environment": {}, "min_bytes": 2**30,
        "max_bytes": 2**33, "iterations": 20, "timeout_seconds": 300, "repeats": 3, "min_busbw_gbps": None, "nvlink_busbw_gbps": None,
        "fail_below": 0.8, "warn_below": 0.9,
    }  # fmt: skip
    assert intent["gate"] == {"policy": "stop", "max_failed_percent": None}
    assert intent["checks"] == {}


def test_an_empty_rdma_roce_has_every_default() -> None:
    roce = normalize({**GOOD, "rdma_roce": {"dcqcn": {"rpg_ai_rate": 5}, "switches": {"leaf1": {"ports": ["swp1-4"]}}}})["roce"]
    assert {name: value for name, value in roce.pop("dcqcn").items() if value is not None} == {"rpg_ai_rate": 5}
    assert roce == {
        "priority": 3, "dscp": 26, "pfc": True, "ecn": True, "cnp_dscp": 48, "cnp_priority": 6, "rdma_percent": 50, "dcbx": "os",
        "cable_length_m": None,
        "switches": {
            "leaf1": {"syntax": "table", "ports": ["swp1-4"], "mtu_bytes": 9216, "cable_length_m": None, "rate_gbps": None},
        },
    }  # fmt: skip


@pytest.mark.parametrize("absent", [{}, {"rdma_roce": None}], ids=["missing", "null"])
def test_without_rdma_roce_there_is_none(absent: dict[str, Any]) -> None:
    assert normalize({**GOOD, **absent})["roce"] is None


def test_the_intent_is_not_changed_by_reading_it() -> None:
    variables = copy.deepcopy(GOOD)
    intent = normalize(variables)
    assert variables == GOOD
    intent["fabric"]["planes"]["x"] = {}
    assert normalize(variables)["fabric"]["planes"] == {}


def test_nested_keys_have_defaults_too() -> None:
    given = {
        "rdma_rails": [{**rail, "plane": "a"} for rail in GOOD["rdma_rails"]],
        "rdma_fabric": {"planes": {"a": None, "b": {"ratio": 1.5}}},
        "rdma_partitions": {"a": PARTITION},
        "rdma_host": {"sysctl": {"net/ipv4/conf/eth0/rp_filter": 2, "vm.x": "1 2"}},
        "rdma_nccl": {"variables": {"NCCL_IB_TC": 106, "UCX_TLS": "rc,tcp"}},
        "rdma_checks": {"link.state": {**RULE, "until": datetime.date(2026, 12, 31)}, "pair.bandwidth": {"threshold": 0.5}},
    }
    intent = normalize(given)
    assert intent["fabric"]["planes"] == {
        "a": {"subnet_manager": None, "ratio": None, "plan": None, "routing": None},
        "b": {"subnet_manager": None, "ratio": 1.5, "plan": None, "routing": None},
    }
    assert intent["partitions"] == {
        "a": {
            "key": 1, "members": "all", "membership": "full", "shared": False, "index0": False, "ipoib": False, "mtu": 2048, "sl": 0,
        },
    }  # fmt: skip
    assert intent["host"]["sysctl"] == {"net/ipv4/conf/eth0/rp_filter": 2, "vm.x": "1 2"}
    assert intent["nccl"]["variables"] == {"NCCL_IB_TC": 106, "UCX_TLS": "rc,tcp"}
    assert intent["checks"]["link.state"] == {"severity": None, "threshold": None, **RULE}
    json.dumps(intent)


@pytest.mark.parametrize(
    "driver", [BUNDLE, {**BUNDLE, "source": {"url": "https://example.org/o/ofed.tgz"}, "flags": ["--without-dkms"]}, DOCA]
)
def test_a_driver_of_each_stack(driver: dict[str, Any]) -> None:
    assert normalize({**GOOD, "rdma_driver": driver})["driver"] == {
        **DRIVER,
        **driver,
        "repository": {**DRIVER["repository"], **driver.get("repository", {})},
    }


def driver(base: dict[str, Any], **changes: Any) -> Change:
    return also(rdma_driver={**base, **changes})


DRIVER_PROBLEMS: list[tuple[Change, str]] = [
    (driver({"stack": "mlnx_ofed"}), "rdma_driver.version is missing: mlnx_ofed requires it"),
    (driver({"stack": "mlnx_ofed"}), "rdma_driver.source is missing: mlnx_ofed requires it"),
    (driver(BUNDLE, checksum=None), "rdma_driver.checksum is missing: mlnx_ofed requires it"),
    (driver({"stack": "doca", "version": "3.2.0"}), "rdma_driver.repository.key is missing: doca requires it"),
    (driver({"stack": "doca", "version": "3.2.0"}), "rdma_driver.repository.key_checksum is missing: doca requires it"),
    (driver(BUNDLE, checksum="md5:1"), "rdma_driver.checksum must be 'sha256:' and 64 hexadecimal digits"),
    (driver(BUNDLE, checksum=f"sha256:{'0' * 63}"), "rdma_driver.checksum must be 'sha256:' and 64 hexadecimal digits"),
    (driver(BUNDLE, version="3.2.0"), "rdma_driver.version is 3.2.0, which is not a version of mlnx_ofed"),
    (driver(BUNDLE, version="latest"), "rdma_driver.version must be a version in quotes"),
    (driver(DOCA, version="24.10-1.1.4.0"), "rdma_driver.version is 24.10-1.1.4.0, which is not a version of doca"),
    (driver({}, version="3.2.0"), "rdma_driver.version is given, but `stack: keep` uses the installed version"),
    (
        driver({}, stack="inbox", version="3.2.0"),
        "rdma_driver.version is given, but the distribution determines the version of the inbox stack",
    ),
    (driver({}, source={"file": "a"}), "rdma_driver.source is given, but only the stack mlnx_ofed reads it"),
    (driver(BUNDLE, source={"file": "a", "url": "https://a/b"}), "rdma_driver.source must be one of file, host_file, url"),
    (driver(BUNDLE, source={"url": "https://me:secret@example.org/b"}), "rdma_driver.source.url must be a URL without a user or a query"),
    (driver(BUNDLE, flags=["--force; reboot"]), "rdma_driver.flags[0] must be one long option of mlnxofedinstall"),
    (driver(BUNDLE, repository=DOCA["repository"]), "rdma_driver.repository.key is given, but only the stack doca reads it"),
    (driver({}, stack="inbox", hold_kernel=True), "rdma_driver.hold_kernel is true, but the inbox stack is not built for a kernel"),
    (driver({}, module_options={"mlx5_core": "prof_sel=3; reboot"}), "rdma_driver.module_options.mlx5_core must be module parameters"),
    (also(rdma_firmware={"settings": {"link_type": 1}}), "a name in rdma_firmware.settings must be the name of a firmware setting"),
    (
        also(rdma_firmware={"versions": {"MT_0000000838": 28.39}}),
        "rdma_firmware.versions.MT_0000000838 must be a string in quotes; got 28.39",
    ),
]


@pytest.mark.parametrize(("change", "words"), DRIVER_PROBLEMS, ids=[words for _change, words in DRIVER_PROBLEMS])
def test_a_problem_of_the_driver_is_named(change: Change, words: str) -> None:
    assert any(str(problem).startswith(words) for problem in problems(change)), problems(change)


PROBLEMS: list[tuple[Change, str, str]] = [
    (rail(0, adress="x"), "intent.key", "rdma_rails[0] has no key 'adress': did you mean 'address'?"),
    (also(rdma_driver={"stak": "inbox"}), "intent.key", "rdma_driver has no key 'stak': did you mean 'stack'?"),
    (also(rdma_driver={5: 1}), "intent.key", "rdma_driver has no key 5: the keys are stack"),
    (also(rdma_driver={"stack": "latest"}), "intent.value", "rdma_driver.stack must be one of keep, inbox, doca, mlnx_ofed; got 'latest'"),
    (also(rdma_driver={"stack": "inbox\n"}), "intent.value", "rdma_driver.stack must be one of keep, inbox, doca, mlnx_ofed; got 'inbox"),
    (also(rdma_driver=["inbox"]), "intent.type", "rdma_driver must be a dictionary; got ['inbox']"),
    (lambda v: v["rdma_rails"][0].pop("name"), "intent.key", "rdma_rails[0].name is missing"),
    (rail(0, name=None), "intent.key", "rdma_rails[0].name is missing"),
    (rail(0, mtu_bytes="9000"), "intent.type", "rdma_rails[0].mtu_bytes must be an integer; got '9000'"),
    (rail(0, mtu_bytes=True), "intent.type", "rdma_rails[0].mtu_bytes must be an integer; got True"),
    (rail(0, mtu_bytes=1000), "intent.value", "rdma_rails[0].mtu_bytes must be at least 1280; got 1000"),
    (rail(0, mtu_bytes=16**5000), "intent.value", "rdma_rails[0].mtu_bytes must be at most 65535; got an integer too"),
    (rail(0, rate_gbps=True), "intent.type", "rdma_rails[0].rate_gbps must be a number; got True"),
    (rail(0, rate_gbps=float("nan")), "intent.value", "rdma_rails[0].rate_gbps must be a finite number; got nan"),
    (rail(0, soft=1), "intent.type", "rdma_rails[0].soft must be true or false; got 1"),
    (rail(0, soft="yes"), "intent.type", "rdma_rails[0].soft must be true or false; got 'yes'"),
    (rail(0, address="192.168.100.300/24"), "intent.address", "rdma_rails[0].address must be an IPv4 or IPv6 host address"),
    (rail(0, address="192.168.100.0/24"), "intent.address", "rdma_rails[0].address must be an IPv4 or IPv6 host address"),
    (rail(0, nic={"pci": "3d:00.0"}), "intent.value", "rdma_rails[0].nic.pci must be a PCI address"),
    (rail(0, nic={"interface": "eth1"}), "intent.key", "rdma_rails[0].nic has no key 'interface': the keys are pci"),
    (rail(0, nic={}), "intent.value", "rdma_rails[0].nic must be one of pci, mac, guid; got {}"),
    (lambda v: v["rdma_rails"][0]["nic"].update(mac="52:54:00:1a:01:02"), "intent.value", "rdma_rails[0].nic must be one of pci, mac"),
    (rail(0, nic={"guid": "0x0c42a103007aca9"}), "intent.value", "rdma_rails[0].nic.guid must be a GUID in quotes ('0x0c42a103007aca90'"),
    (rail(0, nic={"guid": "0c:42:a1:03:00:7a:ca:90"}), "intent.value", "rdma_rails[0].nic.guid must be a GUID in quotes"),
    (rail(0, nic={"guid": 0x0C42A103007ACA90}), "intent.type", "rdma_rails[0].nic.guid must be a string in quotes; got 883"),
    (rail(0, nic={"guid": "0x0c42a103007aca90"}), "intent.rails", "rdma_rails[0].nic has a guid, but rail0 is RoCE: name its NIC by pci"),
    (rail(0, name="rail 0; rm -rf /"), "intent.value", "rdma_rails[0].name must be letters"),
    (rail(0, name="rail\n"), "intent.value", "rdma_rails[0].name must be letters"),
    (rail(1, name="rail0"), "intent.rails", "rdma_rails[1].name is rail0, like that of rdma_rails[0]"),
    (rail(1, nic={"pci": "0000:3d:00.0"}), "intent.rails", "rdma_rails[1].nic is 0000:3d:00.0, like that of"),
    (rail(1, address="192.168.100.1/25"), "intent.address", "rdma_rails[1].address is 192.168.100.1, like that of"),
    (rail(1, address="192.168.100.9/24"), "intent.address", "rdma_rails[1].address is in 192.168.100.0/24, like"),
    (lambda v: v["rdma_rails"][0].pop("address"), "intent.address", "rdma_rails[0].address is missing: rail0 is RoCE"),
    (rail(0, link_layer="infiniband"), "intent.rails", "rdma_rails[0].soft is true, but Soft-RoCE is not InfiniBand"),
    (also(rdma_fabric={"planes": {"defalt": {}}}), "intent.rails", "rdma_rails[0].plane is default, which is not in rdma_fabric.planes"),
    (also(rdma_rails=[]), "intent.value", "rdma_rails must be a list with at least one element; got []"),
    (also(rdma_rails=[None]), "intent.type", "rdma_rails[0] must be a dictionary; got None"),
    (also(rdma_rails={}), "intent.type", "rdma_rails must be a list; got {}"),
    (lambda v: v.pop("rdma_rails"), "intent.key", "rdma_rails is missing"),
    (also(rdma_fabric={"planes": {"a": {"ration": 1}}}), "intent.key", "rdma_fabric.planes.a has no key 'ration': did you mean"),
    (also(rdma_fabric={"planes": {"a b": {}}}), "intent.value", "a name in rdma_fabric.planes must be letters"),
    (also(rdma_fabric={"planes": {"a": {"plan": "../x"}}}), "intent.value", "rdma_fabric.planes.a.plan must be a file path"),
    (also(rdma_host={"sysctl": {"vm.x": True}}), "intent.type", "rdma_host.sysctl.vm.x must be a string or an integer; got True"),
    (also(rdma_host={"sysctl": {"vm.x": None}}), "intent.type", "rdma_host.sysctl.vm.x must be a string or an integer; got None"),
    (also(rdma_host={"sysctl": {"vm.x": "1\nkernel.panic=1"}}), "intent.value", "rdma_host.sysctl.vm.x must be a number, or one line"),
    (also(rdma_host={"sysctl": {"../../etc/x": 1}}), "intent.value", "a name in rdma_host.sysctl must be a kernel parameter"),
    (also(rdma_roce={"dscp": 64}), "intent.value", "rdma_roce.dscp must be at most 63; got 64"),
    (also(rdma_roce={"priorty": 3}), "intent.key", "rdma_roce has no key 'priorty': did you mean 'priority'?"),
    (also(rdma_roce={"dcqcn": {"rpg_ai_rat": 5}}), "intent.key", "rdma_roce.dcqcn has no key 'rpg_ai_rat': did you mean 'rpg_ai_rate'?"),
    (also(rdma_roce={"dcqcn": {"rpg_min_dec_fac": 101}}), "intent.value", "rdma_roce.dcqcn.rpg_min_dec_fac must be at most 100; got 101"),
    (also(rdma_roce={"dcqcn": {"rpg_ai_rate": "5"}}), "intent.type", "rdma_roce.dcqcn.rpg_ai_rate must be an integer; got '5'"),
    (also(rdma_roce={"switches": {"leaf1": {}}}), "intent.key", "rdma_roce.switches.leaf1.ports is missing"),
    (also(rdma_roce={"switches": {"a b": {"ports": ["swp1"]}}}), "intent.value", "a name in rdma_roce.switches must be a host name"),
    (also(rdma_roce={"switches": {"a": {"ports": ["a; b"]}}}), "intent.value", "rdma_roce.switches.a.ports[0] must be a switch port, or"),
    (also(rdma_roce={"switches": {"a": {"ports": ["p1"], "syntax": "nvu"}}}), "intent.value", "rdma_roce.switches.a.syntax must be"),
    (also(rdma_roce={"cnp_dscp": 26}), "intent.value", "rdma_roce.cnp_dscp is 26, like dscp, but with another priority"),
    (also(rdma_roce={}, rdma_nccl={"variables": {"NCCL_IB_TC": 104}}), "intent.value", "rdma_nccl.variables.NCCL_IB_TC is 104, but"),
    (also(rdma_partitions={"a": {**PARTITION, "key": 0x8001}}), "intent.value", "rdma_partitions.a.key must be at most 32767; got 32769"),
    (also(rdma_partitions={"a": PARTITION, "b": PARTITION}), "intent.value", "rdma_partitions.b.key is 0x0001, like that of a"),
    (also(rdma_partitions={"a": {**PARTITION, "members": ["a", None]}}), "intent.type", "rdma_partitions.a.members[1] must be a string"),
    (also(rdma_partitions={"a": {**PARTITION, "members": "al"}}), "intent.value", "rdma_partitions.a.members must be one of all; got 'al'"),
    (also(rdma_partitions={"a": {"key": 1}}), "intent.key", "rdma_partitions.a.members is missing"),
    (also(rdma_fabric={"planes": {"default": {"subnet_manager": {}}}}), "intent.value", "rdma_fabric.planes.default.subnet_manager.hosts"),
    (also(rdma_gpudirect={"path": None, "x": 1}), "intent.key", "rdma_gpudirect has no key 'x': the keys are path"),
    (also(rdma_nccl={"version": 2.20}), "intent.type", "rdma_nccl.version must be a string in quotes; got 2.2"),
    (also(rdma_nccl={"variables": {"LD_PRELOAD": "x"}}), "intent.value", "a name in rdma_nccl.variables must be the name of an NCCL"),
    (also(rdma_nccl={"variables": {"NCCL_X": "a\nb"}}), "intent.value", "rdma_nccl.variables.NCCL_X must be a number, or letters"),
    (also(rdma_pairs={"fail_below": 0.99}), "intent.value", "rdma_pairs.fail_below is 0.99, which is more than warn_below, 0.95"),
    (also(rdma_pairs={"mtu_bytes": 1500}), "intent.value", "rdma_pairs.mtu_bytes is 1500, which is not an RDMA MTU"),
    (also(rdma_pairs={"queue_pairs": 0}), "intent.value", "rdma_pairs.queue_pairs must be at least 1; got 0"),
    (also(rdma_collectives={"min_busbw_gbps": -1}), "intent.value", "rdma_collectives.min_busbw_gbps must be at least 0; got -1"),
    (
        also(rdma_collectives={"max_bytes": 2**28}),
        "intent.value",
        "rdma_collectives.max_bytes is 268435456, which is less than min_bytes, 1073741824 by default",
    ),
    (
        also(rdma_collectives={"min_bytes": 2**34}),
        "intent.value",
        "rdma_collectives.min_bytes is 17179869184, which is more than max_bytes, 8589934592 by default",
    ),
    (
        also(rdma_collectives={"min_bytes": 9, "max_bytes": 8}),
        "intent.value",
        "rdma_collectives.min_bytes is 9, which is more than max_bytes, 8",
    ),
    (also(rdma_gate={"policy": "quarantine"}), "intent.key", "rdma_gate.max_failed_percent is missing: the policy quarantine"),
    (also(rdma_gate={"max_failed_percent": 5}), "intent.value", "rdma_gate.max_failed_percent is 5, but the policy stop means 0"),
    (also(rdma_gate={"max_failed_percent": 101}), "intent.value", "rdma_gate.max_failed_percent must be at most 100; got 101"),
    (also(rdma_checks={"link.state": {"silenced_by": "me", "until": "2026-12-31"}}), "intent.key", "rdma_checks.link.state.reason"),
    (also(rdma_checks={"link.state": {"silenced_by": "me", "reason": "x"}}), "intent.key", "rdma_checks.link.state.until is missing"),
    (also(rdma_checks={"link.state": {"until": "2026-02-30"}}), "intent.value", "rdma_checks.link.state.until must be a date"),
    (also(rdma_checks={"link.state": {"until": datetime.datetime(2026, 1, 1)}}), "intent.value", "rdma_checks.link.state.until must be a"),
    (also(rdma_checks={"link.state": {"reason": "a\nb"}}), "intent.value", "rdma_checks.link.state.reason must be one line of printable"),
    (also(rdma_checks={"link.state": {"silenced_by": ""}}), "intent.value", "rdma_checks.link.state.silenced_by must be one line"),
    (also(rdma_checks={"link state": {}}), "intent.value", "a name in rdma_checks must be a check id (link.state); got 'link state'"),
    (also(rdma_checks={"link.stat": {}}), "intent.key", "rdma_checks.link.stat is not a check of this collection: did you mean"),
    (also(rdma_checks={"link.state": {"threshold": 0.5}}), "intent.value", "rdma_checks.link.state.threshold is given, but"),
    (also(rdma_checks={"link.state": {"severity": "none"}}), "intent.value", "rdma_checks.link.state.severity must be one of"),
    (also(rdma_ralis=[]), "intent.key", "rdma_ralis is not a variable of this collection: did you mean 'rdma_rails'?"),
    (also(rdma_load_alowed=1), "intent.key", "rdma_load_alowed is not a variable of this collection: did you mean 'rdma_load_allowed'?"),
    (also({"rdma_\n": 1}), "intent.key", "'rdma_\\n' is not a variable of this collection: did you mean"),
    (also(rdma_measure="maybe"), "intent.value", "rdma_measure must be one of auto, true, false; got 'maybe'"),
    (also(rdma_load_allowed="perhaps"), "intent.type", "rdma_load_allowed must be true or false; got 'perhaps'"),
    (also(rdma_proof_max_age_hours="nan"), "intent.value", "rdma_proof_max_age_hours must be a finite number; got nan"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "check", "expected"), PROBLEMS)
def test_a_problem_is_named(change: Change, check: str, expected: str) -> None:
    found = problems(change)
    assert [problem.check for problem in found if str(problem).startswith(expected)] == [check], [str(problem) for problem in found]


def test_all_problems_are_reported_at_once() -> None:
    def change(variables: dict[str, Any]) -> None:
        variables["rdma_rails"][0]["mtu_bytes"] = 1
        variables["rdma_rails"][1]["adress"] = "x"
        variables["rdma_pairs"] = {"duration": 3}
        variables["rdma_gate"] = {"policy": "quarantine"}
        variables["rdma_ralis"] = []

    assert len(problems(change)) == 5


GATEWAYS: list[tuple[dict[str, Any], str]] = [
    ({"gateway": "192.168.101.254"}, "rdma_rails[0].gateway is 192.168.101.254, which is not in the rail's subnet 192.168.100.0/24"),
    ({"gateway": "192.168.100.1"}, "rdma_rails[0].gateway is 192.168.100.1, the rail's own address"),
    ({"gateway": "192.168.100.254/24"}, "rdma_rails[0].gateway must be an IPv4 or IPv6 address without prefix length"),
    ({"routes": ["10.0.0.0/8"]}, "rdma_rails[0].routes is given without a gateway"),
    (
        {"gateway": "192.168.100.254", "routes": ["192.168.100.0/25"]},
        "rdma_rails[0].routes has 192.168.100.0/25, which is in the rail's own",
    ),
    ({"gateway": "192.168.100.254", "routes": ["0.0.0.0/0"]}, "rdma_rails[0].routes[0] must be an IPv4 or IPv6 network with prefix length"),
    (
        {"gateway": "192.168.100.254", "routes": ["10.0.0.1/8"]},
        "rdma_rails[0].routes[0] must be an IPv4 or IPv6 network with prefix length",
    ),
]


@pytest.mark.parametrize(("more", "expected"), GATEWAYS)
def test_a_router_or_a_route_that_cannot_be(more: dict[str, Any], expected: str) -> None:
    found = problems(lambda variables: variables["rdma_rails"][0].update(more))
    assert [problem.check for problem in found if str(problem).startswith(expected)] == ["intent.address"], [str(each) for each in found]


IPV6 = {"address": "2001:DB8:100:0::1/64"}


@pytest.mark.parametrize(
    "text",
    [
        "fe80::1/64", "ff02::1/64", "::1/128", "::/64", "::ffff:192.168.100.1/120", "2001:db8:100::/64", "2001:db8:100::1%eth0/64",
        "2001:db8:100::1", "fec0::1/64", "2001:db8:100::1/129", "2001:db8:100::1%eth0", "::192.168.100.1/96",
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["address", "addresses"])
def test_an_ipv6_address_that_a_rail_cannot_have(key: str, text: str) -> None:
    found = problems(lambda variables: variables["rdma_rails"][0].update({key: text if key == "address" else [text]}))
    place = "rdma_rails[0].address" if key == "address" else "rdma_rails[0].addresses[0]"
    assert [problem.check for problem in found if str(problem).startswith(f"{place} must be an IPv4 or IPv6 host address")] == [
        "intent.address"
    ]


def test_an_ipv6_address_is_compressed_and_further_ones_are_of_any_family() -> None:
    variables = copy.deepcopy(GOOD)
    variables["rdma_rails"][0].update(
        IPV6, addresses=["192.168.100.1/24", "2001:db8:100::2/64"], gateway="fe80::1", routes=["2001:db8::/32"]
    )
    variables["rdma_rails"][1]["address"] = "2001:db8:101::1/64"
    rail = normalize(variables)["rails"][0]
    assert (rail["address"], rail["addresses"]) == ("2001:db8:100::1/64", ["192.168.100.1/24", "2001:db8:100::2/64"])
    assert (rail["gateway"], rail["routes"]) == ("fe80::1", ["2001:db8::/32"])


IPV6_CONFLICTS: list[tuple[dict[str, Any], str]] = [
    ({**IPV6, "gateway": "192.168.100.254"}, "rdma_rails[0].gateway is 192.168.100.254, but the rail's address 2001:db8:100::1/64 is IPv6"),
    (
        {**IPV6, "gateway": "2001:db8:101::1"},
        "rdma_rails[0].gateway is 2001:db8:101::1, which is not in the rail's subnet 2001:db8:100::/64",
    ),
    ({**IPV6, "gateway": "2001:db8:100::1"}, "rdma_rails[0].gateway is 2001:db8:100::1, the rail's own address"),
    ({**IPV6, "gateway": "fe80::1%eth0"}, "rdma_rails[0].gateway must be an IPv4 or IPv6 address without prefix length"),
    ({**IPV6, "gateway": "ff02::1"}, "rdma_rails[0].gateway must be an IPv4 or IPv6 address without prefix length"),
    ({"gateway": "fe80::1"}, "rdma_rails[0].gateway is fe80::1, but the rail's address 192.168.100.1/24 is IPv4"),
    (
        {**IPV6, "gateway": "fe80::1", "routes": ["10.0.0.0/8"]},
        "rdma_rails[0].routes has 10.0.0.0/8, but the rail's address 2001:db8:100::1/64 is IPv6",
    ),
    (
        {**IPV6, "gateway": "fe80::1", "routes": ["2001:db8:100:0:8000::/65"]},
        "rdma_rails[0].routes has 2001:db8:100:0:8000::/65, which is in the rail's own subnet",
    ),
    ({**IPV6, "gateway": "fe80::1", "routes": ["fe80::/64"]}, "rdma_rails[0].routes[0] must be an IPv4 or IPv6 network"),
    ({"addresses": ["192.168.100.1/16"]}, "rdma_rails[0].addresses has 192.168.100.1, like that of rail0"),
    ({"addresses": ["192.168.101.9/24"]}, "rdma_rails[0].addresses has 192.168.101.9/24, whose subnet overlaps 192.168.101.0/24 of rail1"),
    (
        {"address": None, "link_layer": "infiniband", "soft": False, "addresses": ["192.168.7.1/24"]},
        "rdma_rails[0].addresses are given without",
    ),
    (IPV6, "rdma_rails[1].address is 192.168.101.1/24, but rail0 has 2001:db8:100::1/64: NCCL uses one family for all rails of a host"),
    ({**IPV6, "mtu_bytes": 1279}, "rdma_rails[0].mtu_bytes must be at least 1280"),
]


@pytest.mark.parametrize(("more", "expected"), IPV6_CONFLICTS)
def test_conflicts_of_ipv6_and_of_further_addresses(more: dict[str, Any], expected: str) -> None:
    found = problems(lambda variables: variables["rdma_rails"][0].update(more))
    assert [str(problem) for problem in found if str(problem).startswith(expected)], [str(each) for each in found]


def test_rails_of_different_families_do_not_overlap() -> None:
    variables = copy.deepcopy(GOOD)
    variables["rdma_rails"][0].update(address="2001:db8::1/16", role="storage")
    assert normalize(variables)["rails"][0]["address"] == "2001:db8::1/16"


def test_two_rails_that_claim_one_route() -> None:
    def change(variables: dict[str, Any]) -> None:
        for number, rail in enumerate(variables["rdma_rails"][:2]):
            rail.update(gateway=f"192.168.10{number}.254", routes=[f"10.{number}.0.0/16" if number else "10.0.0.0/8"])

    [problem] = problems(change)
    assert str(problem).startswith(
        "rdma_rails[1].routes has 10.1.0.0/16, which overlaps 10.0.0.0/8 of rail0: the main table cannot use both"
    )


@pytest.mark.parametrize("given", ["0x0C42A103007ACA90", "0c42:a103:007a:ca90", "0c42a103007aca90"])
def test_a_guid_in_each_form(given: str) -> None:
    rail = {"name": "rail0", "nic": {"guid": given}, "link_layer": "infiniband"}
    assert normalize({"rdma_rails": [rail]})["rails"][0]["nic"] == {"guid": "0x0c42a103007aca90"}


PTPS: list[tuple[dict[str, Any], str]] = [
    ({}, "rdma_host.time.ptp.rail is missing, and so is `interface`"),
    ({"rail": "rail0", "interface": "eth1"}, "rdma_host.time.ptp.interface is eth1, but a rail is given too"),
    ({"rail": "rial0"}, "rdma_host.time.ptp.rail is rial0, which is not a rail of this host: did you mean 'rail0'?"),
    ({"rail": "rail9", "domain": 128}, "rdma_host.time.ptp.domain must be at most 127"),
    ({"rail": "rail0", "transport": "UDPv6"}, "rdma_host.time.ptp.transport must be one of UDPv4, L2"),
    ({"rail": "rail0", "max_offset": 1}, "rdma_host.time.ptp has no key 'max_offset': did you mean 'max_offset_ns'?"),
    ({"rail": "rail0", "grandmaster": "node1"}, "rdma_host.time.ptp.grandmaster is node1, but with hardware time stamps"),
    ({"interface": "eth1/x"}, "rdma_host.time.ptp.interface must be an interface name"),
]


@pytest.mark.parametrize(("ptp", "expected"), PTPS)
def test_ptp_that_cannot_be(ptp: dict[str, Any], expected: str) -> None:
    found = problems(lambda variables: variables.update(rdma_host={"time": {"manage": True, "ptp": ptp}}))
    assert [str(problem) for problem in found if str(problem).startswith(expected)], [str(each) for each in found]


def test_ptp_on_an_infiniband_rail_or_without_chrony() -> None:
    def change(variables: dict[str, Any]) -> None:
        variables["rdma_rails"][0].update(link_layer="infiniband", soft=False)
        variables["rdma_host"] = {"time": {"ptp": {"rail": "rail0"}}}

    found = [str(each) for each in problems(change)]
    assert any(each.startswith("rdma_host.time.ptp is given, but `manage` is false") for each in found), found
    assert any(each.startswith("rdma_host.time.ptp.rail is rail0, which is InfiniBand: PTP needs Ethernet") for each in found), found


def test_ptp_has_defaults_only_where_it_is_given() -> None:
    assert normalize(copy.deepcopy(GOOD))["host"]["time"]["ptp"] is None
    given = {**copy.deepcopy(GOOD), "rdma_host": {"time": {"manage": True, "ptp": {"rail": "rail0"}}}}
    assert normalize(given)["host"]["time"]["ptp"] == {
        "rail": "rail0", "interface": None, "domain": 0, "transport": "UDPv4", "timestamping": "hardware", "max_offset_ns": None,
        "grandmaster": None,
    }  # fmt: skip


def test_rails_in_one_subnet_if_the_fabric_says_so() -> None:
    variables = copy.deepcopy(GOOD)
    variables["rdma_rails"][1]["address"] = "192.168.100.9/24"
    variables["rdma_fabric"] = {"shared_subnet": True}
    assert normalize(variables)["fabric"]["shared_subnet"] is True


@pytest.mark.parametrize(
    "more",
    [
        {"rdma_load_allowed": "False", "rdma_measure": "yes", "rdma_proof_max_age_hours": "24", "rdma_serial": "25%"},
        {"rdma_load_allowed": False, "rdma_measure": True, "rdma_proof_max_age_hours": 24, "rdma_serial": [1, "10%"]},
        {"rdma_hosts": "all:!gpu1", "rdma_run_dir": "/var/lib/runs", "rdma_stage": "driver", "rdma_intent": {}},
        {"rdma_modules_reload_required": True, "ansible_user": "root"},
    ],
)
def test_variables_of_a_run_and_our_own_are_known(more: dict[str, Any]) -> None:
    assert normalize({**GOOD, **more}) == normalize(GOOD)


INVENTORY = """\
rdma_rails:
  - name: rail0
    nic: {pci: 3d:00.0}
    adress: x
    soft: 5
rdma_gate:
  policy: quarantine
"""


def test_a_problem_says_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    monkeypatch.chdir(tmp_path)
    found = {problem.where: problem.origin for problem in problems_of(DataLoader().load_from_file(str(tmp_path / "hosts.yml")))}
    assert found == {
        "rdma_rails[0]": "hosts.yml:4",
        "rdma_rails[0].nic.pci": "hosts.yml:3",
        "rdma_rails[0].soft": "hosts.yml:5",
        "rdma_gate.max_failed_percent": "hosts.yml:7",
    }


def test_a_truth_value_has_the_place_of_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hosts.yml").write_text("rdma_rails:\n  - name: rail0\n    nic: {pci: '0000:3d:00.0'}\n    mtu_bytes: true\n")
    given = DataLoader().load_from_file(str(tmp_path / "hosts.yml"))
    monkeypatch.chdir("/")
    assert str(problems_of(given)[0]).endswith(f"got True ({str(tmp_path).lstrip('/')}/hosts.yml:4)")


def test_an_intent_is_read_where_ansible_has_no_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ansible._internal._datatag._tags", None)
    assert normalize(GOOD)["driver"]["stack"] == "keep"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=4),
    max_leaves=10,
)


def near(key: Key) -> st.SearchStrategy[Any]:
    """Values of about the right shape: what a person writes who has read half of the documentation."""
    right: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, 1, 5, 2.5, 9000, "a", "rail0", "192.168.1.1/24", *key.choices])
    if key.keys is not None:
        right = st.fixed_dictionaries({}, optional={name: near(inner) for name, inner in key.keys.items()})
    elif key.each is not None and key.names is not None:
        right = st.dictionaries(st.sampled_from(["a", "link.state", "vm.x", "NCCL_X", 5]), near(key.each), max_size=2)
    elif key.each is not None:
        right = st.lists(near(key.each), max_size=2)
    return st.one_of(right, right, right, ANYTHING)


VARIABLES = st.fixed_dictionaries(
    {}, optional={**{name: near(section.key) for name, section in SECTIONS.items()}, **{name: near(key) for name, key in RUN.items()}}
)


def only_intent_errors(variables: dict[str, Any]) -> bool:
    """True: either an intent, whose text JSON has, or problems in one line each."""
    found: list[IntentProblem] = []
    try:
        intent = normalize(variables)
    except IntentError as error:
        found = error.problems
    else:
        assert json.loads(json.dumps(intent, allow_nan=False))["rails"]
        return True
    assert found
    assert all(str(problem).isprintable() for problem in found), found
    assert all(re.fullmatch(r"intent\.[a-z]+", problem.check) for problem in found)
    return True


@given(VARIABLES)
def test_nothing_but_an_intent_error_on_what_is_nearly_right(variables: dict[str, Any]) -> None:
    assert only_intent_errors({**GOOD, **variables})


@given(st.dictionaries(st.sampled_from([*SECTIONS, *RUN]) | st.text(max_size=10).map("rdma_{}".format), ANYTHING, max_size=6))
def test_nothing_but_an_intent_error_on_anything(variables: dict[str, Any]) -> None:
    assert only_intent_errors(variables)


SECRETS = [
    "https://ada:s3cret@example.org/key",
    "https://ada:s3cret@example.org:8443/key",
    "https://ada:s3/cr?et@example.org/key",
    "https://ada:s3 cr'et@example.org/key",
    "https://ada:s3@cr@et@example.org/key",
    "https://s3cret@example.org/key",
    "ada:s3cret@example.org/key",
    "https:/ada:s3cret@example.org/key",
    "https:ada:s3cret@example.org/key",
    "ftp://ada:s3cret@example.org/" + "x" * 200,
    "https://example.org/key?token=s3cret",
    "https://ada:s3\ncret@example.org/key",
]


def places(secret: Any) -> list[dict[str, Any]]:
    """Where an intent has URLs, and where somebody might put one."""
    doca = {"stack": "doca", "version": "3.2.0"}
    return [
        {"rdma_driver": {**doca, "repository": {"url": secret}}},
        {"rdma_driver": {**doca, "repository": {"key": {"url": secret}}}},
        {"rdma_driver": {**doca, "repository": {"key": {"url": secret, "file": "key"}}}},
        {"rdma_driver": {**doca, "repository": {"key": secret}}},
        {"rdma_driver": {**doca, "repository": {secret: "url"}}},
        {"rdma_driver": {**doca, "repository": [secret]}},
        {"rdma_driver": {"stack": "mlnx_ofed", "version": "24.10-1.1.4.0", "source": {"url": secret}}},
        {"rdma_nccl": {"install": {"kind": "files", "packages": {"libnccl2": {"version": "2.20.5-1", "source": {"url": secret}}}}}},
        {"rdma_partitions": {secret: {"key": 1}}},
        {"rdma_roce": secret},
    ]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("place", range(len(places(""))))
def test_the_password_of_a_url_is_never_shown(place: int, secret: str) -> None:
    with pytest.raises(IntentError) as caught:
        normalize(places(secret)[place])
    shown = [str(caught.value), *map(str, findings("node1", caught.value.problems)), *map(repr, caught.value.problems)]
    assert [text for text in shown if re.search(r"s3|cr\W?et|cret", text)] == []


def test_a_refused_value_without_a_secret_is_shown_as_it_is() -> None:
    with pytest.raises(IntentError, match=re.escape("got 'ftp://example.org/key'")):
        normalize(places("ftp://example.org/key")[0])
