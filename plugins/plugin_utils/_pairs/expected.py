# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The expected bandwidth of a pair by its links, MTU and PCIe paths, and the judgment of a measured figure.

Rates are payload in 10^9 bit/s of one direction, unless a bidirectional test is meant. The limit applies to large messages that keep the
wire busy (several messages in flight, four queue pairs at 400 Gb/s and above). A message no larger than the MTU, or a single queue pair of
a fast card, stays below it without any fault. Software devices have no line rate: they are compared with their fleet.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import payload_gbps
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.roce_mtu import IPV6_MORE_BYTES, ROCE_WIRE_BYTES
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import (
    INFINIBAND,
    ROCE,
    Endpoint,
    NoLimit,
    common_mtu_bytes,
    endpoints,
    pcie_words,
    whose,
)

LINK, PCIE = "link", "pcie"
#: LRH 8, BTH 12, ICRC 4, VCRC 2: a packet of InfiniBand within a subnet, without GRH.
INFINIBAND_WIRE_BYTES = 26
VLAN_BYTES = 4
#: The share of payload in payload_gbps. Dividing by it gives the rate after line coding.
PCIE_PAYLOAD_SHARE = 0.91
#: Both directions at once reach less than twice one direction: acknowledgments, and reads and writes that share PCIe.
BIDIRECTIONAL, BIDIRECTIONAL_CEILING = 1.9, 2.0
#: The tolerance for the clocks of two hosts, which perftest uses for its rates.
CLOCK_TOLERANCE = 0.01
#: The message size to which LATENCY_USEC applies.
LATENCY_SIZE_BYTES = 2


@dataclass(frozen=True)
class Limit:
    """The expected rate (gbps), the maximum (ceiling_gbps), and whether link or PCIe path is the limit.

    bound: LINK or PCIE. reason: "link 400 Gb/s, MTU 4096: 392.1". end: the limiting end of a pair (0, 1), None if both are equal.
    """

    gbps: float
    ceiling_gbps: float
    bound: str
    reason: str
    end: int | None = None

    def named(self, one: str, other: str) -> Limit:
        """Return the same limit with the host in its reason: "node3: PCIe 16 GT/s x8 at 0000:20:01.0: 115"."""
        return replace(self, reason=f"{whose(self.end, one, other)}: {self.reason}")


class LatencyBounds(NamedTuple):
    """A latency above warn_usec is a warning, above fail_usec an error."""

    warn_usec: float
    fail_usec: float


#: Half a round trip of 2 bytes through one switch, as ib_write_lat and ib_send_lat print it.
LATENCY_USEC = {INFINIBAND: LatencyBounds(2.0, 5.0), ROCE: LatencyBounds(3.0, 5.0)}


def mtu_efficiency(mtu_bytes: int, link_layer: str, *, ipv6: bool = False, vlan: bool = False) -> float:
    """Return the share of a link's rate that is payload: mtu / (mtu + bytes on the wire around it).

    RoCE v2 over IPv4: 82 bytes = preamble and gap 20, Ethernet 14, FCS 4, IP 20, UDP 8, BTH 12, ICRC 4 (IBTA, annex A17; IEEE 802.3); 20
    more over IPv6, 4 more with a VLAN. InfiniBand: 26. RETH and AETH, of the first and last packets of a message, are ignored.
    """
    if link_layer == INFINIBAND:
        return mtu_bytes / (mtu_bytes + INFINIBAND_WIRE_BYTES)
    return mtu_bytes / (mtu_bytes + ROCE_WIRE_BYTES + IPV6_MORE_BYTES * ipv6 + VLAN_BYTES * vlan)


def pair_limit(
    one: Endpoint, other: Endpoint, *, bidirectional: bool = False, mtu_bytes: int | None = None, hosts: tuple[str, str] | None = None
) -> Limit | NoLimit:
    """Return the limit of a pair: that of its smaller end, at the common MTU. hosts: the names for the reason.

    bidirectional: perftest's -b, which prints the sum of both directions. Without hosts, the result for equal pairs is cached.
    """
    limit = _pair_limit(one, other, bidirectional, mtu_bytes)
    return limit.named(*hosts) if hosts is not None else limit


def judge_bandwidth(gbps: float | None, limit: Limit | NoLimit, fail_below: float, warn_below: float) -> tuple[str, str]:
    """Return the status of a measured average, and the expected value. fail_below, warn_below: fractions of the limit.

    A value above the ceiling is an error too: something else was measured. None, zero and NaN are unknown: a failed measurement.
    """
    if isinstance(limit, NoLimit):
        return limit.status, limit.reason
    if gbps is None or not gbps > 0:
        return UNKNOWN, _at_least(limit, warn_below)
    if gbps > limit.ceiling_gbps * (1 + CLOCK_TOLERANCE):
        return ERROR, f"at most {limit.ceiling_gbps:.4g} Gb/s; more is impossible, so something else was measured ({limit.reason})"
    if gbps < fail_below * limit.gbps:
        return ERROR, _at_least(limit, fail_below)
    return (WARNING if gbps < warn_below * limit.gbps else OK), _at_least(limit, warn_below)


def latency_bounds(
    link_layer: str | None, *, software: bool, command: str = "ib_write_lat", size_bytes: int = LATENCY_SIZE_BYTES
) -> LatencyBounds | NoLimit:
    """Return the bounds for t_typical (t_avg with -D) through one switch; twice that for ib_read_lat, which prints full round trips."""
    if software:
        return NoLimit(NOT_APPLICABLE, "the latency of a software device is that of its CPU")
    if size_bytes > LATENCY_SIZE_BYTES:
        return NoLimit(NOT_APPLICABLE, f"the bounds apply to messages of {LATENCY_SIZE_BYTES} bytes, not of {size_bytes}")
    if link_layer not in LATENCY_USEC:
        return NoLimit(UNKNOWN, f"link layer {link_layer or 'unknown'}")
    trips = 2 if command == "ib_read_lat" else 1
    bounds = LATENCY_USEC[link_layer]
    return LatencyBounds(trips * bounds.warn_usec, trips * bounds.fail_usec)


def judge_latency(usec: float | None, bounds: LatencyBounds | NoLimit) -> tuple[str, str]:
    """Return the status of a measured latency, and the expected value."""
    if isinstance(bounds, NoLimit):
        return bounds.status, bounds.reason
    if usec is None or not usec > 0:
        return UNKNOWN, f"at most {bounds.warn_usec:g} µs"
    if usec > bounds.fail_usec:
        return ERROR, f"at most {bounds.fail_usec:g} µs"
    return (WARNING if usec > bounds.warn_usec else OK), f"at most {bounds.warn_usec:g} µs"


def _end_limit(end: Endpoint, mtu_bytes: int, asked_bytes: int | None) -> Limit:
    """Return the limit of one end, at the MTU of its pair."""
    whose_mtu = "" if mtu_bytes == end.mtu_bytes else " (requested)" if mtu_bytes == asked_bytes else " (the other end's)"
    link_gbps = (end.rate_gbps or 0.0) * mtu_efficiency(mtu_bytes, end.link_layer or "", ipv6=end.ipv6, vlan=end.vlan)
    header = (", IPv6" if end.ipv6 else "") + (" with a VLAN tag" if end.vlan else "")
    member = f", by one of the {end.members} members of its bond" if end.members else ""
    words = f"link {end.rate_gbps:.4g} Gb/s, MTU {mtu_bytes}{whose_mtu}{header}{member}: {link_gbps:.4g}"
    if end.pcie is None:
        return Limit(link_gbps, link_gbps, LINK, f"{words}, PCIe path unknown")
    ceiling_gbps = min(link_gbps, payload_gbps(end.pcie.speed_gtps, end.pcie.width) / PCIE_PAYLOAD_SHARE)
    if link_gbps <= end.pcie_gbps:
        return Limit(link_gbps, ceiling_gbps, LINK, words)
    shared = f", shared with {', '.join(end.shared_with)}" if end.shared_with else ""
    words = f"PCIe {pcie_words(end.pcie)} at {end.pcie.address}{shared}: {end.pcie_gbps:.3g}"
    return Limit(end.pcie_gbps, ceiling_gbps, PCIE, words)


@functools.lru_cache(maxsize=65536)
def _pair_limit(one: Endpoint, other: Endpoint, bidirectional: bool, mtu_bytes: int | None) -> Limit | NoLimit:
    missing = [replace(end.why_not, end=place) for place, end in enumerate((one, other)) if end.why_not is not None]
    if missing:
        first = next((each for each in missing if each.status == UNKNOWN), missing[0])
        return replace(first, end=None) if one.why_not == other.why_not else first
    if one.link_layer != other.link_layer:
        return NoLimit(UNKNOWN, f"one end is {one.link_layer}, the other {other.link_layer}")
    common_bytes = common_mtu_bytes(one, other, mtu_bytes) or 0
    ends = [_end_limit(end, common_bytes, mtu_bytes) for end in (one, other)]
    place = 0 if ends[0].gbps <= ends[1].gbps else 1
    least = ends[place]
    ceiling_gbps = min(end.ceiling_gbps for end in ends)
    end = None if ends[0] == ends[1] else place
    if not bidirectional:
        return replace(least, ceiling_gbps=ceiling_gbps, end=end)
    gbps = BIDIRECTIONAL * least.gbps
    return Limit(gbps, BIDIRECTIONAL_CEILING * ceiling_gbps, least.bound, f"{least.reason}, both directions: {gbps:.4g}", end)


def _at_least(limit: Limit, share: float) -> str:
    return f"at least {share * limit.gbps:.4g} Gb/s, {share:g} of the limit ({limit.reason})"


Limits = Mapping[str, Mapping[str, Limit | NoLimit]]


def limits(plan: Mapping[str, Any], intents: Mapping[str, Intent], facts: Mapping[str, Facts]) -> Limits:
    """Return the limit of each endpoint: that of a pair of two such endpoints in the plan's first test. Hosts without facts are omitted."""
    test = plan["tests"][0]
    rails = {rail["name"] for rail in plan["rails"]}
    return {host: _of_host(intents[host], facts[host], rails, test) for host in plan["hosts"] if host in intents}


def _of_host(intent: Intent, facts: Facts, rails: set[str], test: Mapping[str, Any]) -> dict[str, Limit | NoLimit]:
    measured = [rail for rail in resolve(intent["rails"], facts) if rail.name in rails]
    ends = zip(measured, endpoints(measured, facts), strict=True)
    return {rail.name: pair_limit(end, end, bidirectional=test["bidirectional"], mtu_bytes=test["mtu_bytes"]) for rail, end in ends}


def is_software(limit: Limit | NoLimit) -> bool:
    """Return whether there is no limit because the device is software. A card with an unknown limit is different."""
    return isinstance(limit, NoLimit) and limit.status == NOT_APPLICABLE


def grid(plan: Mapping[str, Any], known: Limits) -> list[list[float | None]]:
    """Return [rail][host] in Gb/s, None without a limit.

    A host that is not in `known` (a proven partner of another play) has no limit to meet.
    """
    return [[_gbps(known.get(host, {}).get(rail["name"]), host in known) for host in plan["hosts"]] for rail in plan["rails"]]


def _gbps(limit: Limit | NoLimit | None, is_known: bool) -> float | None:
    if not is_known:
        return math.inf
    return limit.gbps if isinstance(limit, Limit) else None
