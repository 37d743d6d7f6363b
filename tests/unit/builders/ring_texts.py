# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's log of a job with rings over hosts in any order, in the words of NCCL 2.28's source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class RingJob:
    """A job whose ring c enters and leaves each host by HCA c. hosts: in the order of ranks.

    graph: whether the subsystem GRAPH is on, which has each rank's neighbors; comm_id: of its communicator; channels: the number of rings.
    """

    hosts: Sequence[str]
    gpus: int = 2
    channels: int = 2
    graph: bool = True
    comm_id: str = "0x3a933d740bbafd4c"
    pid: int = 20000

    @property
    def ranks(self) -> int:
        return len(self.hosts) * self.gpus

    def ring(self, channel: int) -> list[int]:
        """The ranks of a ring: on each host from GPU `channel` around."""
        return _ring(len(self.hosts), self.gpus, channel)

    def lines(self) -> Iterator[str]:
        """The log, with line ends."""
        for rank in range(self.ranks):
            for message in self._messages(rank):
                yield f"{self.head(rank)} NCCL INFO {message}\n"

    def head(self, rank: int) -> str:
        gpu = rank % self.gpus
        return f"{self.hosts[rank // self.gpus]}:{self.pid + gpu}:{self.pid + 100 + gpu} [{gpu}]"

    def _messages(self, rank: int) -> Iterator[str]:
        gpu = rank % self.gpus
        using = " ".join(f"[{number}]mlx5_{number}:1/IB" for number in range(self.gpus))
        yield f"NET/IB : Using {using} [RO]; OOB eth0:10.0.0.1<0>"
        comm = f"ncclCommInitRankConfig comm 0x55{rank:010x} rank {rank} nranks {self.ranks} cudaDev {gpu} nvmlDev {gpu}"
        comm += f" busId {(0x1B + 16 * gpu) << 12:x} commId {self.comm_id} - Init "
        yield f"{comm}START"
        trees = []
        for channel in range(self.channels):
            ring = self.ring(channel)
            place = rank - gpu + (gpu - channel) % self.gpus
            if rank == 0:
                yield cut(f"Channel {channel:02d}/{self.channels:02d} :", ring, self.ranks)
            if self.graph:
                yield f"Ring {channel:02d} : {ring[place - 1]} -> {rank} -> {ring[(place + 1) % len(ring)]}"
            # A chain, which is a tree of one branch.
            child = rank + 1 if rank + 1 < self.ranks else -1
            trees.append(f"[{channel}] {child}/-1/-1->{rank}->{rank - 1}")
        yield "Trees " + " ".join(trees)
        yield f"{comm}COMPLETE"
        for channel in range(self.channels):
            ring = self.ring(channel)
            place = rank - gpu + (gpu - channel) % self.gpus
            yield from self._connections(channel, ring[place - 1], rank, rank)
            yield from self._connections(channel, rank, ring[(place + 1) % len(ring)], rank)
            for peer in (rank - 1, rank + 1):
                if 0 <= peer < self.ranks:
                    yield from self._connections(channel, peer, rank, rank)
                    yield from self._connections(channel, rank, peer, rank)

    def _connections(self, channel: int, sender: int, receiver: int, own: int) -> Iterator[str]:
        edge = f"Channel {channel:02d}/0 : {sender}[{sender % self.gpus}] -> {receiver}[{receiver % self.gpus}]"
        if sender // self.gpus == receiver // self.gpus:
            yield f"{edge} via P2P/CUMEM"
        elif own == receiver:
            yield f"{edge} [receive] via NET/IB/{channel}/GDRDMA"
        else:
            # It leaves through the process of the GPU beside this HCA (PXN).
            proxy = "" if sender % self.gpus == channel else f"({sender // self.gpus * self.gpus + channel})"
            yield f"{edge} [send] via NET/IB/{channel}{proxy}/GDRDMA"


@cache
def _ring(hosts: int, gpus: int, channel: int) -> list[int]:
    return [host * gpus + (channel + step) % gpus for host in range(hosts) for step in range(gpus)]


def cut(prefix: str, ranks: Sequence[int], nranks: int) -> str:
    """NCCL's list of a ring: at most 127 characters."""
    line = prefix + "".join(f" {rank:{len(str(nranks - 1))}d}" for rank in ranks)
    return line if len(line) < 128 else f"{line[:124]}..."
