# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NCCL's log (NCCL_DEBUG=INFO) has said, gathered by host: as large as the cluster, not as the log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NcclRank:
    """One rank of one communicator. bus_id: of its GPU as sysfs has it ("0000:c1:00.0"); complete: whether its initialisation ended well.

    comm_id: the same for all ranks of a communicator, None before NCCL 2.16, and for one that was split off another.
    """

    host: str | None
    pid: int | None
    rank: int
    nranks: int
    cuda_device: int
    nvml_device: int | None
    bus_id: str | None
    comm_id: str | None
    complete: bool


@dataclass(frozen=True)
class Adapter:
    """One entry of "NET/IB : Using", or the like of another network. layer: "IB" or "RoCE"; address: of a socket's interface.

    sharp: its switches can reduce (the SHARP plugin says so). name: "mlx5_0+mlx5_1" of several that NCCL has merged.
    """

    index: int
    name: str
    port: int | None = None
    layer: str | None = None
    rail: int | None = None
    plane: int | None = None
    sharp: bool = False
    address: str | None = None


@dataclass(frozen=True)
class Network:
    """What a network of NCCL ("IB", "Socket", a plugin's name) has found on a host. oob: the interface of its own connections.

    adapters is empty where it found nothing.
    """

    host: str | None
    name: str
    adapters: tuple[Adapter, ...]
    oob: str | None


@dataclass(frozen=True)
class Channel:
    """A way of data that many lines tell of. transport: NET, COLLNET, P2P or SHM; kind: the network of NET and COLLNET ("IB", "Socket",
    "AWS Libfabric", "SHARP"), the way of others ("direct pointer", "CUMEM", "IPC", "MNNVL" between machines, "indirect", "direct").

    direction: send, receive, or None; device: NCCL's number of the adapter, adapter: its name, None where the log does not tell it;
    proxied: another rank of the host sends for this one (PXN); gdr: with GPUDirect RDMA, None where there is no such thing;
    example: the first of these lines.
    """

    host: str | None
    transport: str
    kind: str
    direction: str | None
    device: int | None
    adapter: str | None
    proxied: bool
    gdr: bool | None
    count: int
    example: str


@dataclass(frozen=True)
class GpuDirect:
    """A line on GPUDirect RDMA. hca: its name or number; gpu: as NCCL names it, None where all are meant; reason: "distance 4 <= 4"."""

    host: str | None
    enabled: bool
    hca: str
    gpu: str | None
    reason: str | None
    count: int


@dataclass(frozen=True)
class EnvironmentValue:
    """A variable that NCCL says it has read, and the value that it took from it; hosts: which say so, "" for one without a name."""

    name: str
    value: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class LogLine:
    """A warning or an error, with how often and on which hosts (the first of them) it stands. file, line: in NCCL's source."""

    text: str
    file: str | None
    line: int | None
    count: int
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class NcclLog:
    """What is not told is None, or not in its list. lines: how many are NCCL's; left_out: how many were not kept, for there were too many.

    networks_in_use: what "Using network" names, with how many ranks; plugins: what was loaded from outside NCCL;
    nnodes: as NCCL counts machines; nvls: whether NVLink SHARP is in use; dmabuf: hosts with DMA-BUF; bootstrap: interfaces of NCCL's own.
    """

    lines: int
    versions: tuple[str, ...]
    ranks: tuple[NcclRank, ...]
    nnodes: int | None
    networks: tuple[Network, ...]
    networks_in_use: dict[str, int]
    plugins: tuple[str, ...]
    channels: tuple[Channel, ...]
    gpu_direct: tuple[GpuDirect, ...]
    dmabuf: tuple[str, ...]
    nvls: bool | None
    bootstrap: tuple[str, ...]
    environment: tuple[EnvironmentValue, ...]
    warnings: tuple[LogLine, ...]
    errors: tuple[LogLine, ...]
    left_out: int
