# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Traffic counters of ports and interfaces: trees with the files of rxe (Linux 6.1), mlx5 and bnxt_re."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.counters import Counters, Traffic, read_counters
from tests.unit.builders.trees import write_tree

RXE = """
sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts: 12
sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts: 34
"""
#: port_xmit_data counts words of four bytes. rxe has no such file.
MLX5 = """
sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data: 1000
sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data: 2000
sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_packets: 5
sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_packets: 6
"""
BNXT = """
sys/class/infiniband/bnxt_re0/ports/1/counters/port_xmit_data: N/A (no PMA)
sys/class/infiniband/bnxt_re0/ports/1/hw_counters/tx_bytes: 77
sys/class/infiniband/bnxt_re0/ports/1/hw_counters/tx_pkts: 7
"""
NETDEV = """
sys/class/net/ens2/statistics/tx_bytes: 100
sys/class/net/ens2/statistics/rx_bytes: 200
"""


def test_the_counters_of_each_driver(tmp_path: Path) -> None:
    write_tree(tmp_path, RXE + MLX5 + BNXT + NETDEV)
    sent = read_counters(SysRoot(str(tmp_path)), "sent")
    assert sent.ports == {"bnxt_re0/1": Traffic(77, 7), "mlx5_0/1": Traffic(4000, 5), "rxe0/1": Traffic(None, 12)}
    assert sent.netdevs == {"ens2": 100}
    received = read_counters(SysRoot(str(tmp_path)), "received")
    assert received.ports == {"bnxt_re0/1": Traffic(None, None), "mlx5_0/1": Traffic(8000, 6), "rxe0/1": Traffic(None, 34)}
    assert received.netdevs == {"ens2": 200}


def test_a_host_without_rdma(tmp_path: Path) -> None:
    write_tree(tmp_path, NETDEV)
    assert read_counters(SysRoot(str(tmp_path)), "sent") == Counters({}, {"ens2": 100})


def test_the_increase_of_what_is_in_both_readings() -> None:
    before = Counters({"a/1": Traffic(10, 1), "b/1": Traffic(None, 5), "gone/1": Traffic(1, 1)}, {"x": 5, "y": 9})
    after = Counters({"a/1": Traffic(30, 4), "b/1": Traffic(None, 3), "new/1": Traffic(1, 1)}, {"x": 7, "y": 2, "z": 1})
    assert after.since(before) == Counters({"a/1": Traffic(20, 3), "b/1": Traffic(None, None)}, {"x": 2})
