# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a collective on a set of hosts should reach, and what is planned for it: in the shape of the option `expected` of nccl_test.

Rates here are 10^9 bit/s; nccl-tests and its judge have GB/s, 10^9 bytes a second.
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
#: Their busbw is defined so that it is the rate of what bounds them: between hosts, of all NICs of a host (nccl-tests, PERFORMANCE.md).
BOUND_BY_ALL_NICS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
ALLTOALL = "alltoall"
#: Each rank of theirs has data for other hosts, so that NCCL uses all NICs; of sendrecv only the last rank of a host has.
BY_ALL_RANKS = (*BOUND_BY_ALL_NICS, ALLTOALL)
#: How far a NIC may be from a GPU for NCCL to use GPUDirect RDMA by itself (NCCL_NET_GDR_LEVEL, by default PXB).
BELOW_SWITCHES = ("PIX", "PXB")


@dataclass(frozen=True)
class Rate:
    """gbps: None where there is no figure; no_limit: why that is no fault, "" where it is not known and should be."""

    gbps: float | None
    no_limit: str = ""
    #: Where the figure comes from, or what is not known.
    reason: str = ""
    #: A figure that the intent gives is no derived one, of which a fraction will do.
    given: bool = False


@dataclass(frozen=True)
class Expectations:
    """Of the hosts of a fleet, whose facts are of comparable()."""

    fleet: Fleet

    def gpus(self, host: str) -> int:
        """How many GPUs of a host take part."""
        return int(self.fleet.intents[host]["collectives"]["gpus"] or len(self.fleet.facts[host].gpus or ()))

    def node_name(self, host: str) -> str:
        """What NCCL calls a host."""
        return (self.fleet.facts[host].boot.hostname or host).partition(".")[0]

    def rails(self, host: str, hosts: Sequence[str]) -> list[ResolvedRail]:
        """The compute rails of a host by which it reaches others of a set: in a mesh the cables that lead to one of them, else all."""
        if self.fleet.intents[host]["fabric"]["topology"] != MESH:
            return self._rails[host]
        there = {rail.name for other in hosts if other != host for rail in self._rails[other]}
        return [rail for rail in self._rails[host] if rail.name in there]

    def devices(self, host: str) -> list[str]:
        """The RDMA devices of its compute rails."""
        return [rail.device for rail in self._rails[host] if rail.device is not None]

    def gpudirect(self, host: str) -> bool | None:
        """Whether GPUDirect RDMA is planned, None where that is left open, or the host has no GPU that facts know of.

        Where the path was not asked for, but is possible, NCCL takes it by itself for a NIC behind the PCIe switches of a GPU alone.
        """
        path = gpudirect_path(self.fleet.intents[host], self.fleet.facts[host])["path"]
        asked = str((self.fleet.intents[host].get("gpudirect") or {}).get("path"))
        if path is None:
            return False if asked == NONE else None
        return True if asked == path or self._near_gpus(host) else None

    def _near_gpus(self, host: str) -> bool:
        """Whether each compute NIC has a GPU behind the same PCIe switches."""
        distances = self.fleet.facts[host].distances or {}
        return all(any(of.get(device) in BELOW_SWITCHES for of in distances.values()) for device in self.devices(host))

    def taking_part(self, host: str, hosts: Sequence[str], gpus: int) -> list[ResolvedRail] | None:
        """The rails of the GPUs that take part: all, or, of some GPUs, those near them; None where that is not known."""
        rails, there = self.rails(host, hosts), len(self.fleet.facts[host].gpus or ())
        if gpus >= there:
            return rails
        near = gpus_of(rails, self.fleet.intents[host], self.fleet.facts[host])
        first = sorted(self.fleet.facts[host].distances or {})[:gpus]
        return [rail for rail in rails if near.get(rail.name, {}).get("bus_id") in first] or None

    def rate(self, hosts: Sequence[str], operation: str, gpus: int) -> Rate:
        """What busbw should be. gpus: of each host."""
        settings = self.fleet.intents[hosts[0]]["collectives"]
        if len(hosts) == 1:
            return _alone(settings["nvlink_busbw_gbps"], gpus)
        if settings["min_busbw_gbps"]:
            return Rate(settings["min_busbw_gbps"], reason="rdma_collectives.min_busbw_gbps", given=True)
        least = min((self._nics(host, hosts, gpus) for host in hosts), key=_order)
        return least if least.gbps is None else _between(least, operation, len(hosts), gpus)

    def expected(self, hosts: Sequence[str], operation: str, gpus: int) -> dict[str, Any]:
        """The option `expected` of rdma.cluster.nccl_test."""
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
        """Whether a run has to use all NICs of a host: not in a mesh, where NCCL's log does not tell which port of several it takes."""
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
        """What the NICs of a host carry together to the others of a set."""
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
        """What has been added up: host and rails → rate."""
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
    """What is not known comes before what cannot be known, and that before figures."""
    return (rate.gbps is not None, bool(rate.no_limit), rate.gbps or 0.0)


def _alone(nvlink_gbps: float | None, gpus: int) -> Rate:
    if gpus < 2:
        return Rate(None, "a single GPU transfers nothing")
    if nvlink_gbps:
        return Rate(nvlink_gbps, reason="rdma_collectives.nvlink_busbw_gbps", given=True)
    return Rate(None, "no NVLink rate is given (rdma_collectives.nvlink_busbw_gbps)")


def _between(nics: Rate, operation: str, hosts: int, gpus: int) -> Rate:
    """All ranks of a host share its NICs. Of alltoall each rank sends (n - gpus) / n of its data out, and busbw counts (n - 1) / n."""
    if operation in BOUND_BY_ALL_NICS:
        return nics
    if operation != ALLTOALL or nics.gbps is None:
        return Rate(None, f"the bandwidth of {operation} depends on the order of the ranks: no figure is derived")
    ranks = hosts * gpus
    return Rate(nics.gbps / gpus * (ranks - 1) / (ranks - gpus), reason=f"{nics.reason}, shared by {gpus} GPUs")
