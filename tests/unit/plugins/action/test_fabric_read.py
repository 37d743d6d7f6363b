# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which host reads which plane, by what is in the run's folder already."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import fabric_read
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import best_graph, readings, seen_managers
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

HOSTS = ("n1", "n2", "n3")
MASTER = {"lid": 1, "guid": "0x0000000000000001", "state": "MASTER", "priority": 14, "activity": 1}


def intent(link_layer: str = "infiniband", manager: dict[str, Any] | None = None, *, soft: bool = False) -> dict[str, Any]:
    rail = {"name": "rail0", "nic": {"pci": "0000:01:00.0"}, "link_layer": link_layer, "plane": "blue", "soft": soft}
    return {
        "rails": [rail],
        "fabric": {"planes": {"blue": {"subnet_manager": manager and {"m_key_protection_level": 0, "hosts": [], **manager}}}},
    }


def facts(physical: str = "LinkUp", netdev: str | None = None) -> dict[str, Any]:
    port = {"netdev": netdev, "physical_state": physical, "state": "ACTIVE"}
    netdevs = {netdev: {"pci": "0000:01:00.0"}} if netdev else {}
    return {"netdevs": netdevs, "devices": {"mlx5_0": {"pci": {"address": "0000:01:00.0"}, "ports": {"1": port}}}}


def answer(*, complete: bool = True, managers: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    graph = Graph("blue", {}, [], "ibnetdiscover", complete, [] if complete else ["no permission"])
    why = None if managers is not None else "sminfo is not installed"
    return {
        "graph": graph.to_dict(),
        "subnet_managers": managers,
        "no_subnet_manager": why,
        "read_at": 7.0,
        "changed": False,
        "invocation": {},
    }


class Site:
    """A run with three hosts that do the task one after the other."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = RunFolder(path), monkeypatch
        self.intents = {host: intent() for host in HOSTS}
        self.facts = {host: facts() for host in HOSTS}
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def module(self, host: str, answers: dict[str, dict[str, Any]], called: str, /, **arguments: Any) -> dict[str, Any]:
        assert called == "fabric_facts"
        self.asked.append((host, arguments))
        return answers[host]

    def task(self, what: str, answers: dict[str, dict[str, Any]]) -> list[str]:
        """The hosts that were asked. answers: host → what its module says; another host must not be asked."""
        before = len(self.asked)
        for host in HOSTS:
            self.folder.write_json(f"intent/{host}.json", self.intents[host])
            self.folder.write_json(f"facts/{host}.json", self.facts[host])
        for host in HOSTS:
            action = fabric_read.ActionModule.__new__(fabric_read.ActionModule)
            known = {"rdma": self.facts[host]}
            action.variables = {"inventory_hostname": host, "ansible_play_hosts": list(HOSTS), "ansible_facts": known}
            action.folder = self.folder

            self.patch.setattr(action, "module", partial(self.module, host, answers), raising=False)
            result = action.work({"what": what})
            assert [Path(path).stem for path in result.get("stored", ())] == [of for of, _how in self.asked[before:] if of == host]
        return [host for host, _arguments in self.asked[before:]]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def test_the_first_host_reads_and_nobody_else(site: Site) -> None:
    assert site.task("graphs", {"n1": answer()}) == ["n1"]
    assert site.asked[0][1] == {"plane": "blue", "device": "mlx5_0", "port": 1, "graph": True, "counters": ["errors", "data"]}
    assert site.task("graphs", {}) == []
    assert best_graph(readings(site.folder, "fabric/blue/graphs")) == (Graph.from_dict(answer()["graph"]), 7.0)


def test_a_second_one_reads_what_the_first_did_not_get_and_no_third(site: Site) -> None:
    assert site.task("graphs", {"n1": answer(complete=False), "n2": {"failed": True, "msg": "no space left\nat all"}}) == ["n1", "n2"]
    assert site.task("graphs", {}) == []
    graph, _read_at = best_graph({"n2": readings(site.folder, "fabric/blue/graphs")["n2"]}) or (None, 0.0)
    assert graph is not None
    assert (graph.complete, graph.problems) == (False, ["no space left"])


def test_a_host_whose_cable_does_not_carry_is_not_asked(site: Site) -> None:
    site.facts["n1"] = facts("Polling")
    assert site.task("graphs", {"n2": answer()}) == ["n2"]


def test_a_virtual_function_may_not_ask(site: Site) -> None:
    site.facts["n1"]["devices"]["mlx5_0"]["function"] = "vf"
    assert site.task("graphs", {"n2": answer()}) == ["n2"]


@pytest.mark.parametrize("soft", [True, False])
def test_only_rails_of_hardware_are_asked_by_lldp(site: Site, soft: bool) -> None:
    for host in HOSTS:
        site.intents[host], site.facts[host] = intent("roce", soft=soft), facts(netdev="ens1")
    assert site.task("graphs", {host: answer() for host in HOSTS}) == ([] if soft else list(HOSTS))
    assert site.task("graphs", {}) == []
    assert site.task("managers", {}) == []
    assert all(arguments == {"source": "lldp", "name": host, "interfaces": ["ens1"]} for host, arguments in site.asked)


def test_managers_are_asked_for_where_one_is_planned(site: Site) -> None:
    assert site.task("managers", {}) == []
    for host in HOSTS:
        site.intents[host] = intent(manager={"kind": "hosts", "hosts": ["n1"]})
    assert site.task("managers", {"n1": answer(), "n2": answer(managers=[MASTER])}) == ["n1", "n2"]
    seen = seen_managers(site.folder)["blue"]
    assert [(each.lid, each.state) for each in seen.managers or ()] == [(1, "MASTER")]
    assert seen.why_not is None


def test_a_plane_that_an_m_key_keeps_from_others_is_read_by_the_hosts_that_have_it(site: Site) -> None:
    for level, reader in ((1, "n1"), (2, "n3")):
        for host in HOSTS:
            site.intents[host] = intent(manager={"kind": "hosts", "hosts": ["n3"], "m_key_protection_level": level})
        assert site.task("managers", {reader: answer(managers=[MASTER])}) == [reader]
        (site.folder.path / f"fabric/blue/managers/{reader}.json").unlink()


def test_a_host_that_is_lost_says_so_and_keeps_nothing(site: Site) -> None:
    assert site.task("graphs", {"n1": answer()}) == ["n1"]
    (site.folder.path / "fabric/blue/graphs/n1.json").unlink()
    lost = {"unreachable": True, "msg": "no route"}
    with pytest.raises(AssertionError):
        site.task("graphs", {"n1": lost, "n2": answer()})
    assert readings(site.folder, "fabric/blue/graphs") == {}


def test_after_load_it_is_read_once_more_if_there_was_load(site: Site) -> None:
    assert site.task("graphs", {"n1": answer()}) == ["n1"]
    assert site.task("loaded", {}) == []
    site.folder.write_json("pairs/plan.json", {})
    assert site.task("loaded", {"n1": answer()}) == ["n1"]
    assert site.asked[-1][1]["graph"] is True
    assert best_graph(readings(site.folder, "fabric/blue/loaded")) == (Graph.from_dict(answer()["graph"]), 7.0)
