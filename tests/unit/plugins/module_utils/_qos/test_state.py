# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of interfaces: trees written after the drivers' sources, and what the tools print."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import add_named
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Ethtool, Pause
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._qos.state import as_tree, read_all_qos, read_qos, roce_interfaces
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import read_devices
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import RdmaCm
from tests.unit.builders import dcb_texts
from tests.unit.builders.fakes import Call, FakeRunner, Without
from tests.unit.builders.mlnx_qos_texts import DSCP
from tests.unit.builders.trees import mlx5_machine, soft_roce_machine, write_tree

NAME = "ens1f0np0"
OFED = f"""
    /sys/class/net/{NAME}/ecn/roce_np/cnp_dscp: 48
    /sys/class/net/{NAME}/ecn/roce_np/cnp_802p_prio: 6
    /sys/class/net/{NAME}/ecn/roce_rp/rpg_gd: 11
    /sys/class/infiniband/mlx5_0/tc/1/traffic_class: Global tclass=106
    /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode: RoCE v2
    /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos: 106
    /sys/fs/cgroup/system.slice/lldpad.service/cgroup.procs: 7
""" + "\n".join(f"/sys/class/net/{NAME}/ecn/roce_{side}/enable/{number}: 1" for side in ("np", "rp") for number in range(8))
UPSTREAM = "/sys/kernel/debug/mlx5/0000:3d:00.0/cc_params/np_cnp_dscp: 48"
COMMANDS = (("pfc", dcb_texts.PFC), ("ets", dcb_texts.ETS), ("app", dcb_texts.APP), ("dcbx", dcb_texts.DCBX), ("buffer", dcb_texts.BUFFER))


def by_dcb(name: str = NAME) -> list[Call]:
    """What dcb answers for an interface."""
    more = {"app": ("dscp-prio",)}
    return [(("dcb", "-N", "-j", kind, "show", "dev", name, *more.get(kind, ())), 0, text, "") for kind, text in COMMANDS]


def test_ofed_s_driver_and_its_tool(tmp_path: Path) -> None:
    runner = FakeRunner([(("mlnx_qos", "-i", NAME), 0, DSCP, "")])

    state = read_qos(SysRoot(str(write_tree(mlx5_machine(tmp_path), OFED))), runner, NAME, "mlx5_0", "1")

    assert (state.backend, state.dcbx, state.trust, state.cable_length_m) == ("mlnx_qos", "os", "dscp", 7)
    assert (state.dcqcn_source, state.np, state.rp) == ("sysfs", {"cnp_dscp": 48, "cnp_802p_prio": 6}, {"rpg_gd": 11})
    assert (state.ecn_np, state.ecn_rp) == ([True] * 8, [True] * 8)
    assert (state.traffic_class, state.traffic_class_settable, state.rdma_cm) == (106, True, RdmaCm("RoCE v2", 106))
    assert (state.agents, state.warnings) == ({"lldpad": UnitState(active=True, enabled=False)}, [])
    assert (state.device, state.port) == ("mlx5_0", "1")


def test_a_traffic_class_that_is_not_set_can_be(tmp_path: Path) -> None:
    tree = write_tree(mlx5_machine(tmp_path), "/sys/class/infiniband/mlx5_0/tc/1/traffic_class:")

    state = read_qos(SysRoot(str(tree)), Without(("mlnx_qos",), by_dcb()), NAME, "mlx5_0", "1")

    assert (state.traffic_class, state.traffic_class_settable) == (None, True)


def test_the_kernel_s_own_driver(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(mlx5_machine(tmp_path), UPSTREAM)))

    state = read_qos(sys, Without(("mlnx_qos",), by_dcb()), NAME, "mlx5_0", "1")

    assert (state.backend, state.trust, state.cable_length_m) == ("dcb", "dscp", 7)
    assert (state.dcqcn_source, state.np, state.rp) == ("debugfs", {"cnp_dscp": 48}, {})
    assert (state.ecn_np, state.traffic_class_settable, state.rdma_cm, state.agents) == (None, False, None, {})


def test_a_file_for_trust_knows_better_than_entries(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(mlx5_machine(tmp_path), f"/sys/class/net/{NAME}/qos/trust: pcp")))

    state = read_qos(sys, Without(("mlnx_qos",), by_dcb()), NAME, "mlx5_0", "1")

    assert (state.trust, state.dscp_to_priority) == ("pcp", {26: 3, 48: 6})


def test_a_card_of_another_driver_is_not_asked_by_mlnx_qos(tmp_path: Path) -> None:
    runner = FakeRunner([(("dcb", "-N", "-j", "pfc", "show", "dev", "eth1"), 1, "\n", dcb_texts.NO_DCB)])

    state = read_qos(SysRoot(str(soft_roce_machine(tmp_path))), runner, "eth1", "rxe0", "1")

    assert state.why == "mlnx_qos supports only mlx5 interfaces; the driver of eth1 has no DCB (Attribute read: Operation not supported)"
    assert (state.backend, state.pfc, state.np, state.ecn_rp, state.warnings) == (None, None, None, None, [])


def test_the_tree_is_as_json_has_it(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(mlx5_machine(tmp_path), OFED)))
    tree = as_tree(read_qos(sys, FakeRunner([(("mlnx_qos", "-i", NAME), 0, DSCP, "")]), NAME, "mlx5_0", "1"), None)

    assert json.loads(json.dumps(tree)) == tree
    assert (tree["dscp_to_priority"]["48"], tree["rdma_cm"]) == (6, {"mode": "RoCE v2", "tos": 106})


def test_global_pause_is_that_of_the_interface(tmp_path: Path) -> None:
    sys = SysRoot(str(soft_roce_machine(tmp_path)))
    netdevs = read_netdevs(sys)
    devices = read_devices(sys, netdevs, PciReader(sys))
    known = {name: replace(netdev, ethtool=None) for name, netdev in netdevs.items()}
    parts: dict[str, Any] = dict.fromkeys(each.name for each in fields(Ethtool))
    known["eth1"] = replace(netdevs["eth1"], ethtool=Ethtool(**{**parts, "pause": Pause(rx=True, tx=False, autoneg=False)}))
    seen = read_all_qos(sys, Without(["mlnx_qos", "dcb", "lldptool"], []), known, devices)
    assert {name: tree["pause"] for name, tree in seen.items()} == {"eth1": {"rx": True, "tx": False}, "eth2": None}


def interfaces(root: Path) -> dict[str, tuple[str, str]]:
    """What carries RoCE in a tree."""
    sys = SysRoot(str(root))
    netdevs = read_netdevs(sys)
    devices = read_devices(sys, netdevs, PciReader(sys))
    return roce_interfaces(add_named(sys, netdevs, devices), devices)


def test_the_interfaces_of_roce_ports(tmp_path: Path) -> None:
    assert interfaces(mlx5_machine(tmp_path / "mlx5")) == {NAME: ("mlx5_0", "1"), "ens1f1np1": ("mlx5_1", "1")}
    assert interfaces(soft_roce_machine(tmp_path / "soft")) == {"eth1": ("rxe0", "1"), "eth2": ("rxe1", "1")}


def test_infiniband_and_iwarp_have_none(tmp_path: Path) -> None:
    infiniband = write_tree(mlx5_machine(tmp_path / "1"), "/sys/class/infiniband/mlx5_0/ports/1/link_layer: InfiniBand")
    iwarp = write_tree(mlx5_machine(tmp_path / "2"), "/sys/class/infiniband/mlx5_0/node_type: 4: RNIC")

    assert list(interfaces(infiniband)) == list(interfaces(iwarp)) == ["ens1f1np1"]


def test_the_members_stand_for_a_bond(tmp_path: Path) -> None:
    tree = mlx5_machine(tmp_path)
    for name in (NAME, "ens1f1np1"):
        write_tree(tree, f"/sys/class/net/{name}/master -> ../../../../../../virtual/net/bond0")
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    write_tree(tree, f"/sys/class/net/bond0/mtu: 9000\n{port}/gid_attrs/ndevs/0: bond0\n{port}/gid_attrs/ndevs/1: bond0")
    write_tree(tree, f"{port}/gid_attrs/ndevs/10: bond0\n{port}/gid_attrs/ndevs/11: bond0")
    (tree / "sys/class/infiniband/mlx5_1").unlink()

    assert interfaces(tree) == {NAME: ("mlx5_0", "1"), "ens1f1np1": ("mlx5_0", "1")}


def test_hardware_is_named_before_software_on_it(tmp_path: Path) -> None:
    rxe = "/sys/devices/virtual/infiniband/a_rxe"
    tree = f"/sys/class/infiniband/a_rxe -> ../../devices/virtual/infiniband/a_rxe\n{rxe}/parent: {NAME}\n{rxe}/node_type: 1: CA"
    tree += f"\n{rxe}/ports/1/link_layer: Ethernet\n{rxe}/ports/1/state: 4: ACTIVE"

    assert interfaces(write_tree(mlx5_machine(tmp_path), tree))[NAME] == ("mlx5_0", "1")
