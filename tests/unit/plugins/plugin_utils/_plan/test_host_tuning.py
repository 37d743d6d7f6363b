# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host stage derives for rings, CPUs and clock, over the facts of a lab machine."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import time_files
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import Tuned
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import CpuRequest, cpu_files
from ansible_collections.rdma.cluster.plugins.module_utils._net.rings import RailRings, rules_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import (
    cpu_differs,
    irqbalance_differs,
    ring_settings,
    rings_differ,
    time_content,
    time_differs,
)
from tests.unit.builders.hosts import lab_facts, lab_intent, on_host

RINGS = lab_intent(host={"rings": {"rx": 8192, "tx": 128}})
NIC0, NIC1 = {"pci": "0000:21:00.0"}, {"pci": "0000:41:00.0"}
WANTED = [
    {"name": "rail0", "nic": NIC0, "netdev": "ens1", "rx": 256, "tx": 128},
    {"name": "rail1", "nic": NIC1, "netdev": "ens2", "rx": 256, "tx": 128},
]


def with_files(facts: dict[str, Any], *files: Any) -> dict[str, Any]:
    facts["files"].update(on_host(files))
    return facts


def with_rings(tx: int = 128) -> dict[str, Any]:
    facts = with_files(lab_facts(), *rules_file([RailRings(**rail) for rail in WANTED]))
    for name in ("ens1", "ens2"):
        facts["netdevs"][name]["ethtool"]["rings"]["tx"] = tx
    return facts


def test_rings_are_the_request_or_the_most_of_the_hardware() -> None:
    assert ring_settings(RINGS, from_dict(lab_facts())) == WANTED
    assert ring_settings(lab_intent(), from_dict(lab_facts())) == []


def test_a_nic_that_reports_no_rings_or_is_not_there_is_left() -> None:
    facts = lab_facts()
    facts["netdevs"]["ens1"]["ethtool"] = None
    facts["netdevs"]["ens2"]["pci"] = "0000:51:00.0"
    assert ring_settings(RINGS, from_dict(facts)) == []


def test_whether_rings_differ() -> None:
    assert rings_differ(RINGS, from_dict(with_rings())) is False
    assert rings_differ(RINGS, from_dict(with_rings(tx=256))) is True
    assert rings_differ(RINGS, from_dict(lab_facts())) is True
    assert rings_differ(RINGS, from_dict({})) is True
    assert rings_differ(lab_intent(), from_dict(with_rings())) is True
    assert rings_differ(lab_intent(), from_dict(lab_facts())) is False


REQUEST = lab_intent(host={"cpu": {"governor": "performance"}})
UNIT = {"active": True, "enabled": True}


def with_cpu(governor: str = "performance", tuned: Tuned | None = None) -> dict[str, Any]:
    facts = with_files(lab_facts(), *cpu_files(CpuRequest("performance", None), tuned))
    facts["cpu"].update(governors={governor: 2}, tuned={"profile": tuned.profile, "base": tuned.base} if tuned else None)
    facts["units"]["rdma-cpu.service"] = {"active": tuned is None, "enabled": tuned is None}
    return facts


CPUS = [
    pytest.param(REQUEST, with_cpu(), False, id="converged"),
    pytest.param(REQUEST, with_cpu("powersave"), True, id="another governor"),
    pytest.param(REQUEST, with_cpu(tuned=Tuned("rdma-cluster", "balanced")), False, id="by tuned"),
    pytest.param(REQUEST, with_cpu(tuned=Tuned("balanced", "balanced")), True, id="tuned has another profile"),
    pytest.param(REQUEST, {**with_cpu(), "units": {}}, True, id="no unit"),
    pytest.param(REQUEST, {**with_cpu(), "cpu": None}, True, id="not read"),
    pytest.param(REQUEST, {}, True, id="no facts"),
    pytest.param(lab_intent(), with_cpu(), True, id="nobody wants it any more"),
    pytest.param(lab_intent(), lab_facts(), False, id="nobody wants anything"),
    pytest.param(lab_intent(), {**lab_facts(), "cpu": None}, False, id="nobody wants anything, not read"),
]


@pytest.mark.parametrize(("intent", "facts", "expected"), CPUS)
def test_whether_cpus_differ(intent: dict[str, Any], facts: dict[str, Any], expected: bool) -> None:
    assert cpu_differs(intent, from_dict(facts)) is expected


def test_whether_irqbalance_differs() -> None:
    off, on = (lab_intent(host={"cpu": {"irqbalance": word}}) for word in ("disabled", "enabled"))
    assert [irqbalance_differs(requested, from_dict(lab_facts())) for requested in (lab_intent(), off, on)] == [False, False, True]
    assert [irqbalance_differs(requested, from_dict({})) for requested in (lab_intent(), off, on)] == [False, True, True]


TIME = lab_intent(host={"time": {"manage": True, "servers": ["ntp1.example.com", "192.0.2.1"]}})


def with_chrony(unit: str = "chrony.service", **sources: str) -> dict[str, Any]:
    facts = with_files(lab_facts(), *time_files(TIME["host"]["time"]["servers"]))
    facts["units"][unit] = UNIT
    facts["time"] = {"chrony": {"sources": {"ntp1.example.com": "*", "192.0.2.1": "?", "pool.example.com": "+"}, **sources}}
    return facts


def test_the_servers_in_chronys_words() -> None:
    assert (time_content(TIME) or "").splitlines()[1:] == ["server ntp1.example.com iburst", "server 192.0.2.1 iburst"]
    assert time_content(lab_intent()) is None


def test_whether_the_clock_differs() -> None:
    assert time_differs(TIME, from_dict(with_chrony())) is False
    assert time_differs(TIME, from_dict(with_chrony("chronyd.service"))) is False
    assert time_differs(lab_intent(), from_dict({})) is False
    assert time_differs(TIME, from_dict({})) is True
    assert time_differs(TIME, from_dict(lab_facts())) is True
    unknown, stopped, alone = with_chrony(), with_chrony(), with_chrony()
    del unknown["time"]["chrony"]["sources"]["192.0.2.1"]
    stopped["units"]["chrony.service"] = {"active": False, "enabled": True}
    alone["files"].pop("/etc/chrony/sources.d/rdma-cluster.sources")
    assert [time_differs(TIME, from_dict(facts)) for facts in (unknown, stopped, alone)] == [True, True, True]
