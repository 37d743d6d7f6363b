# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of rings: from logs and hostfiles to cables, the better order, what is unknown, and the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.hops import Hops, hops_of_log, hops_of_order, ranges
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.hostfile import HostfileError, read_hostfile
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.log import read_rings
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.plan import RingPlan, ring_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.ports import Ports
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.text import plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.proven import StoredPlane
from tests.unit.builders.fabrics import Fabric, leafspine, rail
from tests.unit.builders.ring_texts import RingJob

REAL = Path(__file__).parents[3] / "fixtures/h100/two_hosts_sockets.txt"
#: Four hosts a leaf; node10 and node6 have each other's place.
SWAPPED = [f"node{number}" for number in (1, 2, 3, 4, 5, 10, 7, 8, 9, 6, 11, 12, 13, 14, 15, 16)]
SPREAD = "Flows count as spread evenly over equal paths: the graph has no forwarding tables, which choose one path for each address."


class Case:
    """A fabric with one plane, whose graph run R1 has stored."""

    def __init__(self, fabric: Fabric) -> None:
        view = View(fabric.graph(), fabric.expected())
        self.planes = {"default": StoredPlane(view, "R1")}
        self.ports = Ports({"default": view}, {})
        self.names = {host: host for host in view.of_host}

    def of_log(self, lines: Iterable[str]) -> RingPlan:
        return self.plan(hops_of_log(read_rings(lines), self.ports, self.names))

    def of_order(self, order: Sequence[str]) -> RingPlan:
        return self.plan(hops_of_order(order, self.ports, self.planes))

    def plan(self, hops: Hops) -> RingPlan:
        return ring_plan(hops, self.ports, self.planes)


@pytest.fixture
def rails() -> Case:
    """Sixteen hosts with two rails; each leaf has one rail of four hosts."""
    return Case(rail(hosts=16, rails=2, spines=2, cables=1, per_leaf=4))


def test_the_rings_of_a_log(rails: Case) -> None:
    text = plan_text(rails.of_log(RingJob(SWAPPED).lines()), "job.log", "/plan/hostfile")
    assert text.splitlines() == [
        "Rings on the cables: 32 ranks on 16 hosts (job.log)",
        "  92 of 92 hops between hosts are on known cables",
        "Plane default, graph of run R1:",
        "  rings: 32 hops, 16 of them leave their leaf",
        "    busiest cable between switches: leaf3 port 5 to spine1 port 3, 1.50 flows; 1.5 times the mean of the 32 loaded ones",
        "    rings 0, 1 each cross spine1, spine2 each 4 times",
        "  trees: 60 hops, 28 of them leave their leaf",
        "    busiest cable between switches: leaf3 port 5 to spine1 port 3, 3 flows; 1.7 times the mean of the 32 loaded ones",
        "    trees 0, 1 each cross spine1, spine2 each 7 times",
        f"    {SPREAD}",
        "2 of 16 hosts are out of order: node10, node6.",
        "With the new order, a ring over all hosts changes its leaf 4 times instead of 8 times.",
        "  plane default, rings: 8 hops leave their leaf instead of 16; "
        "the busiest cable between switches has 0.50 flows instead of 1.50 flows",
        "  plane default, trees: 12 hops leave their leaf instead of 28; the busiest cable between switches has 1 flow instead of 3 flows",
        "Use the hostfile /plan/hostfile, if your launcher numbers the ranks in its order.",
    ]


def test_an_order_of_hosts(rails: Case) -> None:
    plan = rails.of_order(SWAPPED)
    assert plan.order is not None
    assert plan.order.moved == ("node10", "node6")
    assert plan.after is not None
    assert (plan.before["ring"]["default"].away, plan.after["ring"]["default"].away) == (16, 8)
    text = plan_text(plan, "hostfile", "/plan/hostfile").splitlines()
    assert text[:2] == ["Rings on the cables: 16 hosts (hostfile)", "  32 of 32 hops between hosts are on known cables"]
    assert "    rings rail0, rail1 each cross spine1, spine2 each 4 times" in text


def test_one_ring_crosses_one_spine_twice() -> None:
    fabric = leafspine(leaves=2, spines=2, hosts_per_leaf=2, cables=1)
    for leaf in (1, 2):
        fabric.cut((f"leaf{leaf}", 3))
    plan = Case(fabric).of_order(["node1", "node2", "node3", "node4"])
    text = plan_text(plan, "hostfile", "/plan/hostfile")
    assert "    ring rail0 crosses spine2 twice" in text.splitlines()
    assert "No other order of the hosts is better for plane default: a ring over all hosts changes its leaf twice." in text
    assert plan.after is None


def test_a_real_log_over_a_graph() -> None:
    fabric = Fabric()
    for number, host in enumerate(("nodea", "nodeb"), start=1):
        fabric.node(f"{host} lk0", "host")
        fabric.node(f"leaf{number}", "switch")
        fabric.join((f"{host} lk0", 1), (f"leaf{number}", 1))
        for spine in (1, 2):
            fabric.join((f"leaf{number}", 10 + spine), (f"spine{spine}", number))
    for spine in (1, 2):
        fabric.node(f"spine{spine}", "switch")
    view = View(fabric.graph(), [Expected(host, "rail0", fabric.guid(f"{host} lk0"), "lk0") for host in ("nodea", "nodeb")])
    case = Case(leafspine(1, 1, 1))
    case.planes, case.ports = {"default": StoredPlane(view, "R1")}, Ports({"default": view}, {})
    case.names = {"nodea": "nodea", "nodeb": "nodeb"}
    with REAL.open(encoding="utf-8") as lines:
        plan = case.of_log(lines)
    assert plan.unknown == ()
    assert (plan.hops.between, plan.mapped) == (8, 8)
    load = plan.before["ring"]["default"]
    # Two rings, each with one hop forth and one back, over two spines.
    assert {view.end(here): flows for (here, _there), flows in load.flows.items() if here[0] == view.graph.hosts()["nodea"][0].guid} == {
        "nodea lk0": 2
    }
    assert set(load.flows.values()) == {2, 1}
    assert [set(crossed.values()) for crossed in load.crossings.values()] == [{1}, {1}]


def test_what_cannot_be_mapped_is_unknown(rails: Case) -> None:
    hosts = ["node1", "node2", "trainer-0", "node3"]
    lines = [line.replace("[1]mlx5_1:1/IB", "[1]mlx5_9:1/IB") if line.startswith("node3") else line for line in RingJob(hosts).lines()]
    plan = rails.of_log(lines)
    assert ("host trainer-0", "it is not in the play; map its name in rdma_job_hosts") in [(each.what, each.why) for each in plan.unknown]
    assert ("ring 1, rank 6 to rank 1", "mlx5_9 of node3 is in no graph") in [(each.what, each.why) for each in plan.unknown]
    # node1 → node2 in both rings, and node3 → node1 in ring 0.
    assert plan.before["ring"]["default"].hops == 3
    assert "Unknown, and not counted:" in plan_text(plan, "job.log", "hostfile")


def test_a_log_of_one_rank_of_four(rails: Case) -> None:
    job = RingJob(["node1", "node2"])
    plan = rails.of_log(line for line in job.lines() if ":20000:" in line and line.startswith("node1"))
    assert plan.mapped == 0
    assert plan.order is None
    first = plan.unknown[0]
    assert (first.what, first.why) == ("ranks 1-3", "the log does not show its host: use the output of all ranks")


def test_no_communicator_has_all_hosts(rails: Case) -> None:
    lines = [*RingJob(["node1", "node2"], comm_id="0x1").lines(), *RingJob(["node3", "node4"], comm_id="0x2").lines()]
    plan = rails.of_log(lines)
    assert plan.order is None
    assert plan.unknown[-1].what == "the order of the hosts"
    assert plan.before["ring"]["default"].hops == 8


def test_hosts_with_other_rails_have_no_forecast() -> None:
    fabric = rail(hosts=4, rails=2, spines=1, cables=1, per_leaf=2)
    fabric.remove("node2 mlx5_1")
    plan = Case(fabric).of_order(["node1", "node3", "node2", "node4"])
    assert plan.order is not None
    assert plan.order.better
    assert plan.after is None
    assert plan.why_not == "node2 has no port rail1 in the graph of plane default, which node3 has"
    assert ("ring rail1", "node2 has no port of rail1 in the graph of plane default") in [(each.what, each.why) for each in plan.unknown]
    assert "The load of the cables with the new order is unknown: node2 has no port rail1" in plan_text(plan, "hostfile", "new")


def test_the_json(rails: Case) -> None:
    tree = rails.of_order(SWAPPED).to_dict()
    assert tree["order"]["out_of_order"] == ["node10", "node6"]
    ring = tree["after"]["ring"]["default"]
    assert (ring["hops"], ring["hops_between_leaves"], ring["imbalance"]) == (32, 8, 1.0)
    assert ring["crossings"][0] == {"kind": "ring", "communicator": "", "channel": "rail0", "switches": {"spine1": 2.0, "spine2": 2.0}}


def test_a_hostfile() -> None:
    names = {"node1": "node1", "node2": "node2", "trainer": "node3"}
    text = "# hosts\nnode2.example.org slots=8\n\nnode1:8\ntrainer slots=4 # last\nother\n"
    found = read_hostfile(text.splitlines(), names)
    assert (found.order, found.unknown) == (("node2", "node1", "node3"), ("other",))
    assert found.text(["node1", "node2", "node3"]) == "node1:8\nnode2.example.org slots=8\ntrainer slots=4\nother\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node1\nnode1 slots=8", "line 2 of the hostfile has node1 again: write one line for each host, with its slots"),
        ("node1\n[gpu]", "line 2 of the hostfile starts with '[gpu]', expected the name of a host"),
    ],
)
def test_a_hostfile_that_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(HostfileError) as caught:
        read_hostfile(text.splitlines(), {"node1": "node1"})
    assert str(caught.value) == message


def test_ranges_of_ranks() -> None:
    assert ranges([3]) == "rank 3"
    assert ranges([0, 3, 4, 5, 9]) == "ranks 0, 3-5, 9"
