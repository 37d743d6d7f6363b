# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings that the host stage derives from the intent, and whether a host differs from them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import RUNS
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import time_files
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import CPU_UNIT, cpu_differences, cpu_files
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import path_of, spelling, sysctl_files
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Rings
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.rings import RailRings, lengths_of, ring_difference, rules_file
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import BARE_METAL, DATADIRECT
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import PcieRequest
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.service import UNIT, service_files
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_addresses, rail_nics, resolve
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.service import TIMER, recorder_files, removed_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host import pcie_tuning
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.pcie_tuning import (
    boot_request,
    kept_effects,
    mrrs_changes,
    pcie_request,
    pcie_state,
    redirecting_bridges,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.requests import cpu_request, irqbalance_wrong, limits_request

#: For several rails in reach of each other: each rail answers and sends ARP only for its own address, and accepts packets
#: although the return path may use another rail. The kernel uses the larger of "all" and the interface's own value.
MULTI_RAIL = {
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
    "net.ipv4.conf.all.rp_filter": "2",
}
#: Linux's own gc_thresh2 of IPv4, and the upper limit of neighbor_settings.
KERNEL_GC_THRESH2, MAX_NEIGHBORS = 512, 65536


def sysctl_settings(intent: Intent) -> dict[str, str]:
    """The kernel settings of a host, key → value: those that its rails need, overridden by rdma_host.sysctl.

    All keys use one spelling, so that a key cannot appear twice. Raises ParseError for an invalid key.
    """
    addressed = [rail for rail in intent["rails"] if rail["link_layer"] == "roce" and rail["address"]]
    arp = MULTI_RAIL if len(addressed) > 1 or intent["fabric"]["shared_subnet"] else {}
    requested = {spelling(path_of(key)): " ".join(str(value).split()) for key, value in intent["host"]["sysctl"].items()}
    return {**arp, **neighbor_settings(intent), **requested}


def sysctl_differs(intent: Intent, facts: Facts) -> bool:
    """True unless the facts prove that our file, the live values and those after a boot are all as requested."""
    settings = sysctl_settings(intent)
    return files_differ(sysctl_files(settings), facts.files) or any(
        facts.sysctl is None or facts.sysctl.differs(key, value) for key, value in settings.items()
    )


def neighbor_settings(intent: Intent) -> dict[str, str]:
    """The sizes of the kernel's IPv4 neighbor table, if the defaults are too small for the subnets of the rails; else empty.

    All interfaces share the table. Each rail may learn every host of its subnet, so there are at most n = Σ (2^(32 - prefix) - 2)
    entries. From gc_thresh2 (512) on, the kernel removes entries that are a few seconds old. At gc_thresh3 (1024), it refuses new ones.
    Below gc_thresh1, it removes nothing.

    If n reaches gc_thresh2, gc_thresh1 becomes the power of two with room for all entries; the others become twice and four times that.
    Only existing entries use memory. Switches do not support more than MAX_NEIGHBORS entries either.

    IPv6 has a table of its own. The size of its subnets does not limit its entries, so nothing is derived for it.

    Source: neigh_alloc and neigh_periodic_work in net/core/neighbor.c, defaults in net/ipv4/arp.c of Linux.
    """
    planned = [text for rail in intent["rails"] for text in rail_addresses(rail) if not is_ipv6(text)]
    networks = [ipaddress.IPv4Interface(text).network for text in planned]
    neighbors = min(sum(max(network.num_addresses - 2, 1) for network in networks), MAX_NEIGHBORS)
    if neighbors < KERNEL_GC_THRESH2:
        return {}
    room = 1 << (neighbors - 1).bit_length()
    return {f"net.ipv4.neigh.default.gc_thresh{number}": str(room << (number - 1)) for number in (1, 2, 3)}


def limits_options(intent: Intent) -> dict[str, Any]:
    """The requested limits as options of rdma.cluster.limits."""
    return asdict(limits_request(intent))


def limits_differ(intent: Intent, facts: Facts) -> bool:
    """True unless the facts prove that files, limits of services, and logind's RemoveIPC are all as requested."""
    request = limits_request(intent)
    seen = facts.limits
    if files_differ(limits.files(request), facts.files):
        return True
    if seen is None:
        return request.memlock_unlimited or bool(request.open_files)
    return (
        limits.locks_too_little(request, seen.service_memlock or limits.Memlock(unlimited=False, bytes=None))
        or (bool(request.open_files) and seen.service_open_files is None)
        or limits.opens_too_few(request, seen.service_open_files)
        or limits.loses_ipc(request, seen.remove_ipc)
    )


#: Family of the distribution → chrony's unit.
CHRONY_UNITS = {"debian": "chrony.service", "rpm": "chronyd.service"}


def ring_settings(intent: Intent, facts: Facts) -> list[dict[str, Any]]:
    """The rings of each RoCE rail whose driver reports them, requested or the maximum, as options of rdma.cluster.nic_rings."""
    requested = intent["host"]["rings"]
    found = []
    for rail, nic, netdev in _ports_of(resolve(intent["rails"], facts)):
        rings = _rings(facts, netdev)
        most = {"rx": rings.rx_max, "tx": rings.tx_max} if rings else {}
        lengths = {way: _least(requested[way], most.get(way)) for way in ("rx", "tx")}
        if rail.rail["link_layer"] == "roce" and netdev is not None and any(lengths.values()):
            found.append({"name": rail.name, "nic": dict(nic), "netdev": netdev, **lengths})
    return found


def _ports_of(rails: Sequence[ResolvedRail]) -> list[tuple[ResolvedRail, Mapping[str, str], str | None]]:
    """Each NIC of each rail with its interface: one, or the members of a bond."""
    return [(rail, *each) for rail in rails for each in zip(rail_nics(rail.rail), rail.members or (rail.netdev,), strict=True)]


def _rings(facts: Facts, netdev: str | None) -> Rings | None:
    ethtool = facts.netdevs[netdev].ethtool if netdev else None
    return ethtool.rings if ethtool else None


def _least(requested: int | None, most: int | None) -> int | None:
    return None if requested is None or most is None else min(requested, most)


def rings_differ(intent: Intent, facts: Facts) -> bool:
    """True unless the facts prove that the udev rules and the rings, within the hardware's maximum, are as requested."""
    rings = [RailRings(**rail) for rail in ring_settings(intent, facts)]
    return files_differ(rules_file(rings), facts.files) or any(
        ring_difference(rail, lengths_of(_rings(facts, rail.netdev))) for rail in rings
    )


def cpu_differs(intent: Intent, facts: Facts) -> bool:
    """True unless the facts prove that tuned's profile or our unit exists, and that the CPUs are as requested where possible."""
    request, seen = cpu_request(intent), facts.cpu
    if seen is None:
        return not request.is_empty or files_differ(cpu_files(request, None), facts.files)
    if files_differ(cpu_files(request, seen.tuned), facts.files):
        return True
    if not request.is_empty and seen.tuned is None and (facts.units or {}).get(CPU_UNIT) != RUNS:
        return True
    in_force = seen.tuned is None or request.is_empty or seen.tuned.profile == "rdma-cluster"
    return not in_force or bool(cpu_differences(request, seen))


def irqbalance_differs(intent: Intent, facts: Facts) -> bool:
    """True if the intent requests a state of irqbalance and the facts do not prove it."""
    planned = intent["host"]["cpu"]["irqbalance"]
    if planned is None:
        return False
    unit = (facts.units or {}).get("irqbalance.service")
    return unit is None or irqbalance_wrong(planned, unit)


def time_content(intent: Intent) -> str | None:
    """The text of chrony's file with our servers; None if no file is planned."""
    (file,) = time_files(intent["host"]["time"]["servers"])
    return file.text or None


def time_differs(intent: Intent, facts: Facts) -> bool:
    """False if the intent does not manage the clock; else True unless the facts prove that chrony runs with our servers."""
    time = intent["host"]["time"]
    if not time["manage"]:
        return False
    if files_differ(time_files(time["servers"]), facts.files):
        return True
    units = facts.units or {}
    known = facts.time.chrony.sources if facts.time and facts.time.chrony else {}
    return not any(units.get(name) == RUNS for name in CHRONY_UNITS.values()) or not set(time["servers"]) <= set(known)


def pcie_settings(intent: Intent, facts: Facts, acs_allowed: bool = False, mrrs_allowed: bool = False) -> dict[str, Any]:
    """The options of rdma.cluster.pcie_tuning: {"nics": PCI addresses, "mrrs_nics", "mrrs_bytes": size or None, "acs": mode}.

    If a permission is withdrawn, "kept" has its effects.
    """
    made = pcie_request(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    request = boot_request(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    some = None if request.mrrs_nics is None else list(request.mrrs_nics)
    kept = kept_effects(request, made)
    options = {"nics": list(request.nics), "mrrs_bytes": request.mrrs_bytes, "acs": request.acs, "mrrs_nics": some}
    return {**options, "kept": kept} if kept else options


def pcie_differs(intent: Intent, facts: Facts, acs_allowed: bool = False, mrrs_allowed: bool = False) -> bool:
    """True unless the facts prove that the service, MRRS and ACS are all as requested, as far as they may be changed."""
    request = boot_request(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    if files_differ(service_files(request), facts.files):
        return True
    made = pcie_request(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    return bool(request) and ((facts.units or {}).get(UNIT) != RUNS or _live_differs(made, facts))


def _live_differs(request: PcieRequest, facts: Facts) -> bool:
    state = pcie_state(facts)
    if any(not pcie_tuning.mrrs_of(state, nic) for nic in request.mrrs_cards) or mrrs_changes(request, facts):
        return True
    # If ACS may not be disabled, the module reports it.
    return request.acs == BARE_METAL and (state.acs_mode == DATADIRECT or bool(redirecting_bridges(state, request)))


def pcie_withheld(intent: Intent, facts: Facts, acs_allowed: bool = False, mrrs_allowed: bool = False) -> dict[str, str]:
    """Effect ("mrrs", "acs_write") → the withheld change and the reason; empty if nothing is withheld."""
    found = pcie_tuning.withheld(intent, facts, acs_allowed=acs_allowed, mrrs_allowed=mrrs_allowed)
    return {effect: each.words for effect, each in found.items()}


def recorder_settings(intent: Intent) -> dict[str, Any]:
    """The options of rdma.cluster.recorder."""
    recorder = intent["recorder"]
    return {"state": recorder["state"], "interfaces": list(recorder["interfaces"]), "size_mib": recorder["size_mib"]}


def recorder_differs(intent: Intent, facts: Facts) -> bool:
    """False if the intent does not manage the recorder; else True unless the facts prove that it is as requested."""
    recorder = intent["recorder"]
    if not recorder["manage"]:
        return False
    if recorder["state"] == "absent":
        return files_differ(removed_files(), facts.files)
    files = recorder_files(recorder["interfaces"], recorder["size_mib"] * 2**20)
    return files_differ(files, facts.files) or (facts.units or {}).get(TIMER) != RUNS
