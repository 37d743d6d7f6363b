# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the path of a run's data, by host: the channels in NCCL's log and the HCAs that they use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import (
    HCAS_CHECK,
    STAGE,
    TRANSPORT_CHECK,
    Expected,
    Outcome,
    short_name,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.channels import OTHER
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import Channel

_NETWORKS = ("NET", "COLLNET")
#: NCCL's suffix for a device that accesses the GPU's memory directly (Data Direct).
_DATA_DIRECT = "_dma"
_DEBUG = "Run it with NCCL_DEBUG=INFO (subsystems INIT and NET) on all ranks, and pass its full output."


def check_transport(outcome: Outcome, expected: Expected) -> list[Finding]:
    """Return `collective.transport` for each planned host: between hosts over the planned network, with GPUDirect RDMA if it is planned.

    Sockets are always an error. Traffic without a network between hosts (NVLink of several machines) proves no network: unknown.
    """
    several = len(expected.hosts) > 1
    wanted = (
        f"NET/{expected.network}{' with GPUDirect RDMA' if expected.gdr else ''} between hosts, no sockets" if several else "no network"
    )
    found = []
    for host, channels in sorted(_of_hosts(outcome, expected).items()):
        if not channels and not several and _by_nvls(outcome):
            found.append(Finding(STAGE, TRANSPORT_CHECK, host, outcome.subject, OK, "only NVLS: the NVLink switches reduce", wanted))
            continue
        status, remedy = _transport(host, channels, expected)
        seen = _counted(channels) or "no line on its channels"
        socket = next((f": {channel.example}" for channel in channels if _is_socket(channel)), "")
        found.append(Finding(STAGE, TRANSPORT_CHECK, host, outcome.subject, status, f"{seen}{socket}", wanted, remedy))
    return found


def _by_nvls(outcome: Outcome) -> bool:
    """Return whether NVLink SHARP was set up. Since 2.22 NCCL connects an algorithm when it is first used (NCCL_RUNTIME_CONNECT).

    If NVLS handles all sizes of one host, no channel is ever connected.
    """
    return outcome.log is not None and outcome.log.nvls is True


def _of_hosts(outcome: Outcome, expected: Expected) -> dict[str, list[Channel]]:
    """Return the channels of each planned host; NCCL's names and those of the plan may have a domain."""
    names = {short_name(name): host for host, name in expected.hosts.items()}
    found: dict[str, list[Channel]] = {host: [] for host in expected.hosts}
    for channel in outcome.log.channels if outcome.log is not None else ():
        host = names.get(short_name(channel.host or ""))
        if host is not None:
            found[host].append(channel)
    return found


def _is_socket(channel: Channel) -> bool:
    """Return whether it is NET/Socket, or a plugin that works the same way (FastSocket)."""
    return channel.transport in _NETWORKS and "socket" in channel.kind.lower()


def _transport(host: str, channels: Sequence[Channel], expected: Expected) -> tuple[str, str]:
    """Return the status of a host's channels, and the remedy."""
    if any(map(_is_socket, channels)):
        return (
            ERROR,
            f"NCCL uses no RDMA device on {host}. Check its NET/IB lines, NCCL_IB_DISABLE, NCCL_IB_HCA, memlock and /dev/infiniband.",
        )
    if not channels or any(channel.transport == OTHER for channel in channels):
        return UNKNOWN, _DEBUG
    network = [channel for channel in channels if channel.transport in _NETWORKS]
    status, remedy = _between(host, network, expected) if len(expected.hosts) > 1 else _within(host, network)
    if status == OK and expected.p2p and any(channel.transport == "SHM" for channel in channels):
        return WARNING, f"GPUs of {host} use its memory. Check NCCL_P2P_DISABLE, NCCL_P2P_LEVEL, ACS and `nvidia-smi topo -m`."
    return status, remedy


def _between(host: str, network: Sequence[Channel], expected: Expected) -> tuple[str, str]:
    foreign = [channel for channel in network if channel.transport == "NET" and not channel.kind.startswith(expected.network)]
    if foreign:
        return ERROR, f"NCCL on {host} uses NET/{foreign[0].kind}. Check NCCL_NET, NCCL_NET_PLUGIN and the installed plugins."
    if not network:
        return UNKNOWN, "Nothing crossed the network. Run it with NCCL_MNNVL_ENABLE=0, or on hosts without common NVLink."
    if expected.gdr is not False and any(not channel.gdr for channel in network):
        remedy = f"1. Run the gpu stage for {host} (nvidia_peermem, DMA-BUF). 2. Check NCCL_NET_GDR_LEVEL, and ACS between GPU and NIC."
        return ERROR if expected.gdr else WARNING, remedy
    return OK, ""


def _within(host: str, network: Sequence[Channel]) -> tuple[str, str]:
    if network:
        return WARNING, f"GPUs of {host} communicate over its NICs. Check NCCL_P2P_DISABLE and NCCL_SHM_DISABLE."
    return OK, ""


def _counted(channels: Iterable[Channel]) -> str:
    counts: Counter[str] = Counter()
    for channel in channels:
        gdr = "" if channel.gdr is None or _is_socket(channel) else " with" if channel.gdr else " without"
        way = channel.kind if channel.transport == OTHER else f"{channel.transport}/{channel.kind}"
        counts[f"{way}{gdr}{' GPUDirect RDMA' if gdr else ''}"] += channel.count
    return ", ".join(f"{count} over {way}" for way, count in sorted(counts.items()))


def check_hcas(outcome: Outcome, expected: Expected) -> list[Finding]:
    """Return `collective.hcas` for each planned host: its channels used the planned HCAs."""
    return [_hcas(outcome, host, channels, expected) for host, channels in sorted(_of_hosts(outcome, expected).items())]


def _hcas(outcome: Outcome, host: str, channels: Sequence[Channel], expected: Expected) -> Finding:
    planned = expected.hcas.get(host)
    if planned is None or len(expected.hosts) < 2:
        why = "one host: nothing crosses its NICs" if planned is not None else "no HCA is planned for it"
        return Finding(STAGE, HCAS_CHECK, host, outcome.subject, NOT_APPLICABLE, why, "the planned HCAs")
    network = [channel for channel in channels if channel.transport in _NETWORKS]
    if not planned:
        status, seen = UNKNOWN, "no device of its compute rails is known"
        remedy = f"Run the driver and link stages for {host}: none of its compute rails has a device."
    elif any(map(_is_socket, network)):
        status, seen, remedy = NOT_APPLICABLE, "not all channels used an HCA, see collective.transport", ""
    elif not network:
        status, seen, remedy = UNKNOWN, "no line on its network channels", _DEBUG
    elif any(channel.adapter is None for channel in network):
        status, seen, remedy = UNKNOWN, "the log does not show the devices of NCCL's numbers", _DEBUG
    else:
        used = frozenset(device for channel in network for device in _devices(channel.adapter or ""))
        seen, remedy = ", ".join(sorted(used)), _remedy_of_hcas(host, planned, used, all_of_them=expected.all_hcas)
        status = ERROR if remedy else OK
    wanted = ", ".join(sorted(planned)) or "the devices of its compute rails"
    return Finding(STAGE, HCAS_CHECK, host, outcome.subject, status, seen, wanted, remedy)


def _remedy_of_hcas(host: str, planned: frozenset[str], used: frozenset[str], *, all_of_them: bool) -> str:
    """Return the remedy for HCAs that differ from the plan; "" if they match."""
    strange, idle = sorted(used - planned), sorted(planned - used)
    if strange:
        return f"Run the nccl stage for {host}: NCCL_IB_HCA should name {', '.join(sorted(planned))}, without {', '.join(strange)}."
    if idle and all_of_them:
        return f"On {host}, check that {', '.join(idle)} is ACTIVE and near a used GPU (`nvidia-smi topo -m`), and check NCCL_IB_HCA."
    return ""


def _devices(adapter: str) -> list[str]:
    """Return the device names. NCCL writes merged devices as one word: mlx5_0+mlx5_1."""
    return [name[: -len(_DATA_DIRECT)] if name.endswith(_DATA_DIRECT) else name for name in adapter.split("+")]
