# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree of a plane for schedulers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.tree import safe_name, tree_of
from tests.unit.builders.fabrics import Fabric
from tests.unit.builders.small_fabrics import fabric


def hosts(count: int) -> list[str]:
    return [f"node{number}" for number in range(1, count + 1)]


def pods() -> Fabric:
    """Three tiers: two pods of two leaves and two spines, joined by one core switch; two hosts a leaf."""
    found = Fabric()
    found.node("core1", "switch")
    for pod in (1, 2):
        for spine in (1, 2):
            found.node(f"spine{pod}{spine}", "switch")
            found.join((f"spine{pod}{spine}", 60), ("core1", pod * 10 + spine))
        for leaf in (1, 2):
            name = f"leaf{pod}{leaf}"
            found.node(name, "switch")
            for spine in (1, 2):
                found.join((name, 50 + spine), (f"spine{pod}{spine}", leaf))
            for host in (1, 2):
                hca = f"node{pod}{leaf}{host} mlx5_0"
                found.node(hca, "host")
                found.join((hca, 1), (name, host))
    return found


def test_the_leaves_of_all_rails_of_a_group_of_hosts_are_one_element() -> None:
    tree = tree_of(View(fabric(8, rails=4, per_leaf=4)), hosts(8))
    assert [(each.name, each.hosts) for each in tree.groups] == [("leaf0", tuple(hosts(8)[:4])), ("leaf4", tuple(hosts(8)[4:]))]
    assert [(each.name, each.children) for each in tree.roots] == [("spine0", ("leaf0", "leaf4"))]
    assert tree.paths()["node5"] == ["leaf4", "spine0"]


def test_hosts_with_all_ports_on_one_leaf() -> None:
    tree = tree_of(View(fabric(8, rails=2, per_leaf=4, plan="shared")), hosts(8))
    assert [each.name for each in tree.groups] == ["leaf0", "leaf1"]
    assert all(len(each.switches) == 1 for each in tree.groups)


def test_pods_below_a_core() -> None:
    tree = tree_of(View(pods().graph()), [f"node{pod}{leaf}{host}" for pod in (1, 2) for leaf in (1, 2) for host in (1, 2)])
    assert [[each.name for each in level] for level in tree.levels] == [
        ["leaf11", "leaf12", "leaf21", "leaf22"],
        ["spine11", "spine21"],
        ["core1"],
    ]
    assert tree.paths()["node221"] == ["leaf22", "spine21", "core1"]
    # Hosts of one leaf, then of one pod, are together.
    assert tree.hosts == ["node111", "node112", "node121", "node122", "node211", "node212", "node221", "node222"]


def test_fabrics_without_a_cable_between_them_have_no_common_root() -> None:
    whole = pods()
    whole.remove("core1")
    tree = tree_of(View(whole.graph()), ["node111", "node211"])
    assert [each.name for each in tree.roots] == ["leaf11", "leaf21"] == [each.name for each in tree.groups]


def test_one_wrong_cable_joins_no_leaves() -> None:
    built = Fabric()
    for leaf in (1, 2):
        built.node(f"leaf{leaf}", "switch")
    for number in range(1, 9):
        for rail in (0, 1):
            name = f"node{number} mlx5_{rail}"
            built.node(name, "host")
            wrong = number == 3 and rail == 1
            built.join((name, 1), (f"leaf{1 if (number <= 4) != wrong else 2}", number * 2 + rail))
    tree = tree_of(View(built.graph()), hosts(8))
    assert [each.hosts for each in tree.groups] == [tuple(hosts(8)[:4]), tuple(hosts(8)[4:])]
    assert tree.strays == {"node3": "1 of its 2 ports are on leaf2"}


def test_storage_rails_do_not_count() -> None:
    built = Fabric()
    for leaf in (1, 2):
        built.node(f"leaf{leaf}", "switch")
    for number in (1, 2):
        for rail in (0, 1):
            built.node(f"node{number} mlx5_{rail}", "host")
        built.join((f"node{number} mlx5_0", 1), (f"leaf{number}", 1))
        built.join((f"node{number} mlx5_1", 1), ("leaf1", 10 + number))
    rails = [("rail0", "mlx5_0", "compute"), ("rail1", "mlx5_1", "storage")]
    expected = [Expected(host, rail, None, device, role=role) for host in hosts(2) for rail, device, role in rails]
    tree = tree_of(View(built.graph(), expected), hosts(2))
    assert [(each.name, each.hosts) for each in tree.groups] == [("leaf1", ("node1",)), ("leaf2", ("node2",))]


def test_a_left_out_host_does_not_change_the_groups_of_the_others() -> None:
    view = View(fabric(4, rails=2, per_leaf=2))
    tree = tree_of(view, ["node2", "node3", "node9"])
    assert [(each.name, each.hosts) for each in tree.groups] == [("leaf0", ("node2",)), ("leaf2", ("node3",))]
    assert tree.without_port == ("node9",)


def test_names_are_kept_if_the_first_leaf_is_lost() -> None:
    built = fabric_of_two_groups()
    first = tree_of(View(built.graph()), hosts(4))
    built.remove("leaf1")
    again = tree_of(View(built.graph()), hosts(4), first.to_dict())
    assert [each.name for each in again.groups] == [each.name for each in first.groups] == ["leaf1", "leaf4"]
    assert [each.name for each in tree_of(View(built.graph()), hosts(4)).groups] == ["leaf2", "leaf4"]


def test_a_renamed_switch_has_its_new_name() -> None:
    built = fabric_of_two_groups()
    first = tree_of(View(built.graph()), hosts(4))
    built.nodes["leaf1"]["name"] = "a-leaf1"
    assert tree_of(View(built.graph()), hosts(4), first.to_dict()).groups[0].name == "a-leaf1"


def fabric_of_two_groups() -> Fabric:
    """Two hosts with three rails each, and two others, on three leaves each."""
    built = Fabric()
    for leaf in range(1, 7):
        built.node(f"leaf{leaf}", "switch")
    for number in range(1, 5):
        for rail in range(3):
            name = f"node{number} mlx5_{rail}"
            built.node(name, "host")
            built.join((name, 1), (f"leaf{1 + rail + 3 * (number > 2)}", number))
    return built


@given(st.integers(2, 24), st.integers(1, 4), st.integers(1, 6), st.sampled_from(["rails", "shared"]), st.data())
def test_every_host_is_in_one_leaf_whatever_the_order(count: int, rails: int, per_leaf: int, plan: str, data: st.DataObject) -> None:
    graph = fabric(count, rails=rails, per_leaf=per_leaf, plan=plan)
    chosen = data.draw(st.sets(st.sampled_from(hosts(count)), min_size=1))
    tree = tree_of(View(graph), chosen)
    assert sorted(tree.hosts) == sorted(chosen)
    assert len({each.name for each in tree.elements}) == len(tree.elements)
    for group in tree.groups:
        assert len({(int(host.removeprefix("node")) - 1) // per_leaf for host in group.hosts}) == 1
    shuffled = type(graph)(graph.plane, dict(reversed(graph.nodes.items())), graph.links[::-1], graph.source)
    assert tree_of(View(shuffled), chosen) == tree


def test_names_of_switches_that_slurm_would_not_read() -> None:
    assert safe_name("Quantum Mellanox [2], R1=x/y ") == "Quantum-Mellanox-2-R1-x-y"
    assert safe_name("###") == "switch"
    assert len(safe_name("x" * 300)) == 58
