# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the hosts' answers to a plan: which NICs a host asks on, what is stored, and what the plan makes of it. No module runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.action import link_peers, mesh_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.answers import Answer, read_answers
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.mesh import asked, nic

FABRIC = {"topology": "mesh", "mesh": {"pool": "10.1.0.0/16", "prefix_length": 31, "cables": "discover"}}


class Plain:
    """Instead of Ansible's Templar, for values without templates."""

    def template(self, value: Any) -> Any:
        return value


class Site:
    """A run whose hosts answer as a test says."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = RunFolder(path), monkeypatch
        monkeypatch.setattr(self.folder, "link_latest", lambda: None)

    def action(self, plugin: Any, host: str, **variables: Any) -> Any:
        action = plugin.ActionModule.__new__(plugin.ActionModule)
        action.variables = {"inventory_hostname": host, "ansible_facts": {}, **variables}
        action.folder, action._templar = self.folder, Plain()
        return action

    def ask(self, host: str, rails: Any, result: dict[str, Any], nics: list[str] | None) -> Any:
        """Run the task for a host. nics: those on which it must ask, None if it must not run the module."""
        calls: list[dict[str, Any]] = []
        action = self.action(link_peers, host, rdma_rails=rails)
        self.patch.setattr(action, "module", lambda called, **given: calls.append({called: given}) or result, raising=False)
        done = action.work({})
        assert calls == ([] if nics is None else [{"link_peers": {"nics": nics}}])
        return done

    def plan(self, hostvars: dict[str, Any]) -> Any:
        names = {"hostvars": hostvars, "ansible_play_hosts": list(hostvars), "groups": {"all": list(hostvars)}}
        return self.action(mesh_plan, next(iter(hostvars)), **names).work({})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "R1", monkeypatch)


def rails(*numbers: int) -> list[dict[str, Any]]:
    """Rails of an inventory that is not planned yet: they have a NIC, and no address."""
    return [{"name": f"port{number}", "nic": {"pci": nic(number)}, "rate_gbps": 100} for number in numbers]


def test_the_answers_of_the_hosts_become_a_plan(site: Site) -> None:
    answers = asked(a=["b1", "c1"], b=["a1", ""], c=["a2", "b2"])
    for host, answer in answers.items():
        assert answer.peers is not None
        done = site.ask(host, rails(1, 2), {**answer.peers.to_dict(), "changed": False, "invocation": {}}, [nic(1), nic(2)])
        assert done == {"stored": [str(site.folder.path / f"cables/{host}.json")]}
    assert read_answers(site.folder, "abc") == answers
    done = site.plan({host: {"rdma_fabric": FABRIC, "rdma_rails": rails(1, 2)} for host in "abc"})
    assert done["explained"].startswith("Mesh: full mesh of 3 hosts\na-b  a/0000:01:00.0 10.1.0.0/31  b/0000:01:00.0 10.1.0.1/31  new\n")
    proposed = yaml.safe_load((site.folder.path / "plan/mesh.yml").read_text())["all"]["hosts"]
    assert proposed["b"]["rdma_rails"] == [
        {"name": "a-b", "nic": {"pci": nic(1)}, "rate_gbps": 100, "address": "10.1.0.1/31"},
        {"name": "b-c", "nic": {"pci": nic(2)}, "rate_gbps": 100, "address": "10.1.0.4/31"},
    ]


def test_a_port_whose_cable_is_not_known_keeps_its_rail(site: Site) -> None:
    answers = asked(a=["b1", ""], b=["a1", "-"])
    for host, answer in answers.items():
        site.folder.write_json(f"cables/{host}.json", answer.to_dict())
    given = {host: {"rdma_fabric": FABRIC, "rdma_rails": [*rails(1), {**rails(2)[0], "address": "10.1.0.9/31"}]} for host in "ab"}
    done = site.plan(given)
    assert "a ens2 (0000:02:00.0): it has a link, but no neighbor answers. Its rail stays as it is." in done["explained"]
    text = (site.folder.path / "plan/mesh.yml").read_text()
    assert "# b ens2 (0000:02:00.0): no link. Its rail stays as it is.\n" in text
    proposed = yaml.safe_load(text)["all"]["hosts"]["a"]["rdma_rails"]
    assert [(rail["name"], rail["address"]) for rail in proposed] == [("port1", "10.1.0.0/31"), ("port2", "10.1.0.9/31")]


def test_hosts_that_were_not_asked_change_nothing(site: Site) -> None:
    done = site.plan({host: {"rdma_fabric": FABRIC, "rdma_rails": rails(1)} for host in "ab"})
    assert "a 0000:01:00.0: its neighbors were not read in this run. Its rail stays as it is." in done["explained"]
    assert done["explained"].endswith("The present rails are those of the plan.")


@pytest.mark.parametrize(
    ("result", "why_not"),
    [
        ({"failed": True, "msg": "no python\nand more"}, "no python"),
        ({"ports": {}, "nics": []}, "rejected the answer of a: not the neighbors of a host"),
    ],
)
def test_an_answer_of_another_form_is_stored_as_a_reason(site: Site, result: dict[str, Any], why_not: str) -> None:
    site.ask("a", rails(1), result, [nic(1)])
    (stored,) = read_answers(site.folder, ["a"]).values()
    assert (stored.peers, stored.why_not[: len(why_not)]) == (None, why_not)


def test_only_ethernet_rails_are_asked(site: Site) -> None:
    infiniband = {"name": "ib0", "nic": {"pci": nic(1)}, "link_layer": "infiniband"}
    assert site.ask("a", [infiniband], {}, None) == {"stored": []}
    assert site.ask("a", None, {}, None) == {"stored": []}
    done = site.ask("a", [{"name": "x", "nick": {}}], {}, None)
    assert (done["failed"], "rdma_rails[0].nic is missing" in done["msg"]) == (True, True)


def test_a_damaged_file_is_a_reason(site: Site) -> None:
    site.folder.write("cables/a.json", '{"peers": 5}')
    assert read_answers(site.folder, ["a"])["a"] == Answer(None, read_answers(site.folder, ["a"])["a"].why_not)
    assert "is damaged" in read_answers(site.folder, ["a"])["a"].why_not
