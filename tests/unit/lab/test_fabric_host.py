# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs that a simulated fabric lays into containers, and the inventory of those."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.ibv_devinfo import parse_ibv_devinfo
from lab import fabric_hosts, fabric_inventory, fabric_tree
from lab.fabric_plan import Shape, make
from lab.fabric_refresh import signs
from lab.paths import FabricFolder, LabFolder
from lab.plan import make_plan
from tests.child import environment
from tests.unit.lab.portinfo import PKEYS, PORTINFO
from tests.unit.lab.test_fabric_tree import HCA, write

EXAMPLE = Path(__file__).parents[3] / "inventories/infiniband-lab/hosts.yml"
PLAN = make(Shape("rail", 4, 2))
HCAS = {
    "mlx5_0": {"node": "node1 mlx5_0", "port_guid": "0xa088c20300000011"},
    "mlx5_1": {"node": "node1 mlx5_1", "port_guid": "0xa088c20300000021"},
}


def program(name: str) -> ModuleType:
    loader = SourceFileLoader(f"lab_fabric_host_{name}", str(fabric_hosts.PARTS / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("words", "seen", "device"),
    [
        (["ibnetdiscover", "-p"], ["-p"], "mlx5_0"),
        (["ibnetdiscover", "-C", "mlx5_1", "-P", "1"], ["-C", "ibsim0", "-P", "1"], "mlx5_1"),
        (["iblinkinfo", "-l", "--Ca=mlx5_1"], ["-l", "--Ca=ibsim0"], "mlx5_1"),
        (["sminfo", "-C", "mlx5_7"], ["-C", "ibsim0"], None),
        (["sminfo", "-C"], ["-C"], "mlx5_0"),
        (["ibstat", "mlx5_1"], ["ibsim0"], "mlx5_1"),
        (["ibstat", "-l"], ["-l"], "mlx5_0"),
        (["opensm", "--guid", "0xa088c20300000021"], ["--guid", "0xa088c20300000021"], "mlx5_1"),
        (["opensm", "-g", "0x1"], ["-g", "0x1"], None),
        (["opensm", "-B"], ["-B"], "mlx5_0"),
    ],
)
def test_a_tool_is_sent_to_the_requested_device(words: list[str], seen: list[str], device: str | None) -> None:
    assert program("tool").translate(words[0], words[1:], HCAS) == (seen, device)


def test_the_stand_in_of_ibv_devinfo_is_read_as_the_real_one(tmp_path: Path) -> None:
    device = tmp_path / "mlx5_1"
    write(device, {**fabric_tree.identity(HCA), **fabric_tree.port(HCA, PORTINFO, PKEYS, None)}, {})
    found = parse_ibv_devinfo(program("ibv_devinfo").describe(device, PORTINFO))["mlx5_1"]
    port = found.ports["1"]
    assert (port.state, port.active_mtu_bytes, port.max_mtu_bytes, port.port_lid, port.sm_lid) == ("ACTIVE", 2048, 2048, 4, 1)
    assert (found.transport, found.node_guid, found.phys_port_cnt) == ("InfiniBand", "a088:c203:0000:0020", 1)


def test_files_that_do_not_differ_are_not_written(tmp_path: Path) -> None:
    base = tmp_path / fabric_hosts.BASE
    base.mkdir(parents=True)
    assert fabric_hosts.write(base / "live", tmp_path, {"ports/1/state": "2: INIT\n"})
    before = (base / "live/ports/1/state").stat().st_ino
    assert not fabric_hosts.write(base / "live", tmp_path, {"ports/1/state": "2: INIT\n"})
    assert (base / "live/ports/1/state").stat().st_ino == before
    assert fabric_hosts.write(base / "live", tmp_path, {"ports/1/state": "4: ACTIVE\n"})
    assert [path.name for path in base.iterdir()] == ["live"], "nothing half written is left"


def test_a_host_has_the_hcas_of_its_name() -> None:
    assert list(fabric_hosts.hcas_of(PLAN, "node4")) == ["mlx5_0", "mlx5_1"]
    assert fabric_hosts.hcas_of(PLAN, "node4")["mlx5_1"].name == "node4 mlx5_1"
    assert fabric_hosts.hcas_of(PLAN, "node5") == {}


def written(*, own_manager: bool) -> dict[str, dict[str, dict[str, object]]]:
    base = Path("/var/lib/rdma-cluster-lab")
    lab, folders = make_plan("lab", "container", 4, 22000), (LabFolder(base / "labs/lab"), FabricFolder(base / "fabrics/fabric"))
    return fabric_inventory.inventory(lab, PLAN, *folders, own_manager=own_manager)


def test_the_example_is_what_is_written() -> None:
    assert yaml.safe_load(EXAMPLE.read_text()) == written(own_manager=False)


def test_an_opensm_outside_of_the_hosts_is_a_switchs() -> None:
    fabric = written(own_manager=True)["all"]["vars"]["rdma_fabric"]
    assert isinstance(fabric, dict)
    assert fabric["planes"]["compute"]["subnet_manager"] == {"kind": "switch"}


def test_what_grows_is_a_sign(tmp_path: Path) -> None:
    folder = FabricFolder(tmp_path / "f")
    (folder.path / "opensm1").mkdir(parents=True)
    log = folder.path / "opensm1/log"
    log.write_text("x")
    assert signs(folder, []) == [(str(log), 1)]
    log.write_text("xy")
    assert signs(folder, []) == [(str(log), 2)]


TWICE = """
import os, socket, sys
from tests.unit.lab.test_fabric_host import program
name = f"test-own-number-{os.getpid()}"
tool = program("tool")
tool.own_number(name)
first = os.getpid()
tool.own_number(name)
print(first, os.getpid(), flush=True)
os._exit(7)
"""


def test_a_number_that_is_taken_is_left_alone() -> None:
    """The second tool of that pid runs as another process, and ends as it does."""
    done = subprocess.run([sys.executable, "-c", TWICE], env=environment(), capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 7, done.stderr
    first, second = done.stdout.split()
    assert first != second
