# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a drill of hosts: which permissions cannot be used, and which checks must be ok before a fault."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import DrillFault
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.hosts import HostStep, host_steps_text, not_ok_before, plan_host_steps
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.plan import BOTH, plan_steps
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET
from tests.unit.builders.clos import routed
from tests.unit.builders.hosts import lab_facts, lab_rails
from tests.unit.builders.known import known_of


def allowed(fault: str = "rail_down", host: str | None = "node1", rail: str | None = "rail0", **more: Any) -> DrillFault:
    found: Any = {"switch": None, "port": None, "host": host, "rail": rail, "fault": fault, **more}
    return dict(found)  # type: ignore[return-value]


def known(**rail: Any) -> dict[str, Known]:
    """rail: changed keys of the first rail of node1."""
    rails = {node: lab_rails(node) for node in (1, 2)}
    rails[1][0] |= rail
    return known_of({f"node{node}": {"intent": normalize({"rdma_rails": rails[node]}), "facts": lab_facts(node)} for node in (1, 2)})


def test_each_kind_of_fault() -> None:
    kinds = ("rail_down", "mtu_1500", "address_lost", "gid_moved")
    steps, problems = plan_host_steps([allowed(kind) for kind in kinds], known())
    assert problems == []
    netdev, address = steps[0].netdev, "192.168.100.1/24"
    assert steps == [HostStep(kind, "node1", "rail0", netdev, address) for kind in kinds]
    text = host_steps_text(steps, 90, alerts=True)
    assert text.splitlines() == [
        "The steps of the drill, one after the other; each fault lasts until the gates and the alerts have answered, at most 90 s:",
        f"1. rail_down node1 rail0: set {netdev} of node1 down; link.state must see it.",
        f"2. mtu_1500 node1 rail0: set the MTU of {netdev} of node1 to 1500 bytes; network.mtu or alike.mtu must see it.",
        f"3. address_lost node1 rail0: remove {address} from {netdev} of node1; network.gid or network.address must see it.",
        f"4. gid_moved node1 rail0: remove {address} from {netdev} of node1 and add it again, so that its GID gets a later index; "
        "alike.gid_index or network.gid must see it.",
    ]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (allowed(host="nod1"), "nod1 is not a host of this run; did you mean node1?"),
        (allowed(rail="rail7"), "node1 has no rail rail7; it has rail0, rail1"),
        (allowed(rail=None), BOTH),
        (allowed(port="swp1"), BOTH),
        (allowed(switch="leaf1"), BOTH),
        (allowed(host=None), BOTH),
        (allowed("cut"), "cut is a fault of a switch; on a host use one of rail_down, mtu_1500, address_lost, gid_moved"),
    ],
)
def test_a_permission_that_cannot_be_used(fault: DrillFault, words: str) -> None:
    assert plan_host_steps([fault], known()) == ([], [f"rdma_drill.allow[0]: {words}"])


@pytest.mark.parametrize(
    ("rail", "words"),
    [
        ({"role": "storage"}, "is a rail of storage, whose faults can lose data"),
        ({"vlan": {"id": 7}}, "is on a bond or a VLAN"),
        ({"link_layer": "infiniband", "soft": False, "mtu_bytes": None}, "is not RoCE"),
        ({"nic": {"pci": "0000:99:00.0"}}, "has no interface on this host"),
    ],
)
def test_a_rail_on_which_no_fault_is_made(rail: dict[str, Any], words: str) -> None:
    assert plan_host_steps([allowed()], known(**rail))[1] == [f"rdma_drill.allow[0]: rail0 of node1 {words}"]


def test_a_host_that_was_not_read_has_no_step() -> None:
    hosts = {**known(), "node1": Known(None, None, "the schema differs")}
    assert plan_host_steps([allowed()], hosts)[1] == ["rdma_drill.allow[0]: node1 was not read in this run: the schema differs"]


def test_a_fault_is_listed_once() -> None:
    assert plan_host_steps([allowed(), allowed()], known())[1] == ["rdma_drill.allow[1]: rail_down node1 rail0 is listed twice"]


def test_each_drill_leaves_out_the_faults_of_the_other() -> None:
    both = [allowed(), allowed("cut", None, None, switch="leaf1", port="swp1")]
    steps, problems = plan_host_steps(both, known())
    assert ([step.name for step in steps], problems) == (["rail_down node1 rail0"], [])
    of_switches, problems = plan_steps(both, [routed()], ["host1", "host2"])
    assert ([step.name for step in of_switches], problems) == (["cut leaf1 swp1"], [])
    assert plan_steps([allowed(switch="leaf1")], [routed()], ["host1", "host2"])[1] == [f"rdma_drill.allow[0]: {BOTH}"]
    wrong = allowed("mtu_1500", None, None, switch="leaf1")
    words = "mtu_1500 is a fault of a host: give host and rail, not switch"
    assert plan_steps([wrong], [routed()], ["host1", "host2"])[1] == [f"rdma_drill.allow[0]: {words}"]


def finding(check: str, status: str, host: str = "node1", rail: str = "rail0") -> Finding:
    return Finding("network", check, host, f"rail 0 ({rail}, 0000:21:00.0, ens1)", status, "seen", "expected")


@pytest.mark.parametrize(
    ("seen", "refuses"),
    [
        (finding("network.gid", "unknown"), True),
        (finding("network.gid", "warning"), True),
        (finding("network.gid", "error"), True),
        (finding("network.address", "error"), True),
        (finding("network.address", "unknown"), False),
        (finding("network.gid", "ok"), False),
        (finding("network.gid", "error", rail="rail1"), False),
        (finding("link.state", "error"), False),
    ],
)
def test_a_check_that_is_not_ok_before_the_fault(seen: Finding, *, refuses: bool) -> None:
    step = HostStep("address_lost", "node1", "rail0", "ens1", "192.168.100.1/24")
    found = not_ok_before([step], {"node1": [seen], "node2": [finding("network.gid", "error", "node2")]})
    assert bool(found) is refuses
    if refuses:
        assert found == [f"{seen.check} of node1 is {seen.status} already: rail 0 (rail0, 0000:21:00.0, ens1): seen"]


def test_a_tie_of_the_fleet_before_the_fault_hides_it() -> None:
    step = HostStep("gid_moved", "node1", "rail0", "ens1", "192.168.100.1/24")
    tie = finding("alike.gid_index", "warning", FLEET)
    words = f"alike.gid_index of {FLEET} is warning already: rail 0 (rail0, 0000:21:00.0, ens1): seen"
    assert not_ok_before([step], {"node1": [], FLEET: [tie]}) == [words]


def test_without_permissions_nothing_happens() -> None:
    assert plan_host_steps([], known()) == ([], [])
    assert host_steps_text([], 20, alerts=False).startswith("The drill has no step: rdma_drill.allow permits no fault of a host.")
