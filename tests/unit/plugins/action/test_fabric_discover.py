# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written of a discovered fabric, with real Ansible on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from tests.unit.builders import blind_hosts, blind_trees
from tests.unit.builders.small_fabrics import fabric
from tests.unit.plugins.plugin_utils._fabric.discover.test_discover import facts

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The whole facts of a host with InfiniBand."""
    host = blind_trees.hosts(tmp_path_factory.mktemp("trees"))["infiniband"]
    return dict(json.loads(json.dumps(blind_hosts.read(host).facts)))


def whole(usual: dict[str, Any], number: int) -> dict[str, Any]:
    """The same of a host of the small fabric."""
    first = next(iter(usual["devices"].values()))
    devices = {}
    for name, brief in facts(number)["devices"].items():
        port = {**first["ports"]["1"], **brief["ports"]["1"]}
        pci = {**first["pci"], **brief["pci"]}
        devices[name] = {**first, "name": name, "node_guid": brief["node_guid"], "pci": pci, "ports": {"1": port}}
    return {**usual, "devices": devices, "netdevs": {}}


Discover = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def discover(usual: dict[str, Any]) -> Discover:
    return partial(run, {f"node{number}": whole(usual, number - 1) for number in (1, 2)})


def run(
    facts_of: dict[str, Any], folder: Path, graphs: list[Any], *words: str, planes: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The hosts of facts_of, by default node1 and node2; node3 has no facts."""
    hosts: dict[str, Any] = {host: {"known": known} for host, known in facts_of.items()}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {**hosts, "node3": {}}, "vars": local}}))
    reported = [graph.to_dict() if isinstance(graph, Graph) else graph for graph in graphs]
    arguments = {"graphs": reported, **({"planes": planes} if planes else {})}
    tasks = [
        {"name": "Know", "ansible.builtin.set_fact": {"rdma": "{{ known }}", "cacheable": True}, "when": "known is defined"},
        {"name": "Write", "rdma.cluster.fabric_discover": arguments, "run_once": True},
    ]
    (folder / "play.yml").write_text(json.dumps([{"name": "Test", "hosts": "all", "gather_facts": False, "tasks": tasks}]))
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "play.yml", *words]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)


def run_folder(folder: Path) -> Path:
    (run,) = [path for path in (folder / "artifacts").iterdir() if path.is_dir() and not path.is_symlink()]
    return run


def test_all_is_written_in_check_mode_too(tmp_path: Path, discover: Discover) -> None:
    graph = fabric(3, slow={"leaf1/2"})
    done = discover(tmp_path, [graph, replace(graph, plane="second", problems=["no answer"], complete=False)], "--check", "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    run = run_folder(tmp_path)
    assert [Graph.from_dict(each).plane for each in json.loads((run / "fabric.json").read_text())["planes"]] == ["default", "second"]
    assert sorted(path.name for path in (run / "fabric").iterdir()) == [
        "default.graphml",
        "default.svg",
        "inventory.yml",
        "second.graphml",
        "second.svg",
    ]
    proposed = (run / "fabric/inventory.yml").read_text()
    assert "not read: node3" in proposed
    assert "rail1" in proposed
    assert "second: no answer" in done.stdout


def test_no_fabric_and_one_plane_twice_are_reported(tmp_path: Path, discover: Discover) -> None:
    assert "There is no fabric" in discover(tmp_path, []).stdout
    assert "more than one graph of plane default" in discover(tmp_path, [fabric(3), fabric(3)]).stdout


def test_the_run_that_others_judge_from_stays_the_latest(tmp_path: Path, discover: Discover) -> None:
    """The files are in a folder of the run's own, and named in its result; docs/discover.md says so."""
    (tmp_path / "artifacts").mkdir()
    latest = tmp_path / "artifacts/latest"
    latest.symlink_to("20261101T000000Z-1")
    done = discover(tmp_path, [fabric(3)], "-v")
    assert latest.readlink() == Path("20261101T000000Z-1")
    stored = [
        run_folder(tmp_path) / name for name in ("fabric.json", "fabric/default.graphml", "fabric/default.svg", "fabric/inventory.yml")
    ]
    assert [path for path in stored if not (path.is_file() and str(path) in done.stdout)] == []


@pytest.mark.parametrize("plane", ["../../../PWNED", "a/b", "a\nb", "", "x" * 40, "ä"])
def test_a_plane_that_is_no_name_writes_nothing(tmp_path: Path, discover: Discover, plane: str) -> None:
    done = discover(tmp_path, [replace(fabric(3), plane=plane)])
    assert done.returncode == 2
    assert "A plane cannot be called" in done.stdout
    assert sorted(path.name for path in tmp_path.rglob("*") if path.suffix in (".svg", ".graphml")) == []


def test_the_plane_is_the_one_that_was_asked(tmp_path: Path, discover: Discover) -> None:
    done = discover(tmp_path, [replace(fabric(3), plane="../../../PWNED")], planes=["compute"])
    assert done.returncode == 0, done.stdout
    run = run_folder(tmp_path)
    assert sorted(path.name for path in (run / "fabric").iterdir()) == ["compute.graphml", "compute.svg", "inventory.yml"]
    assert json.loads((run / "fabric.json").read_text())["planes"][0]["plane"] == "compute"
    assert "planes has 2 names, but graphs has 1 graphs" in discover(tmp_path, [fabric(3)], planes=["a", "b"]).stdout


def test_the_playbook_names_the_planes_that_it_has_asked() -> None:
    (play,) = yaml.safe_load((ROOT / "playbooks/discover.yml").read_text())
    (arguments,) = [task["rdma.cluster.fabric_discover"] for task in play["tasks"] if "rdma.cluster.fabric_discover" in task]
    assert arguments["planes"] == "{{ __fabric.results | map(attribute='item.plane') | list }}"


def test_what_is_no_graph_is_reported(tmp_path: Path, discover: Discover) -> None:
    assert "A host has returned no graph of a fabric" in discover(tmp_path, [{"schema": 1, "plane": "default"}]).stdout


def test_a_plane_whose_reader_makes_no_sense_is_named_and_the_others_are_written(tmp_path: Path, discover: Discover) -> None:
    done = discover(tmp_path, [fabric(3), {"schema": 1, "nodes": float("inf")}], "-v", planes=["blue", "red"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "red: its reader's answer is refused: not the tree of a graph" in done.stdout
    planes = {each["plane"]: each for each in json.loads((run_folder(tmp_path) / "fabric.json").read_text())["planes"]}
    assert (len(planes["blue"]["nodes"]), planes["red"]["nodes"], planes["red"]["complete"]) == (len(fabric(3).nodes), {}, False)


def test_facts_that_make_no_sense_are_named_and_the_other_hosts_are_proposed(tmp_path: Path, usual: dict[str, Any]) -> None:
    bad = whole(usual, 1)
    bad["devices"]["mlx5_0"]["ports"]["1"]["rate_gbps"] = float("inf")
    done = run({"node1": whole(usual, 0), "node2": bad}, tmp_path, [fabric(3)], "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "node2: its facts are refused: devices.mlx5_0.ports.1.rate_gbps: expected a finite number, got inf" in done.stdout
    proposed = yaml.safe_load((run_folder(tmp_path) / "fabric/inventory.yml").read_text())
    assert "node1" in json.dumps(proposed)
    assert "node2" not in json.dumps(proposed)
