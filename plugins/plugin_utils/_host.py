# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host stage derives from the intent, and whether a host differs from it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils import _limits
from ansible_collections.rdma.cluster.plugins.module_utils._files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._limits import LimitsWish
from ansible_collections.rdma.cluster.plugins.module_utils._sysctl import path_of, spelling, sysctl_files

#: For several addresses in reach of each other: each rail answers and asks for its own address only, and takes what comes to it
#: although the way back may be another rail's. The kernel takes the larger of "all" and the interface's own value.
MULTI_RAIL = {
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
    "net.ipv4.conf.all.rp_filter": "2",
}
#: Linux's own gc_thresh2 of IPv4; and what neighbour_settings goes up to.
KERNEL_GC_THRESH2, MAX_NEIGHBOURS = 512, 65536


def sysctl_settings(intent: Mapping[str, Any]) -> dict[str, str]:
    """The kernel settings of a host, key → value: what its rails need, and what rdma_host.sysctl says, which wins.

    A key is spelled one way whatever the intent's is, so that two spellings cannot both be there.
    Raises ParseError for a key that is none.
    """
    addressed = [rail for rail in intent["rails"] if rail["link_layer"] == "roce" and rail["address"]]
    arp = MULTI_RAIL if len(addressed) > 1 or intent["fabric"]["shared_subnet"] else {}
    wished = {spelling(path_of(key)): " ".join(str(value).split()) for key, value in intent["host"]["sysctl"].items()}
    return {**arp, **neighbour_settings(intent), **wished}


def sysctl_differs(intent: Mapping[str, Any], facts: Mapping[str, Any] | None) -> bool:
    """True unless the facts prove that our file, the live values and those after a boot are all as wished."""
    settings = sysctl_settings(intent)
    if facts is None or files_differ(sysctl_files(settings), facts):
        return True
    seen = facts.get("sysctl") or {}
    live, boot = seen.get("live") or {}, seen.get("boot") or {}
    return any(live.get(key) != value or (boot.get(key) or {}).get("value") != value for key, value in settings.items())


def neighbour_settings(intent: Mapping[str, Any]) -> dict[str, str]:
    """The sizes of the kernel's table of IPv4 neighbours, where its own would be too small for the subnets of the rails; none elsewhere.

    The table is one for all interfaces. Each rail may come to know every host of its subnet, so that together they are at most
    n = Σ (2^(32 - prefix) - 2). From gc_thresh2 on (512) the kernel throws out entries that are a few seconds old whenever it needs a
    new one, and at gc_thresh3 (1024) it refuses one (neigh_alloc and neigh_periodic_work in net/core/neighbour.c, defaults in
    net/ipv4/arp.c of Linux). Where n reaches gc_thresh2, gc_thresh1, below which nothing is thrown out, becomes the power of two that
    has room for all of them, and the others twice and four times that. Entries take memory only as they come to be; more of
    them than MAX_NEIGHBOURS no switch's tables carry either.
    """
    networks = [ipaddress.IPv4Interface(rail["address"]).network for rail in intent["rails"] if rail["address"]]
    neighbours = min(sum(max(network.num_addresses - 2, 1) for network in networks), MAX_NEIGHBOURS)
    if neighbours < KERNEL_GC_THRESH2:
        return {}
    room = 1 << (neighbours - 1).bit_length()
    return {f"net.ipv4.neigh.default.gc_thresh{number}": str(room << (number - 1)) for number in (1, 2, 3)}


def limits_wish(intent: Mapping[str, Any]) -> LimitsWish:
    """What rdma.cluster.limits shall make, of the intent."""
    host = intent["host"]
    return LimitsWish(host["memlock_unlimited"], host["open_files"], host["keep_ipc"])


def limits_options(intent: Mapping[str, Any]) -> dict[str, Any]:
    """The same in the shape that rdma.cluster.limits takes."""
    return asdict(limits_wish(intent))


def limits_differ(intent: Mapping[str, Any], facts: Mapping[str, Any] | None) -> bool:
    """True unless the facts prove that the files are as wished, that a service gets what it shall, and that logind keeps what it shall."""
    wish = limits_wish(intent)
    if facts is None or files_differ(_limits.files(wish), facts):
        return True
    seen = facts.get("limits") or {}
    memlock, open_files = seen.get("service_memlock") or {}, seen.get("service_open_files")
    return bool(
        (wish.memlock_unlimited and not memlock.get("unlimited"))
        or (wish.open_files and (open_files is None or open_files < wish.open_files))
        or (wish.keep_ipc and seen.get("remove_ipc"))
    )
