# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rings, trees and connections in NCCL's log: real logs of two hosts, and logs of many ranks in the words of NCCL's source."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import Adapter
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings import log as log_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.log import RECEIVE, SEND, Communicator, Nic, RingLog, read_rings
from tests.unit.builders.ring_texts import RingJob

FIXTURES = Path(__file__).parents[3] / "fixtures"


def read(name: str) -> RingLog:
    return read_rings((FIXTURES / name).read_text(encoding="utf-8").splitlines(keepends=True))


def test_two_hosts_over_sockets() -> None:
    log = read("h100/two_hosts_sockets.txt")
    (only,) = log.communicators
    assert only == Communicator(
        "0xe2951917060838bf",
        2,
        {0: "nodea", 1: "nodeb"},
        {0: {0: 1, 1: 0}, 1: {0: 1, 1: 0}},
        {0: {1: 0}, 1: {0: 1}},
        {0: ("nodea", 1384), 1: ("nodeb", 1401)},
    )
    for direction, address in ((SEND, "10.77.0.1"), (RECEIVE, "10.77.0.2")):
        assert log.nic(only, direction, 0, 0, 1) == Nic(Adapter(0, "lk0", address=address))
    assert log.nic(only, SEND, 2, 0, 1).why == "the log has no network connection of its sender"


def test_two_gpus_of_one_process() -> None:
    log = read("h200/all_reduce_perf_via_socket_debug_info.txt")
    assert [(each.hosts, each.rings[1], each.trees[1]) for each in log.communicators] == [({1: "vm", 0: "vm"}, {0: 1, 1: 0}, {0: 1})]
    assert log.nic(log.communicators[0], RECEIVE, 1, 1, 0).adapter == Adapter(0, "eth0", address="192.0.2.2")


def test_a_long_ring_without_graph_is_cut() -> None:
    job = RingJob([f"gpu{number}" for number in range(40)])
    assert read_rings(RingJob(job.hosts, graph=False).lines()).communicators[0].rings == {0: {}, 1: {}}
    rings = read_rings(job.lines()).communicators[0].rings
    ring = job.ring(1)
    assert rings[1] == dict(zip(ring, [*ring[1:], ring[0]], strict=True))


@pytest.mark.parametrize("words", [" Ring ", " via NET/"])
def test_a_log_that_is_too_long_is_cut_where_the_limit_is(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """Each line of a ring counts once, and so does each connection."""
    lines = [line for line in RingJob(["gpu1", "gpu2"]).lines() if words in line]
    monkeypatch.setattr(log_file, "MOST", len(lines) - 2)
    assert (len(lines) > 3, read_rings(lines).left_out) == (True, 1)


def test_a_short_ring_needs_no_graph() -> None:
    job = RingJob(["gpu1", "gpu2"], graph=False)
    assert read_rings(job.lines()).communicators[0].rings[1] == {1: 0, 0: 3, 3: 2, 2: 1}


def test_the_adapter_of_a_proxied_send() -> None:
    log = read_rings(RingJob(["gpu1", "gpu2"]).lines())
    # Ring 1 leaves each host from GPU 0 by the HCA of GPU 1.
    assert log.nic(log.communicators[0], SEND, 1, 0, 3) == Nic(Adapter(1, "mlx5_1", 1, "IB"))


def test_several_communicators_of_the_same_processes() -> None:
    hosts = ["gpu1", "gpu2"]
    lines = [*RingJob(hosts).lines(), *RingJob(hosts, channels=1, comm_id="0x2").lines()]
    log = read_rings(lines)
    assert [(each.name, len(each.rings)) for each in log.communicators] == [("0x2", 1), ("0x3a933d740bbafd4c", 2)]
    assert log.nic(log.communicators[0], SEND, 0, 1, 2).adapter == Adapter(0, "mlx5_0", 1, "IB")
    other = [line.replace("via NET/IB/0", "via NET/IB/1") for line in lines[len(lines) // 2 :]]
    mixed = read_rings([*lines, *other])
    assert "several network connections" in mixed.nic(mixed.communicators[0], SEND, 0, 1, 2).why


def test_ranks_that_no_line_tells_apart() -> None:
    both = [*RingJob(["gpu1", "gpu2"]).lines(), *RingJob(["gpu3", "gpu4"]).lines()]
    log = read_rings(line.replace(" commId 0x3a933d740bbafd4c", "") for line in both)
    assert log.communicators == ()
    assert log.unclear == ("communicators of 4 ranks without an ID: several have the same rank, and the log does not distinguish them",)


def test_a_torn_line_is_counted() -> None:
    first, second, *rest = RingJob(["gpu1", "gpu2"]).lines()
    assert read_rings([first.rstrip() + second, *rest]).left_out == 1


def test_a_log_of_others() -> None:
    assert read_rings(["node1 node2\n", "# out-of-place\n"]) == RingLog((), (), 0, {})


def test_a_log_of_nccl_2_16_behind_a_launcher() -> None:
    """NCCL 2.16 has no START line, no Ring lines without GRAPH, and bus IDs of GPUs; horovodrun writes the rank before each line."""
    lines = []
    for rank, other, tree in ((0, 1, "1/-1/-1->0->-1"), (1, 0, "-1/-1/-1->1->0")):
        head = f"[{rank}]<stdout>:gpu{rank + 1}:{4100 + rank}:{4200 + rank} [0] NCCL INFO "
        messages = [
            f"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB ib0:192.0.2.{rank + 1}<0>",
            *(["Channel 00/01 :    0   1"] if rank == 0 else []),
            f"Trees [0] {tree}",
            f"Channel 00/0 : {other}[3b000] -> {rank}[3b000] [receive] via NET/IB/1",
            f"Channel 00/0 : {rank}[3b000] -> {other}[3b000] [send] via NET/IB/1",
            f"comm 0x2aab70001000 rank {rank} nranks 2 cudaDev 0 busId 3b000 commId 0x25baa10b1e552700 - Init COMPLETE",
        ]
        lines += [f"{head}{message}\n" for message in messages]
    log = read_rings(lines)
    (only,) = log.communicators
    assert (only.hosts, only.rings, only.trees) == ({0: "gpu1", 1: "gpu2"}, {0: {0: 1, 1: 0}}, {0: {1: 0}})
    assert log.nic(only, SEND, 0, 0, 1).adapter == log.nic(only, RECEIVE, 0, 0, 1).adapter == Adapter(1, "mlx5_1", 1, "IB")


@pytest.mark.parametrize("ranks", ["0 1 2 2", "0 1 3", "0 1 2 3 3", "1 2 3 4", "0 1 2 3 4"])
def test_a_list_that_is_no_ring_of_all_ranks_is_left_out(ranks: str) -> None:
    lines = list(RingJob(["gpu1", "gpu2"], channels=1, graph=False).lines())
    [place] = [number for number, line in enumerate(lines) if "Channel 00/01 :" in line]
    head, mark, _ring = lines[place].partition("Channel 00/01 : ")
    assert read_rings(lines).communicators[0].rings == {0: {0: 1, 1: 2, 2: 3, 3: 0}}
    lines[place] = f"{head}{mark}  {ranks}\n"
    assert read_rings(lines).communicators[0].rings == {0: {}}
