# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The content of NCCL's log (NCCL_DEBUG=INFO), collected by host: its size depends on the cluster, not on the log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NcclRank:
    """One rank of one communicator. bus_id: of its GPU as in sysfs ("0000:c1:00.0"); complete: whether its initialization succeeded.

    comm_id: the same for all ranks of a communicator, None before NCCL 2.16, and for one that was split from another.
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

    sharp: its switches can reduce (as the SHARP plugin reports). name: "mlx5_0+mlx5_1" of several that NCCL has merged.
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
    """The adapters that a network of NCCL ("IB", "Socket", a plugin's name) has found on a host. oob: the interface of its own connections.

    adapters is empty if it found nothing.
    """

    host: str | None
    name: str
    adapters: tuple[Adapter, ...]
    oob: str | None


@dataclass(frozen=True)
class Channel:
    """A path of data that many lines report.

    transport: NET, COLLNET, P2P or SHM; kind: the network of NET and COLLNET ("IB", "Socket", "AWS Libfabric", "SHARP"), the method of
    others ("direct pointer", "CUMEM", "IPC", "MNNVL" between machines, "indirect", "direct").

    direction: send, receive, or None; device: NCCL's number of the adapter, adapter: its name, None if the log does not show it; proxied:
    another rank of the host sends for this one (PXN); gdr: with GPUDirect RDMA, None if it does not apply; example: the first of these
    lines.
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
    """A line on GPUDirect RDMA. hca: its name or number; gpu: as NCCL names it, None for all; reason: "distance 4 <= 4"."""

    host: str | None
    enabled: bool
    hca: str
    gpu: str | None
    reason: str | None
    count: int


@dataclass(frozen=True)
class EnvironmentValue:
    """A variable that NCCL reports as read, and the resulting value; hosts: the reporting hosts, "" for one without a name."""

    name: str
    value: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class LogLine:
    """A warning or an error, with its count and its hosts (the first of them). file, line: in NCCL's source."""

    text: str
    file: str | None
    line: int | None
    count: int
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class NcclLog:
    """Unknown values are None, or not in their list.

    lines: the number of NCCL's lines; left_out: the number of lines that were not kept because of the limit.

    networks_in_use: the names in "Using network", with the number of ranks; plugins: those loaded from outside NCCL; nnodes: NCCL's number
    of machines; nvls: whether NVLink SHARP is in use; dmabuf: hosts with DMA-BUF; bootstrap: interfaces of NCCL's own.
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
