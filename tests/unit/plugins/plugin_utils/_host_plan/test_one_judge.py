# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the plan sends a role to, the gate complains of and the explanation marks: one value at a time of a running host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import CpuRequest, cpu_files
from ansible_collections.rdma.cluster.plugins.module_utils._net.rings import RailRings, rules_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.explain import explain
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import MARK
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan.plan import PERMITS, host_plan
from tests.unit.builders.hosts import lab_facts, lab_intent, on_host

Facts = dict[str, Any]
INTENT = lab_intent(
    host={
        "cpu": {"governor": "performance", "max_cstate_latency_us": 10, "irqbalance": "disabled"},
        "open_files": 4096,
        "keep_ipc": True,
        "rings": {"rx": 4096, "tx": 4096},
    }
)
ARP = "net.ipv4.conf.all.arp_ignore"
RINGS = {"rx": 4096, "tx": 4096, "rx_max": 8192, "tx_max": 8192}
IDLE = {"C1": {"latency_us": 2, "cpus": 2, "disabled": 0}, "C6": {"latency_us": 133, "cpus": 2, "disabled": 2}}


def converged() -> Facts:
    facts = lab_facts()
    facts["cpu"] = {
        "driver": "acpi-cpufreq", "governors": {"performance": 2}, "available": ["performance", "powersave"],
        "idle_states": {name: dict(state) for name, state in IDLE.items()}, "latency_us": None, "tuned": None,
    }  # fmt: skip
    facts["units"].update({name: {"active": on, "enabled": on} for name, on in (("rdma-cpu.service", True), ("irqbalance.service", False))})
    facts["limits"].update(service_open_files=4096, remove_ipc=False)
    facts["limits"]["login_open_files"] = {
        who: {"unlimited": False, "value": "4096", "file": limits.LOGIN_FILE, "line": 2} for who in ("*", "root")
    }
    for name in ("ens1", "ens2"):
        facts["netdevs"][name]["ethtool"] = {**(facts["netdevs"][name].get("ethtool") or {}), "rings": dict(RINGS)}
    requested = [RailRings(rail["name"], rail["nic"], f"ens{number}", 4096, 4096) for number, rail in enumerate(INTENT["rails"], 1)]
    planned = limits.LimitsRequest(memlock_unlimited=True, open_files=4096, keep_ipc=True)
    facts["files"].update(on_host([*cpu_files(CpuRequest("performance", 10), None), *rules_file(requested), *limits.files(planned)]))
    return facts


def plan(facts: Facts) -> set[str]:
    found = host_plan("node1", INTENT, from_dict(facts), dict.fromkeys(PERMITS, False))
    return {name for name, work in found.items() if work is True and name in ("cpu", "irqbalance", "limits", "rings", "network", "sysctl")}


def complaints(facts: Facts) -> set[tuple[str, str]]:
    found = [each for stage in ("host", "network") for each in HOST_CHECKS[stage]("node1", INTENT, from_dict(facts))]
    judged = ("host.cpu", "host.memlock", "host.files", "host.ipc", "host.rings", "host.sysctl", "network.mtu", "network.address")
    return {(each.check, each.subject) for each in found if each.check in judged and each.status in (ERROR, WARNING)}


def marked(facts: Facts) -> set[str]:
    """The lines of an explanation that ask for attention."""
    return {line for line in explain("node1", INTENT, facts).splitlines() if line.startswith(MARK)}


def test_of_a_host_as_planned_nobody_complains() -> None:
    facts = converged()
    assert (plan(facts), complaints(facts)) == (set(), set())


DRIFTS: list[tuple[str, Callable[[Facts], None], str, str, bool]] = [
    ("governor", lambda facts: facts["cpu"].update(governors={"powersave": 1, "performance": 1}), "cpu", "host.cpu", True),
    ("idle state", lambda facts: facts["cpu"]["idle_states"]["C6"].update(disabled=1), "cpu", "host.cpu", True),
    ("irqbalance", lambda facts: facts["units"]["irqbalance.service"].update(active=True), "irqbalance", "host.cpu", False),
    (
        "memlock",
        lambda facts: facts["limits"]["service_memlock"].update(unlimited=False, bytes=8388608),
        "limits",
        "host.memlock",
        True,
    ),
    ("open files", lambda facts: facts["limits"].update(service_open_files=4095), "limits", "host.files", True),
    ("shared memory", lambda facts: facts["limits"].update(remove_ipc=True), "limits", "host.ipc", False),
    ("ring", lambda facts: facts["netdevs"]["ens2"]["ethtool"]["rings"].update(tx=1024), "rings", "host.rings", False),
    ("kernel setting now", lambda facts: facts["sysctl"]["live"].update({ARP: "0"}), "sysctl", "host.sysctl", True),
    ("kernel setting at boot", lambda facts: facts["sysctl"]["boot"][ARP].update(value="0"), "sysctl", "host.sysctl", True),
    ("address", lambda facts: facts["netdevs"]["ens1"].update(ipv4=["192.168.100.1/16"]), "network", "network.address", True),
    ("MTU", lambda facts: facts["netdevs"]["ens1"].update(mtu_bytes=1500), "network", "network.mtu", True),
]


@pytest.mark.parametrize(("change", "concern", "check", "is_explained"), [each[1:] for each in DRIFTS], ids=[each[0] for each in DRIFTS])
def test_plan_gate_and_explanation_judge_alike(change: Callable[[Facts], None], concern: str, check: str, is_explained: bool) -> None:
    facts = converged()
    change(facts)
    found = complaints(facts)
    assert plan(facts) == {concern}
    assert {name for name, _subject in found} == {check}
    assert len(found) == 1
    assert bool(marked(facts) - marked(converged())) == is_explained
