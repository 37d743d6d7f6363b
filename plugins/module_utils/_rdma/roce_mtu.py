# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The MTU of RDMA on an Ethernet interface, and the payload's share of the wire."""

from __future__ import annotations

#: From IBTA's header lengths: GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4 (iboe_get_mtu, include/rdma/ib_addr.h of Linux).
ROCE_HEADERS_BYTES = 96
RDMA_MTUS_BYTES = (4096, 2048, 1024, 512, 256)
BEST_MTU_BYTES = RDMA_MTUS_BYTES[0]
#: The bytes of a RoCE v2 packet on an Ethernet wire besides its payload, preamble and gap included (IPv4, no VLAN).
ROCE_WIRE_BYTES = 82
#: The header of IPv6 is longer than that of IPv4.
IPV6_MORE_BYTES = 20


def rdma_mtu_bytes(mtu_bytes: int) -> int | None:
    """Return the MTU of RoCE on an interface with this MTU, as the kernel derives it; None if not even the smallest fits."""
    return next((size for size in RDMA_MTUS_BYTES if size <= mtu_bytes - ROCE_HEADERS_BYTES), None)


def efficiency_percent(rdma_mtu: int, *, ipv6: bool = False) -> float:
    """Return the payload's share of the link's rate."""
    return 100.0 * rdma_mtu / (rdma_mtu + ROCE_WIRE_BYTES + IPV6_MORE_BYTES * ipv6)
