# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The expected result of a collective on a set of hosts, in the shape of the option `expected` of nccl_test.

Rates here are in 10^9 bit/s; nccl-tests and its judge use GB/s, 10^9 bytes per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import large_bytes, run_sizes
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import MESH
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import Limit, pair_limit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import NoLimit, endpoints, gpus_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.gpudirect import NONE, gpudirect_path

BITS_PER_BYTE = 8
#: Their busbw is by definition the rate of the bottleneck: between hosts, of all NICs of a host (nccl-tests, PERFORMANCE.md).
BOUND_BY_ALL_NICS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
ALLTOALL = "alltoall"
#: Each of their ranks has data for other hosts, so NCCL uses all NICs. In sendrecv, only the last rank of a host has.
BY_ALL_RANKS = (*BOUND_BY_ALL_NICS, ALLTOALL)
#: The maximum distance of NIC and GPU for which NCCL uses GPUDirect RDMA by default (NCCL_NET_GDR_LEVEL, default PXB).
BELOW_SWITCHES = ("PIX", "PXB")


@dataclass(frozen=True)
class Rate:
    """gbps: None without a figure. no_limit: why that is no fault, "" if the figure should be known but is not."""

    gbps: float | None
    no_limit: str = ""
    #: The source of the figure, or the unknown value.
    reason: str = ""
    #: A figure from the intent is used as is; for a derived figure, a fraction is enough.
    given: bool = False


@dataclass(frozen=True)
class Expectations:
    """The expectations for the hosts of a fleet, whose facts are of comparable()."""

    fleet: Fleet

    def gpus(self, host: str) -> int:
        """Return how many GPUs of a host take part."""
        return int(self.fleet.intents[host]["collectives"]["gpus"] or len(self.fleet.facts[host].gpus or ()))

    def node_name(self, host: str) -> str:
        """Return NCCL's name of a host."""
        return (self.fleet.facts[host].boot.hostname or host).partition(".")[0]

    def rails(self, host: str, hosts: Sequence[str]) -> list[ResolvedRail]:
        """Return the compute rails that connect a host to others of a set: in a mesh the cables to one of them, else all."""
        if self.fleet.intents[host]["fabric"]["topology"] != MESH:
            return self._rails[host]
        there = {rail.name for other in hosts if other != host for rail in self._rails[other]}
        return [rail for rail in self._rails[host] if rail.name in there]

    def devices(self, host: str) -> list[str]:
        """Return the RDMA devices of its compute rails."""
        return [rail.device for rail in self._rails[host] if rail.device is not None]

    def gpudirect(self, host: str) -> bool | None:
        """Return whether GPUDirect RDMA is planned; None if that is undecided, or the facts have no GPU of the host.

        If the path is not requested but possible, NCCL uses it by default only for a NIC behind the PCIe switches of a GPU.
        """
        path = gpudirect_path(self.fleet.intents[host], self.fleet.facts[host])["path"]
        asked = str((self.fleet.intents[host].get("gpudirect") or {}).get("path"))
        if path is None:
            return False if asked == NONE else None
        return True if asked == path or self._near_gpus(host) else None

    def _near_gpus(self, host: str) -> bool:
        """Return whether each compute NIC has a GPU behind the same PCIe switches."""
        distances = self.fleet.facts[host].distances or {}
        return all(any(of.get(device) in BELOW_SWITCHES for of in distances.values()) for device in self.devices(host))

    def taking_part(self, host: str, hosts: Sequence[str], gpus: int) -> list[ResolvedRail] | None:
        """Return the rails of the participating GPUs: all, or those near some GPUs; None if unknown."""
        rails, there = self.rails(host, hosts), len(self.fleet.facts[host].gpus or ())
        if gpus >= there:
            return rails
        near = gpus_of(rails, self.fleet.intents[host], self.fleet.facts[host])
        first = sorted(self.fleet.facts[host].distances or {})[:gpus]
        return [rail for rail in rails if near.get(rail.name, {}).get("bus_id") in first] or None

    def rate(self, hosts: Sequence[str], operation: str, gpus: int) -> Rate:
        """Return the expected busbw. gpus: of each host."""
        settings = self.fleet.intents[hosts[0]]["collectives"]
        if len(hosts) == 1:
            return _alone(settings["nvlink_busbw_gbps"], gpus)
        if settings["min_busbw_gbps"]:
            return Rate(settings["min_busbw_gbps"], reason="rdma_collectives.min_busbw_gbps", given=True)
        least = min((self._nics(host, hosts, gpus) for host in hosts), key=_order)
        return least if least.gbps is None else _between(least, operation, len(hosts), gpus)

    def expected(self, hosts: Sequence[str], operation: str, gpus: int) -> dict[str, Any]:
        """Return the option `expected` of rdma.cluster.nccl_test."""
        settings, rate = self.fleet.intents[hosts[0]]["collectives"], self.rate(hosts, operation, gpus)
        planned = {self.gpudirect(host) for host in hosts}
        return {
            "names": {host: self.node_name(host) for host in hosts},
            "gbytes_per_s": None if rate.gbps is None else rate.gbps / BITS_PER_BYTE,
            "no_limit": rate.no_limit,
            "hcas": {host: self.devices(host) for host in hosts if self._rails[host]} if len(hosts) > 1 else {},
            "all_hcas": operation in BY_ALL_RANKS and all(self._all_rails(host, gpus) for host in hosts),
            "gdr": planned.pop() if len(planned) == 1 else None,
            "fail_below": 1.0 if rate.given else settings["fail_below"],
            "warn_below": 1.0 if rate.given else max(settings["warn_below"], settings["fail_below"]),
            "large_bytes": large_bytes(run_sizes(settings["min_bytes"], settings["max_bytes"]), operation, len(hosts) * gpus),
        }

    def _all_rails(self, host: str, gpus: int) -> bool:
        """Return whether a run must use all NICs of a host. Not in a mesh: NCCL's log does not show which of several ports it uses."""
        everybody = gpus >= len(self.fleet.facts[host].gpus or ())
        return everybody and self.fleet.intents[host]["fabric"]["topology"] != MESH

    @cached_property
    def _rails(self) -> Mapping[str, list[ResolvedRail]]:
        """The compute rails of each host."""
        return {
            host: [rail for rail in resolve(intent["rails"], self.fleet.facts[host]) if rail.rail["role"] == "compute"]
            for host, intent in self.fleet.intents.items()
        }

    def _nics(self, host: str, hosts: Sequence[str], gpus: int) -> Rate:
        """Return the total rate of a host's NICs to the others of a set."""
        if not self._rails[host]:
            return Rate(None, reason=f"{host} has no compute rail")
        rails = self.taking_part(host, hosts, gpus)
        if rails is None:
            return Rate(None, f"{gpus} GPUs of {host} take part, but the NICs near them are unknown")
        if not rails:
            return Rate(None, reason=f"no cable connects {host} to another of these hosts")
        key = (host, *(rail.name for rail in rails))
        if key not in self._sums:
            self._sums[key] = self._sum(host, rails)
        return self._sums[key]

    @cached_property
    def _sums(self) -> dict[tuple[str, ...], Rate]:
        """The computed sums: host and rails → rate."""
        return {}

    def _sum(self, host: str, rails: Sequence[ResolvedRail]) -> Rate:
        found = [pair_limit(end, end) for end in endpoints(rails, self.fleet.facts[host])]
        missing = [limit for limit in found if isinstance(limit, NoLimit)]
        if missing:
            first = next((limit for limit in missing if limit.status != NOT_APPLICABLE), missing[0])
            return Rate(None, first.reason if first.status == NOT_APPLICABLE else "", f"{host}: {first.reason}")
        gbps = sum(limit.gbps for limit in found if isinstance(limit, Limit))
        return Rate(gbps, reason=f"{len(rails)} NIC{'s' if len(rails) > 1 else ''} of {host}: {gbps:.4g} Gb/s")


def _order(rate: Rate) -> tuple[bool, bool, float]:
    """Return a sort key: unknown rates, then rates without a figure, then figures."""
    return (rate.gbps is not None, bool(rate.no_limit), rate.gbps or 0.0)


def _alone(nvlink_gbps: float | None, gpus: int) -> Rate:
    if gpus < 2:
        return Rate(None, "a single GPU transfers nothing")
    if nvlink_gbps:
        return Rate(nvlink_gbps, reason="rdma_collectives.nvlink_busbw_gbps", given=True)
    return Rate(None, "no NVLink rate is given (rdma_collectives.nvlink_busbw_gbps)")


def _between(nics: Rate, operation: str, hosts: int, gpus: int) -> Rate:
    """Return the rate between hosts. All ranks of a host share its NICs.

    In alltoall, each rank sends (n - gpus) / n of its data out, and busbw counts (n - 1) / n.
    """
    if operation in BOUND_BY_ALL_NICS:
        return nics
    if operation != ALLTOALL or nics.gbps is None:
        return Rate(None, f"the bandwidth of {operation} depends on the order of the ranks: no figure is derived")
    ranks = hosts * gpus
    return Rate(nics.gbps / gpus * (ranks - 1) / (ranks - gpus), reason=f"{nics.reason}, shared by {gpus} GPUs")
