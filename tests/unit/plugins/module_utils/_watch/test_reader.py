# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reader of the live view: what it reads of a tree, whose queue pairs it reports, and what it costs."""

from __future__ import annotations

import time
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._watch.reader import QPS, PortReader
from tests.unit.builders.fakes import FakeRunner, Without
from tests.unit.builders.trees import mlx5_machine, write_tree

PORT = "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0/infiniband/mlx5_0/ports/1"
RESOURCE = Path(__file__).parents[3] / "fixtures/rdma/resource-qp-6.1.json"


def test_ports_with_their_interfaces_and_counters(tmp_path: Path) -> None:
    root = write_tree(
        mlx5_machine(tmp_path), f"{PORT}/counters/port_rcv_data: 77\n{PORT}/counters/unwanted: 1\n{PORT}/hw_counters/np_cnp_sent: x"
    )
    ports = PortReader(str(root), lambda _name: None, None).quick()
    assert sorted(ports) == ["mlx5_0/1", "mlx5_1/1"]
    found = ports["mlx5_0/1"]
    assert (found["state"], found["rate"], found["netdev"]) == ("4: ACTIVE", "200 Gb/sec (2X NDR)", "ens1f0np0")
    assert found["counters"]["port_rcv_data"] == 77
    assert found["counters"]["out_of_sequence"] == 7
    # Neither a counter that nobody asked for, nor one that is no number.
    assert not {"unwanted", "np_cnp_sent"} & found["counters"].keys()


def test_the_pauses_of_all_priorities_are_one_number_and_missing_tools_are_unknown(tmp_path: Path) -> None:
    counts = {"rx_prio3_pause": 5, "rx_prio4_pause": 2, "tx_prio3_pause": 1, "rx_discards_phy": 9, "rx_bytes_phy": 100, "other": 3}
    reader = PortReader(str(mlx5_machine(tmp_path)), lambda _name: counts, Without(["rdma"], []))
    reader.quick()
    slow = reader.slow()
    assert slow["netdevs"] == {"ens1f0np0": {"rx_pause": 7, "tx_pause": 1, "rx_discards_phy": 9, "rx_bytes_phy": 100}}
    assert slow["qps"] is None


def test_queue_pairs_by_process_from_real_output(tmp_path: Path) -> None:
    text = RESOURCE.read_text()
    reader = PortReader(str(mlx5_machine(tmp_path)), lambda _name: None, FakeRunner([(list(QPS), 0, text, "")]))
    reader.quick()
    ports = reader.slow()["qps"]
    assert sum(sum(owners.values()) for owners in ports.values()) == text.count('"lqpn"')
    assert any("kernel" in owners for owners in ports.values())
    assert any(owner.split()[0].isdigit() for owners in ports.values() for owner in owners)


def test_a_reading_costs_less_than_a_hundredth_of_a_core_at_one_hertz(tmp_path: Path) -> None:
    """One card of two ports; docs/measurements.md has eight."""
    reader = PortReader(str(mlx5_machine(tmp_path)), lambda _name: None, None)
    reader.quick()
    begun = time.process_time()
    for _pass in range(20):
        reader.quick()
    assert (time.process_time() - begun) / 20 < 0.01
