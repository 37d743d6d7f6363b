# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a mesh with real Ansible: the proposed inventory, and the difference from the present one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.unit.builders.inventories import INVENTORIES
from tests.unit.plugins.action.test_roce_plan import plan

MESH = {"pool": "192.168.100.0/16"}
#: The example inventory's cables, in any order and with their ends in any order.
CABLES = [
    ["spark3/0000:01:00.0", "spark1/0000:01:00.1"],
    ["spark2/0000:01:00.1", "spark3/0000:01:00.1"],
    ["spark1/0000:01:00.0", "spark2/0000:01:00.0"],
]


def write(folder: Path, cables: Any, hosts: dict[str, Any], **fabric: Any) -> Path:
    variables = {"rdma_fabric": {"topology": "mesh", "mesh": {**MESH, "cables": cables}, **fabric}}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": variables, "hosts": hosts}}))
    return folder / "hosts.yml"


def example() -> dict[str, Any]:
    hosts: dict[str, Any] = yaml.safe_load((INVENTORIES / "mesh/hosts.yml").read_text())["all"]["children"]["gpu"]["hosts"]
    return hosts


def planned(folder: Path, name: str = "mesh.yml") -> str:
    return (folder / "artifacts/latest/plan" / name).read_text()


def test_an_inventory_without_rails_gets_those_of_the_cables(tmp_path: Path) -> None:
    inventory = write(tmp_path, CABLES, {"spark1": {}, "spark2": {}, "spark3": {}}, planes={"cables": {}})
    before = inventory.read_text()
    done = plan(tmp_path, inventory, "--tags", "mesh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Mesh: full mesh of 3 hosts" in done.stdout
    proposed = yaml.safe_load(planned(tmp_path))["all"]["hosts"]
    assert proposed["spark1"]["rdma_rails"] == [
        {"name": "spark1-spark2", "nic": {"pci": "0000:01:00.0"}, "plane": "cables", "address": "192.168.100.2/24"},
        {"name": "spark1-spark3", "nic": {"pci": "0000:01:00.1"}, "plane": "cables", "address": "192.168.101.2/24"},
    ]
    # What is proposed is an intent that can be built, and the user's own file is as it was.
    fabric = {"topology": "mesh", "planes": {"cables": {}}, "mesh": {**MESH, "cables": CABLES}}
    assert all(normalize({**variables, "rdma_fabric": fabric}) for variables in proposed.values())
    assert inventory.read_text() == before
    assert json.loads(planned(tmp_path, "mesh.json"))["cables"][0] == {
        "name": "spark1-spark2",
        "ends": ["spark1/0000:01:00.0", "spark2/0000:01:00.0"],
        "subnet": "192.168.100.0/24",
        "addresses": ["192.168.100.2/24", "192.168.100.3/24"],
        "kept": False,
    }


def test_the_plan_put_behind_the_inventory_is_the_plan_again(tmp_path: Path) -> None:
    inventory = write(tmp_path, CABLES, {"spark1": {}, "spark2": {}, "spark3": {}})
    plan(tmp_path, inventory, "--tags", "mesh")
    (tmp_path / "mesh.yml").write_text(planned(tmp_path))
    done = plan(tmp_path, inventory, "--tags", "mesh", "-i", str(tmp_path / "mesh.yml"))
    assert done.returncode == 0, done.stdout
    assert "The present rails are those of the plan." in done.stdout
    assert planned(tmp_path, "mesh.diff") == ""


def test_the_example_inventory_is_the_table_of_the_seed_and_stays(tmp_path: Path) -> None:
    done = plan(tmp_path, write(tmp_path, CABLES, example(), planes={"cables": {}}), "--tags", "mesh")
    assert done.returncode == 0, done.stdout
    assert planned(tmp_path, "mesh.diff") == ""
    assert yaml.safe_load(planned(tmp_path))["all"]["hosts"] == {host: {"rdma_rails": of["rdma_rails"]} for host, of in example().items()}


def test_a_fourth_host_changes_only_its_own_cables(tmp_path: Path) -> None:
    fourth = [[f"spark{number}/0000:02:00.0", f"spark4/0000:0{number}:00.0"] for number in (1, 2, 3)]
    done = plan(tmp_path, write(tmp_path, [*CABLES, *fourth], {**example(), "spark4": {}}, planes={"cables": {}}), "--tags", "mesh")
    assert done.returncode == 0, done.stdout
    changes = [line for line in planned(tmp_path, "mesh.diff").splitlines()[2:] if line[:1] in "+-"]
    assert [line.split("{name: ")[1].split(",")[0] for line in changes if "name:" in line] == [
        *(f"spark{number}-spark4" for number in (1, 2, 3)),
        *(f"spark{number}-spark4" for number in (1, 2, 3)),
    ]
    assert [line for line in changes if line.startswith("-")] == ["-    spark4: {}"]
    # A new rail is like the others.
    (new,) = (rail for rail in yaml.safe_load(planned(tmp_path))["all"]["hosts"]["spark1"]["rdma_rails"] if rail["name"] == "spark1-spark4")
    assert new == {
        "name": "spark1-spark4", "nic": {"pci": "0000:02:00.0"}, "rate_gbps": 100, "plane": "cables", "address": "192.168.103.2/24",
        "mtu_bytes": 9000,
    }  # fmt: skip


def test_a_ring_names_the_hosts_without_a_common_cable(tmp_path: Path) -> None:
    ring = [[f"n{a}/0000:01:00.0", f"n{b}/0000:01:00.1"] for a, b in ((1, 2), (2, 3), (3, 4), (4, 1))]
    hosts = {f"n{number}": {} for number in (1, 2, 3, 4)}
    done = plan(tmp_path, write(tmp_path, ring, hosts), "--tags", "mesh")
    assert "Mesh: ring of 4 hosts" in done.stdout
    assert "No common cable: n1 and n3, n2 and n4. They cannot reach each other by RDMA." in done.stdout
    relaying = {"rdma_nccl": {"variables": {"NCCL_NET_PLUGIN": "mesh", "NCCL_MESH_ENABLE_RELAY": 1}}}
    done = plan(tmp_path, write(tmp_path, ring, dict.fromkeys(hosts, relaying)), "--tags", "mesh")
    assert "No common cable" not in done.stdout


@pytest.mark.parametrize(
    ("cables", "words"),
    [
        ([["n1/0000:01:00.0", "n9/0000:01:00.0"]], "rdma_fabric.mesh.cables[0][1] is on n9, which is not in the inventory (hosts.yml:"),
        ([["n1/0000:01:00.0"]], "rdma_fabric.mesh.cables[0] has 1 end (hosts.yml:"),
        ("found", "rdma_fabric.mesh.cables must be one of discover; got 'found' (hosts.yml:"),
    ],
    ids=str,
)
def test_cables_that_cannot_be_are_named_once_with_their_line(tmp_path: Path, cables: Any, words: str) -> None:
    done = plan(tmp_path, write(tmp_path, cables, {"n1": {}, "n2": {}}), "--tags", "mesh")
    assert done.returncode == 2
    assert done.stdout.count(f"\n  - {words}") == 1, done.stdout
    assert not (tmp_path / "artifacts/latest/plan").exists()


def test_without_a_mesh_there_is_nothing_to_plan(tmp_path: Path) -> None:
    done = plan(tmp_path, INVENTORIES / "roce/hosts.yml", "--tags", "mesh")
    assert done.returncode == 0, done.stdout
    assert "there is no mesh to plan" in done.stdout


def test_discovery_runs_on_the_hosts_and_keeps_what_it_does_not_find(tmp_path: Path) -> None:
    """The module runs on this machine for both hosts. None of the NICs exists, so it sends nothing."""
    rails = [{"name": "port0", "nic": {"pci": "ffff:1f:1f.7"}}, {"name": "port1", "nic": {"mac": "02:00:00:00:00:99"}}]
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "rdma_rails": rails}
    done = plan(tmp_path, write(tmp_path, "discover", {"n1": local, "n2": local}), "--tags", "mesh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("changed=0") == 2
    for nic in ("ffff:1f:1f.7", "02:00:00:00:00:99"):
        assert f"n1 {nic}: no interface has this NIC. Its rail stays as it is." in done.stdout
    stored = json.loads((tmp_path / "artifacts/latest/cables/n2.json").read_text())
    assert stored["peers"]["ports"]["ffff:1f:1f.7"] == {
        "netdev": None,
        "carrier": None,
        "neighbors": [],
        "error": "no interface has this NIC",
    }
    assert planned(tmp_path, "mesh.diff") == ""
