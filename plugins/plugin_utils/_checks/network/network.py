# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the network gate: the MTU of each rail, the GID of its address, and the MTU of RoCE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import rail_users
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import mtu_differs
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import (
    ResolvedRail,
    address_netdev,
    rail_ip,
    resolve,
    rocev2_gid_index,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.roce_mtu import (
    BEST_MTU_BYTES,
    ROCE_HEADERS_BYTES,
    efficiency_percent,
    rdma_mtu_bytes,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, NO_NIC, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.links import missing_words

declare(
    {
        "network.mtu": Check(
            "network",
            "the MTU of each planned rail's interface",
            "`/sys/class/net/IF/mtu`",
            "find what else manages the interface: `networkctl status IF`",
            follows=NO_NIC,
            sources=(reads.file(f"{reads.NET}/mtu"),),
        ),
        "network.gid": Check(
            "network",
            "the RoCE v2 GID of the rail's address, and whether its index moved since the last pair proof, which is a warning",
            "`ports/N/gids`, `gid_attrs`; `proofs/pairs.json` in `rdma_run_dir`",
            "check that the interface has the address: `ip addr show IF`; for a moved index, do not set `NCCL_IB_GID_INDEX` for jobs",
            follows=NO_DEVICE,
            sources=(reads.but(reads.GIDS, absent_means=reads.NO_GID), reads.but(reads.GID_TYPES, absent_means=reads.NO_GID)),
        ),
        "network.rdma_mtu": Check(
            "network",
            "the RoCE MTU of each planned rail: 4096 needs an interface MTU of at least 4192",
            "`ibv_devinfo` (the port's active MTU), `/sys/class/net/IF/mtu`",
            "set `mtu_bytes` to 9000 on all hosts, and a larger MTU on the switches",
            sources=(reads.DEVINFO, reads.file(f"{reads.NET}/mtu")),
        ),
    }
)

STAGE = "network"


def check_network(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Findings `network.mtu` and `network.gid` for each planned rail of one host."""
    return [finding for rail in resolve(rails, facts) for finding in _rail(host, rail, facts)]


def _rail(host: str, rail: ResolvedRail, facts: Facts) -> Iterator[Finding]:
    if rail.netdev is None and rail.device is not None and rail.rail["link_layer"] == "infiniband" and rail.rail["address"] is None:
        why = "no address is planned and there is no IPoIB interface; RDMA does not need one"
        yield Finding(STAGE, "network.mtu", host, rail.subject, NOT_APPLICABLE, why, _mtu_words(rail))
    elif rail.netdev is None:
        yield Finding(STAGE, "network.mtu", host, rail.subject, UNKNOWN, "no interface", _mtu_words(rail), _look(host))
    else:
        netdev = address_netdev(rail, facts)
        if netdev is None:
            why = missing_words(rail, str(rail.interface))
            yield Finding(STAGE, "network.mtu", host, rail.subject, NOT_APPLICABLE, why, _mtu_words(rail))
            yield with_users(_gid(host, rail, facts), rail, facts)
            return
        yield with_users(_mtu(host, rail, netdev.mtu_bytes), rail, facts)
    yield with_users(_gid(host, rail, facts), rail, facts)


def with_users(finding: Finding, rail: ResolvedRail, facts: Facts) -> Finding:
    """The finding; if it stops the gate and the rail is in use, with the users in its remedy."""
    users = rail_users(facts.load, rail.device, rail.port) if facts.load is not None else ""
    if finding.status != ERROR or not users:
        return finding
    words = (
        f"The network stage does not change the MTU or remove addresses while the rail is in use: {users}. "
        f"1. Wait until it ends, or drain {finding.host}. "
        f"2. Run `ansible-playbook rdma.cluster.network --limit {finding.host}` on the control node."
    )
    return replace(finding, remedy=f"{words} If that does not fix it: {finding.remedy}")


def _mtu_words(rail: ResolvedRail) -> str:
    return "any: the intent has no mtu_bytes" if rail.rail["mtu_bytes"] is None else f"{rail.rail['mtu_bytes']} bytes"


def _look(host: str) -> str:
    return f"Run the driver stage for {host}. Its gate reports what is missing."


def _mtu(host: str, rail: ResolvedRail, mtu_bytes: int | None) -> Finding:
    if mtu_bytes is None:
        remedy = f"Run `cat /sys/class/net/{rail.interface}/mtu` on {host}."
        return Finding(STAGE, "network.mtu", host, rail.subject, UNKNOWN, "the MTU was not read", _mtu_words(rail), remedy)
    if rail.rail["mtu_bytes"] is None:
        words = f"{mtu_bytes} bytes: the MTU is not changed, and alike.mtu compares it with other hosts"
        return Finding(STAGE, "network.mtu", host, rail.subject, NOT_APPLICABLE, words, _mtu_words(rail))
    good = not mtu_differs(rail.rail["mtu_bytes"], mtu_bytes)
    remedy = f"On {host}, find what else manages {rail.interface}: `networkctl status {rail.interface}`."
    if rail.rail["link_layer"] == "infiniband" and mtu_bytes is not None and mtu_bytes < rail.rail["mtu_bytes"]:
        remedy = (
            f"Set `mtu` of the partition in rdma_partitions, or `mtu_bytes` of {rail.name} on {host}. IP over InfiniBand is limited by its "
            f"partition's multicast group ({mtu_bytes} bytes and a header of 4). RDMA does not use it."
        )
    return Finding(
        STAGE, "network.mtu", host, rail.subject, OK if good else ERROR, f"{mtu_bytes} bytes", _mtu_words(rail),
        "" if good else remedy,
    )  # fmt: skip


def _gid(host: str, rail: ResolvedRail, facts: Facts) -> Finding:
    if rail.rail["link_layer"] != "roce":
        why = "InfiniBand addresses ports by LID, not by IP address"
        return Finding(STAGE, "network.gid", host, rail.subject, NOT_APPLICABLE, why, "a RoCE v2 GID")
    address = rail_ip(rail.rail)
    expected = f"a RoCE v2 GID of {address}"
    port = _port(rail, facts)
    if port is None:
        return Finding(STAGE, "network.gid", host, rail.subject, UNKNOWN, "no RDMA device", expected, _look(host))
    index = rocev2_gid_index(port, address)
    there = sorted(port.rocev2)
    return Finding(
        STAGE, "network.gid", host, rail.subject, ERROR if index is None else OK,
        observed=f"GID index {index}" if index is not None else f"none; the GID table has {', '.join(there) or 'no address'}",
        expected=expected,
        remedy="" if index is not None else f"On {host}, check that {rail.interface} has {address}: `ip addr show {rail.interface}`.",
    )  # fmt: skip


def check_rdma_mtu(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `network.rdma_mtu` for each planned rail: RoCE reaches its largest MTU of 4096 only with an interface MTU of 4192 or more."""
    return [_rdma_mtu(host, rail, facts) for rail in resolve(rails, facts)]


def _rdma_mtu(host: str, rail: ResolvedRail, facts: Facts) -> Finding:
    best = BEST_MTU_BYTES

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "network.rdma_mtu", host, rail.subject, status, observed, f"{best} bytes", remedy)

    if rail.rail["link_layer"] != "roce":
        return finding(NOT_APPLICABLE, "on InfiniBand it does not depend on the interface: see link.mtu")
    netdev, port = address_netdev(rail, facts), _port(rail, facts)
    mtu_bytes = netdev.mtu_bytes if netdev is not None else None
    if mtu_bytes is None or port is None:
        missing = "interface with a known MTU: see network.mtu" if mtu_bytes is None else "RDMA device: see network.gid"
        return finding(NOT_APPLICABLE, f"no {missing}")
    follows = rdma_mtu_bytes(mtu_bytes)
    if follows is None:
        return finding(WARNING, f"none: an MTU of {mtu_bytes} bytes is too small for RoCE", _raise_mtu(host, rail))
    active = port.active_mtu_bytes
    if active is None:
        return finding(UNKNOWN, *_not_read(host, rail, port.active_mtu_error))
    percent = efficiency_percent(active, ipv6=is_ipv6(rail_ip(rail.rail) or ""))
    observed = f"{active} bytes with an MTU of {mtu_bytes}: {percent:.1f} % of the rate is payload"
    if active >= best:
        return finding(OK, observed)
    not_followed = f"On {host}, set {rail.netdev} down and up: its RDMA port still uses the old MTU."
    return finding(WARNING, observed, not_followed if follows == best else _raise_mtu(host, rail))


def _not_read(host: str, rail: ResolvedRail, error: str | None) -> tuple[str, str]:
    """The observed text and the remedy for a port whose active MTU was not read."""
    why = error or "the facts do not contain it"
    steps = f"1. Run `ibv_devinfo -d {rail.device} -i {rail.port}` on {host}. 2. If it is missing, run the driver stage for {host}."
    return f"the active MTU of {rail.device}/{rail.port} was not read: {why}", steps


def _port(rail: ResolvedRail, facts: Facts) -> Port | None:
    return None if rail.device is None or rail.port is None else facts.devices[rail.device].ports[rail.port]


def _raise_mtu(host: str, rail: ResolvedRail) -> str:
    least = BEST_MTU_BYTES + ROCE_HEADERS_BYTES
    words = f"Set mtu_bytes of {rail.name} to 9000 (at least {least}) on all hosts, and the MTU of the switches to more (9216)"
    planned = rail.rail["mtu_bytes"]
    return (
        f"{words}."
        if planned is None or planned < least
        else f"{words}. {planned} is already planned on {host}: see network.mtu for why it is not set."
    )
