# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the network stage asks of a host: MTU, address, and the GID that belongs to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._facts import rocev2_gid_index
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts, Rail, ResolvedRail, resolve

STAGE = "network"


def check_network(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Findings `network.mtu` and `network.gid` for each planned rail of one host."""
    return [finding for rail in resolve(rails, facts) for finding in _rail(host, rail, facts)]


def _rail(host: str, rail: ResolvedRail, facts: Facts) -> Iterator[Finding]:
    if rail.netdev is None:
        yield Finding(STAGE, "network.mtu", host, rail.subject, UNKNOWN, "no interface", _mtu_words(rail), _look(host))
    else:
        yield _mtu(host, rail, facts["netdevs"][rail.netdev]["mtu_bytes"])
    yield _gid(host, rail, facts)


def _mtu_words(rail: ResolvedRail) -> str:
    return f"{rail.rail['mtu_bytes']} bytes"


def _look(host: str) -> str:
    return f"Run the driver stage for {host}; its gate says what is missing."


def _mtu(host: str, rail: ResolvedRail, mtu_bytes: int | None) -> Finding:
    good = mtu_bytes == rail.rail["mtu_bytes"]
    return Finding(
        STAGE, "network.mtu", host, rail.subject, OK if good else ERROR, f"{mtu_bytes} bytes", _mtu_words(rail),
        "" if good else f"See what else manages {rail.netdev} on {host} (`networkctl status {rail.netdev}`).",
    )  # fmt: skip


def _gid(host: str, rail: ResolvedRail, facts: Facts) -> Finding:
    if rail.rail["link_layer"] != "roce":
        why = "InfiniBand addresses ports by LID, not by IP address"
        return Finding(STAGE, "network.gid", host, rail.subject, NOT_APPLICABLE, why, "a RoCE v2 GID")
    address = str(rail.rail["address"]).split("/", maxsplit=1)[0]
    expected = f"a RoCE v2 GID of {address}"
    if rail.device is None or rail.port is None:
        return Finding(STAGE, "network.gid", host, rail.subject, UNKNOWN, "no RDMA device", expected, _look(host))
    port = facts["devices"][rail.device]["ports"][rail.port]
    index = rocev2_gid_index(port, address)
    there = sorted({gid["ipv4"] for gid in port["gids"] if gid["ipv4"]})
    return Finding(
        STAGE, "network.gid", host, rail.subject, ERROR if index is None else OK,
        observed=f"GID index {index}" if index is not None else f"none; the addresses in the table are {', '.join(there) or 'none'}",
        expected=expected,
        remedy="" if index is not None else f"See whether {rail.netdev} on {host} has {address} (`ip addr show {rail.netdev}`).",
    )  # fmt: skip
