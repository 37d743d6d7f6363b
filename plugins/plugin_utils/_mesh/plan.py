# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a mesh: a name and a subnet for each cable, and an address for each of its ends."""

from __future__ import annotations

import hashlib
import ipaddress
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import nic_label
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import CableEnd, Pool
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

Cable = tuple[CableEnd, CableEnd]
"""The ends of a cable, the lower host first."""
RailOf = Mapping[str, Any]
"""A rail of the intent by the schema, valid by itself: its address may be missing."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: The name of a rail has 32 characters; the rest is for the number of a further cable, "_2".
LONGEST_NAME = 28
_NUMERIC = re.compile(r"[0-9.]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class PoolError(ValueError):
    """The pool has too few free subnets. The message says how many are free."""


@dataclass(frozen=True)
class PlannedCable:
    """A cable of the plan. addresses: of both ends in their order, with prefix length; kept: whether both ends have this subnet already."""

    name: str
    ends: Cable
    network: ipaddress.IPv4Network
    addresses: tuple[str, str]
    kept: bool


def sorted_cables(cables: Iterable[Cable]) -> list[Cable]:
    """Return the cables in order of their hosts and NICs, each with its lower end first: node2 comes before node10."""
    return sorted(map(_lower_first, cables), key=lambda cable: [end_order(end) for end in cable])


def _lower_first(cable: Cable) -> Cable:
    lower, higher = sorted(cable, key=end_order)
    return lower, higher


def end_order(end: CableEnd) -> list[Any]:
    """Return the key by which ends are sorted."""
    return [natural(end.host), end.host, natural(end.nic), end.nic]


def plan_cables(
    cables: Iterable[Cable], pool: Pool, rails: Mapping[str, Sequence[RailOf]], others: Collection[RailOf] = ()
) -> list[PlannedCable]:
    """Return the plan of cables, in order. rails: host → the rails of its present intent. others: rails beside these cables.

    A cable keeps the addresses that both ends have already, and the name if no third rail has it. A new one gets the lowest free subnet of
    the pool. Raises PoolError.
    """
    ordered = sorted_cables(cables)
    present = {(host, nic_label(rail["nic"])): rail for host, of in rails.items() for rail in of}
    both = {cable: [present.get((end.host, end.nic)) for end in cable] for cable in ordered}
    used: list[Network] = [ipaddress.ip_interface(rail["address"]).network for rail in others if rail["address"] is not None]
    names = {str(rail["name"]) for rail in others}
    carriers = Counter(str(rail["name"]) for of in rails.values() for rail in of)
    kept: dict[Cable, tuple[str, str]] = {}
    kept_names: dict[Cable, str] = {}
    for cable, (a, b) in both.items():
        if a is None or b is None:
            continue
        addresses = _common(a, b, pool.prefix_length)
        if addresses is not None and not any(_network(addresses[0]).overlaps(each) for each in used if each.version == 4):
            kept[cable] = addresses
            used.append(_network(addresses[0]))
        if a["name"] == b["name"] and a["name"] not in names and carriers[a["name"]] == 2:
            kept_names[cable] = str(a["name"])
            names.add(str(a["name"]))
    free = _free_subnets(pool, used, len(ordered) - len(kept))
    found = []
    for cable in ordered:
        name = kept_names.get(cable) or _new_name(cable, names)
        names.add(name)
        addresses = kept.get(cable) or _new_addresses(next(free), pool)
        found.append(PlannedCable(name, cable, _network(addresses[0]), addresses, cable in kept))
    return found


def _network(address: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Interface(address).network


def _common(a: RailOf, b: RailOf, prefix_length: int) -> tuple[str, str] | None:
    """Return the addresses of two rails if they are different ones of one subnet of this length."""
    if a["address"] is None or b["address"] is None or a["address"] == b["address"]:
        return None
    one, other = ipaddress.ip_interface(a["address"]), ipaddress.ip_interface(b["address"])
    fits = one.version == 4 and one.network == other.network and one.network.prefixlen == prefix_length
    return (str(one), str(other)) if fits else None


def _free_subnets(pool: Pool, used: Sequence[Network], count: int) -> Iterator[ipaddress.IPv4Network]:
    """Return the lowest free subnets. Raises PoolError if there are fewer than `count`."""
    subnets = (pool.subnet(number) for number in range(pool.size))
    unused = (subnet for subnet in subnets if not any(each.version == 4 and each.overlaps(subnet) for each in used))
    found = list(itertools.islice(unused, count))
    if len(found) < count:
        room = f"{pool} has room for {pool.size} subnets of /{pool.prefix_length}"
        raise PoolError(f"{room}, of which {len(found)} are free; {count} cables need one. Use a larger pool, or a longer prefix_length.")
    return iter(found)


def _new_addresses(subnet: ipaddress.IPv4Network, pool: Pool) -> tuple[str, str]:
    low, high = (f"{subnet.network_address + number}/{pool.prefix_length}" for number in pool.host_numbers)
    return low, high


def _new_name(cable: Cable, names: Collection[str]) -> str:
    """Return "a-b" for a cable between these hosts, or "a-b_2" if another cable has that name."""
    a, b = cable
    name = f"{_label(a.host)}-{_label(b.host)}"
    name = name if name[0].isalpha() else f"m{name}"
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 9]}_{hashlib.sha256(f'{a.host} {b.host}'.encode()).hexdigest()[:8]}"
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in names)


def _label(host: str) -> str:
    """Return the part of a host's name that names its cables: the first label, or the whole address."""
    return _NOT_IN_NAMES.sub("_", host if _NUMERIC.fullmatch(host) else host.partition(".")[0])
