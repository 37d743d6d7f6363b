# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The path MTU between the hosts of a rail: which packet sizes are probed, and which host's path drops them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

declare(
    {
        "network.path_mtu": Check(
            "pairs",
            "whether packets of the planned MTU get from each host to each other host of a RoCE rail unfragmented, before pairs are "
            "measured and in `validate`; the finding names host and direction, and the largest size that passes",
            'ICMP echo and UDP with the bit "do not fragment"; the interfaces\' MTU',
            "set the MTU of the switch port that the finding names to 9216, or lower `mtu_bytes` on all hosts of the rail",
            follows=(*NO_DEVICE, "link.state"),
            sources=(reads.result("path MTU"),),
        ),
    }
)

STAGE, CHECK = "pairs", "network.path_mtu"
FOLDER = "path_mtu"
PLAN = f"{FOLDER}/plan.json"
#: The share of its partners from, or to, which a host must lose packets before its own port is named.
SHARE = 0.8

Way = tuple[str, str]
"""A direction: from a host, to a host."""
Plan = dict[str, dict[str, dict[str, Any]]]
"""Rail → host → {"netdev", "address", "bytes"}: the interface, its address, and its MTU in bytes. network: only for a mesh.

A host outside of the play has only an address.
"""


def path_mtu_plan(fleet: Fleet, outside: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Return what is probed: every host with an address on a RoCE rail that at least one other host has.

    outside: host → rail → endpoint of the hosts that are not in the play, but are probed by it.
    """
    plan: Plan = {}
    for host in fleet.hosts:
        for rail in resolve(fleet.intents[host]["rails"], fleet.facts[host]):
            endpoint = fleet.endpoints[host].get(rail.name)
            mtu_bytes = fleet.facts[host].netdevs[rail.netdev].mtu_bytes if rail.netdev else None
            planned = rail.rail["address"]
            if endpoint is None or mtu_bytes is None or planned is None or rail.rail["link_layer"] != "roce":
                continue
            is_mesh = (fleet.intents[host].get("fabric") or {}).get("topology") == "mesh"
            network = {"network": str(ipaddress.ip_interface(planned).network)} if is_mesh else {}
            entry = {"netdev": rail.netdev, "address": endpoint["address"], "bytes": mtu_bytes, **network}
            plan.setdefault(rail.name, {})[host] = entry
    for host, of in outside.items():
        for name in of.keys() & plan.keys():
            plan[name][host] = {"address": of[name]["address"]}
    return {rail: hosts for rail, hosts in plan.items() if len(hosts) > 1}


def rails_to_probe(plan: Plan, host: str) -> list[dict[str, Any]]:
    """Return the module's argument for a host. Each host begins with another partner, so that no host gets all packets at once."""
    found = []
    for rail, hosts in plan.items():
        own = hosts.get(host)
        order = list(hosts)
        if own is None or "netdev" not in own:
            continue
        at = order.index(host)
        others = [name for name in order[at + 1 :] + order[:at] if hosts[name].get("network", own.get("network")) == own.get("network")]
        sizes = {name: min(own["bytes"], hosts[name].get("bytes", own["bytes"])) for name in others}
        peers = [{"host": name, "address": hosts[name]["address"], "bytes": size} for name, size in sizes.items()]
        if peers:
            found.append({"name": rail, "netdev": own["netdev"], "address": own["address"], "peers": peers})
    return found


@dataclass
class _Rail:
    """The results of a rail. lost: (from, to) → the largest size that passes, in bytes. quiet: host → its partners without any answer.

    unclear: those of lost whose direction is not known. hops: (from, to) → the router that reported a smaller MTU.
    """

    hosts: Mapping[str, Mapping[str, Any]]
    lost: dict[Way, int] = field(default_factory=dict)
    quiet: dict[str, list[str]] = field(default_factory=dict)
    unclear: set[Way] = field(default_factory=set)
    hops: dict[Way, str] = field(default_factory=dict)
    partners: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def add(self, host: str, result: Mapping[str, Any] | None) -> None:
        """Add the result of one host."""
        if result is None or result["error"]:
            self.errors[host] = "it was not probed" if result is None else str(result["error"])
            return
        self.partners[host] = int(result["peers"])
        for other, short in result["bad"].items():
            there, back = (host, other), (other, host)
            if short["bytes"] == 0:
                self.quiet.setdefault(host, []).append(other)
                continue
            directions = {True: (back,), False: (there,)}.get(short["sent"], (there, back))
            for way in directions:
                self.lost[way] = max(self.lost.get(way, 0), short["bytes"])
            if len(directions) == 2:
                self.unclear |= {there, back}
            if short["hop"]:
                self.hops[there] = f"{short['hop'][0]} reports an MTU of {short['hop'][1]} bytes"

    @cached_property
    def ends(self) -> Mapping[tuple[str, int], list[Way]]:
        """(host, 0) → the lost directions that begin at a host; (host, 1) → those that end there. Only after the last `add`."""
        found: dict[tuple[str, int], list[Way]] = {}
        for way in self.lost:
            for end in (0, 1):
                found.setdefault((way[end], end), []).append(way)
        return found

    @cached_property
    def culprits(self) -> frozenset[tuple[str, int]]:
        """The ends, as in `ends`, that lose packets with nearly all partners."""

        def possible(host: str) -> int:
            return self.partners.get(host, len(self.partners))

        return frozenset((host, end) for (host, end), ways in self.ends.items() if len(ways) >= max(2.0, SHARE * possible(host)))

    @cached_property
    def is_whole_rail(self) -> bool:
        """Whether more than half of the hosts are culprits."""
        return 2 * len({host for host, _end in self.culprits}) > len(self.hosts)


def check_path_mtu(folder: RunFolder, fleet: Fleet) -> Iterator[Doubt]:
    """Yield a finding `network.path_mtu` for each host and rail, if this run has probed. A port with an error is not proven."""
    plan: Plan | None = folder.read_if_there(PLAN)
    probed = (folder.path / FOLDER).glob("*.json") if plan else ()
    if plan is None or not any(path.name != "plan.json" for path in probed):
        return
    results = {host: folder.read_if_there(folder.host_file(FOLDER, host)) or {} for host in fleet.hosts}
    for rail, hosts in plan.items():
        of_rail = _Rail({host: each for host, each in hosts.items() if host in results})
        for host in of_rail.hosts:
            of_rail.add(host, results[host].get(rail))
        for host in of_rail.hosts:
            finding = Finding(STAGE, CHECK, host, rail, *_judged(host, of_rail))
            yield Doubt(finding, frozenset({(host, rail)}) if finding.status == ERROR else frozenset())


def _judged(host: str, rail: _Rail) -> tuple[str, str, str, str]:
    """Return (status, observed, expected, remedy)."""
    size = int(rail.hosts[host]["bytes"])
    expected = f"packets of {size} bytes pass between all hosts of the rail"
    concerned = [way for end in (0, 1) for way in rail.ends.get((host, end), ())]
    own = [way for way in concerned if _is_reported_at(host, way, rail)]
    if own:
        return ERROR, _observed(host, own, size, rail), expected, _remedy(host, own, size, rail)
    if host in rail.errors:
        return UNKNOWN, rail.errors[host], expected, f"Run the pairs stage again for {host}."
    partners = rail.partners[host]
    quiet = rail.quiet.get(host, [])
    if not partners:
        return NOT_APPLICABLE, "no other host is in the subnet of this rail", expected, ""
    if len(quiet) == partners:
        remedy = (
            f"1. Allow ICMP echo on the rail: check the firewall of {host} and its partners. "
            "2. Run `ansible-playbook rdma.cluster.validate` on the control node."
        )
        return WARNING, f"none of {partners} hosts answers ICMP echo of any size, so the path MTU is not known", expected, remedy
    words = [f"packets of {size} bytes pass to and from {partners} hosts"]
    elsewhere = sorted({way[1 - way.index(host)] for way in concerned})
    if elsewhere:
        words = [f"packets of {size} bytes pass, but not with {some(elsewhere)}: the finding there explains it"]
    if quiet:
        words.append(f"no answer of any size from {some(quiet)}")
    return OK, "; ".join(words), expected, ""


def _is_reported_at(host: str, way: Way, rail: _Rail) -> bool:
    """Whether a lost direction is reported at this end: at the host whose port loses nearly everything, else at both ends."""
    culprits = {way[end] for end in (0, 1) if (way[end], end) in rail.culprits}
    return host in (culprits or set(way))


def _observed(host: str, own: Sequence[Way], size: int, rail: _Rail) -> str:
    words = []
    for end, what in ((1, "from {} do not arrive"), (0, "to {} do not arrive")):
        ways = [way for way in own if way[end] == host and way not in rail.unclear]
        if ways:
            words.append(what.format(some([way[1 - end] for way in ways])))
    unclear = sorted({way[1 - way.index(host)] for way in own if way in rail.unclear})
    if unclear:
        words.append(f"to or from {some(unclear)} do not arrive (the direction is not known, because UDP has no answer)")
    passes = max(rail.lost[way] for way in own)
    hops = sorted({rail.hops[way] for way in own if way in rail.hops})
    return "; ".join([f"packets of {size} bytes {', and those '.join(words)}", f"the largest that passes has {passes} bytes", *hops])


def _remedy(host: str, own: Iterable[Way], size: int, rail: _Rail) -> str:
    others = {way[1 - way.index(host)] for way in own}
    port = f"the switch port of {host}" if len(others) > 1 else f"each switch port on the path between {host} and {next(iter(others))}"
    if rail.is_whole_rail:
        port = "every switch port of the rail"
    return (
        f"1. On the switch, read and correct the MTU of {port}: it needs room for {size} bytes and the Ethernet header (usually 9216). "
        "2. If it is right, read the MTU of routers and VLANs on the path. 3. Run `ansible-playbook rdma.cluster.pairs` on the control "
        "node."
    )
