# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outputs of nccl-tests and NCCL: real ones of two H200 (fixtures/h200), and logs of any size in the words of NCCL 2.28's source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

H200 = Path(__file__).parents[1] / "fixtures/h200"


def h200(name: str) -> str:
    """One of the outputs in fixtures/h200."""
    return (H200 / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Job:
    """A job that talks from every rank to every other, which connects them all. network: "IB" or "Socket"; hcas: of a host, in order.

    per_peer: channels between two ranks; gdr: with GPUDirect RDMA; tag: of `mpirun --tag-output`.
    """

    hosts: int
    gpus: int
    hcas: int = 8
    per_peer: int = 2
    rings: int = 16
    network: str = "IB"
    gdr: bool = True
    tag: bool = True

    @property
    def ranks(self) -> int:
        return self.hosts * self.gpus

    def lines(self) -> Iterator[str]:
        """The log, with line ends."""
        for rank in range(self.ranks):
            head = self._head(rank)
            for message in self._start(rank):
                yield f"{head} NCCL INFO {message}\n"
        for rank in range(self.ranks):
            head = self._head(rank)
            for message in self._channels(rank):
                yield f"{head} NCCL INFO Channel {message}\n"

    def _head(self, rank: int) -> str:
        tag = f"[1,{rank}]<stdout>:" if self.tag else ""
        return f"{tag}{self.host(rank)}:{20000 + rank % self.gpus}:{21000 + rank % self.gpus} [{rank % self.gpus}]"

    def host(self, rank: int) -> str:
        return f"gpu{rank // self.gpus + 1:03d}"

    def _start(self, rank: int) -> Iterator[str]:
        gpu = rank % self.gpus
        if rank == 0:
            yield "NCCL version 2.28.9+cuda13.0"
        yield "NCCL_IB_HCA set to =" + ",".join(f"mlx5_{number}" for number in range(self.hcas))
        using = " ".join(f"[{number}]mlx5_{number}:1/IB" for number in range(self.hcas))
        yield f"NET/IB : Using {using} [RO]; OOB eth0:10.0.{rank // self.gpus}.1<0>"
        yield f"Initialized NET plugin {self.network}"
        yield f"Using network {self.network}"
        yield f"DMA-BUF is available on GPU device {gpu}"
        comm = f"ncclCommInitRankConfig comm 0x55{rank:010x} rank {rank} nranks {self.ranks} cudaDev {gpu} nvmlDev {gpu}"
        comm += f" busId {(0x1B + 16 * gpu) << 12:x} commId 0x3a933d740bbafd4c - Init "
        yield f"{comm}START"
        for number in range(self.hcas):
            yield f"NET/IB : GPU Direct RDMA {'Enabled' if self.gdr else 'Disabled'} for HCA {number} 'mlx5_{number}'"
        yield "NCCL_NVLS_ENABLE set by environment to 0."
        yield f"comm 0x55{rank:010x} rank {rank} nRanks {self.ranks} nNodes {self.hosts} localRanks {self.gpus} localRank {gpu} MNNVL 0"
        if rank == 0:
            for ring in range(self.rings):
                yield f"Channel {ring:02d}/{self.rings} : {' '.join(map(str, range(self.ranks)))}"
        yield "Trees " + " ".join(f"[{ring}] {rank + 1}/-1/-1->{rank}->{rank - 1}" for ring in range(self.rings))
        yield "P2P Chunksize set to 131072"
        coll = f"{self.rings} coll channels, {self.rings} collnet channels, 0 nvls channels"
        yield f"{coll}, 32 p2p channels, {self.per_peer} p2p channels per peer"
        yield f"{comm}COMPLETE"

    def _channels(self, rank: int) -> Iterator[str]:
        for peer in range(self.ranks):
            if peer == rank:
                continue
            for channel in range(self.per_peer):
                forth = f"{channel:02d}/1 : {rank}[{rank % self.gpus}] -> {peer}[{peer % self.gpus}]"
                if self.host(peer) == self.host(rank):
                    yield f"{forth} via P2P/CUMEM"
                    continue
                back = f"{channel:02d}/1 : {peer}[{peer % self.gpus}] -> {rank}[{rank % self.gpus}]"
                own, far = rank % self.gpus % self.hcas, peer % self.gpus % self.hcas
                flags = f"{'/GDRDMA' if self.gdr else ''}/Shared"
                # A send goes out on the peer's rail: through the process that has it (PXN).
                proxy = "" if own == far else f"({rank // self.gpus * self.gpus + far})"
                yield f"{back} [receive] via NET/{self.network}/{own}{flags}"
                yield f"{forth} [send] via NET/{self.network}/{far}{proxy}{flags}"
