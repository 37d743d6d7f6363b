# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces of planned NICs and their RDMA ports, in the trees of a ConnectX-7 and of a virtual machine with Soft-RoCE."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import QosPort
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import QosPorts, find_ports
from tests.unit.builders.trees import mlx5_machine, soft_roce_machine, write_tree

FIRST, SECOND = QosPort("ens1f0np0", "mlx5_0", "1"), QosPort("ens1f1np1", "mlx5_1", "1")


def found(root: Path, *nics: dict[str, str]) -> QosPorts:
    return find_ports(SysRoot(str(root)), nics)


def test_nics_by_address_and_by_mac_in_their_order(tmp_path: Path) -> None:
    ports = found(mlx5_machine(tmp_path), {"mac": "A0:88:C2:00:00:01"}, {"pci": "0000:3d:00.0"})
    assert ports == QosPorts({SECOND.interface: SECOND, FIRST.interface: FIRST}, [], [])
    assert list(ports.found) == [SECOND.interface, FIRST.interface]


def test_soft_roce_on_a_virtual_nic(tmp_path: Path) -> None:
    ports = found(soft_roce_machine(tmp_path), {"pci": "0000:01:00.0"}, {"mac": "52:54:00:00:02:01"})
    assert ports.found == {"eth1": QosPort("eth1", "rxe0", "1"), "eth2": QosPort("eth2", "rxe1", "1")}


def test_a_nic_that_is_not_there_and_one_without_its_device(tmp_path: Path) -> None:
    root = mlx5_machine(tmp_path)
    (root / "sys/class/infiniband/mlx5_1").unlink()
    ports = found(root, {"pci": "0000:99:00.0"}, {"pci": "0000:3d:00.1"}, {"pci": "0000:3d:00.0"}, {"mac": "02:00:00:00:00:01"})
    assert ports == QosPorts({FIRST.interface: FIRST}, [SECOND.interface], ["0000:99:00.0", "02:00:00:00:00:01"])


def test_a_port_that_speaks_infiniband_is_waited_for(tmp_path: Path) -> None:
    root = write_tree(mlx5_machine(tmp_path), "/sys/class/infiniband/mlx5_0/ports/1/link_layer: InfiniBand")
    assert found(root, {"pci": "0000:3d:00.0"}) == QosPorts({}, [FIRST.interface], [])


def test_no_nic_no_port(tmp_path: Path) -> None:
    assert found(mlx5_machine(tmp_path)) == QosPorts({}, [], [])
