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
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import address_netdev, resolve
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.roce_mtu import ROCE_HEADERS_BYTES
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import gid_address
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

declare(
    {
        "network.path_mtu": Check(
            "pairs",
            "whether packets of the interfaces' MTU get from each host to its partners on a RoCE rail, before pairs are measured and in "
            "`validate`; only a warning if RDMA's packets pass",
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
#: The most partners that a host probes on a rail.
PARTNERS = 64
#: The share of its partners with which a host loses packets if the whole rail does.
SHARE_OF_RAIL = 0.5

Direction = tuple[str, str]
"""From a host, to a host."""
End = tuple[str, int]
"""A host, and 0 for the directions that begin there, 1 for those that end there."""
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
            netdev = address_netdev(rail, fleet.facts[host])
            mtu_bytes = netdev.mtu_bytes if netdev is not None else None
            planned = rail.rail["address"]
            if endpoint is None or mtu_bytes is None or planned is None or rail.rail["link_layer"] != "roce":
                continue
            is_mesh = (fleet.intents[host].get("fabric") or {}).get("topology") == "mesh"
            network = {"network": str(ipaddress.ip_interface(planned).network)} if is_mesh else {}
            entry = {"netdev": rail.interface, "address": gid_address(endpoint), "bytes": mtu_bytes, **network}
            plan.setdefault(rail.name, {})[host] = entry
    for host, of in outside.items():
        for name in of.keys() & plan.keys():
            plan[name][host] = {"address": gid_address(of[name])}
    return {rail: hosts for rail, hosts in plan.items() if len(hosts) > 1}


def rails_to_probe(plan: Plan, host: str) -> list[dict[str, Any]]:
    """Return the module's argument for a host. Each host begins with another partner, so that no host gets all packets at once."""
    found = []
    for rail, hosts in plan.items():
        own = hosts.get(host)
        if own is None or "netdev" not in own:
            continue
        order = list(hosts)
        at = order.index(host)
        others = [order[(at + offset) % len(order)] for offset in offsets(len(order))]
        near = [name for name in others if "network" not in own or is_within(hosts[name]["address"], own["network"])]
        peers = [{"host": name, "address": hosts[name]["address"], "bytes": _size(hosts, host, name)} for name in near]
        if peers:
            found.append({"name": rail, "netdev": own["netdev"], "address": own["address"], "peers": peers})
    return found


def is_within(address: str, network: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(network)


def offsets(hosts: int) -> list[int]:
    """Return the distances of a host's partners in the order of hosts: all, or PARTNERS of them.

    Half of those are the nearest hosts, the others are spread over all. With each distance its opposite is there too, so two partners
    always probe each other.
    """
    if hosts - 1 <= PARTNERS:
        return list(range(1, hosts))
    quarter = PARTNERS // 4
    one_way = [*range(1, quarter + 1), *(quarter + (hosts // 2 - quarter) * number // quarter for number in range(1, quarter + 1))]
    return sorted({distance % hosts for each in one_way for distance in (each, -each)})


def _size(hosts: Mapping[str, Mapping[str, Any]], one: str, other: str) -> int:
    """Return the size that is probed between two hosts: the smaller MTU."""
    return min(int(each["bytes"]) for each in (hosts[one], hosts[other]) if "bytes" in each)


@dataclass
class _Rail:
    """The results of a rail. lost: (from, to) → the largest size that passes, in bytes.

    reports: (host, partner) → what the host found. partners: host → the number of those that it probed. unclear: those of lost whose
    direction is not known. unstable: host → partners that answer some packets of a size and not others, or that only one end reports.
    """

    hosts: Mapping[str, Mapping[str, Any]]
    reports: dict[Direction, Mapping[str, Any]] = field(default_factory=dict)
    partners: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    lost: dict[Direction, int] = field(default_factory=dict)
    quiet: dict[str, list[str]] = field(default_factory=dict)
    unstable: dict[str, list[str]] = field(default_factory=dict)
    unclear: set[Direction] = field(default_factory=set)
    hops: dict[Direction, str] = field(default_factory=dict)

    @classmethod
    def of(cls, hosts: Mapping[str, Mapping[str, Any]], results: Mapping[str, Mapping[str, Any] | None]) -> _Rail:
        """Return the rail from the result of each host; None for a host without one."""
        rail = cls(hosts)
        for host, result in results.items():
            rail._add(host, result)
        for one, other in rail.reports:
            if (other, one) not in rail.reports or one < other:
                rail._compare(one, other)
        return rail

    def _add(self, host: str, result: Mapping[str, Any] | None) -> None:
        if result is None or result["error"]:
            self.errors[host] = "it was not probed" if result is None else str(result["error"])
            return
        self.partners[host] = int(result["peers"])
        self.unstable.setdefault(host, []).extend(result["unstable"])
        for other, short in result["bad"].items():
            if short["bytes"] == 0:
                self.quiet.setdefault(host, []).append(other)
                continue
            self.reports[host, other] = short
            if short["hop"]:
                self.hops[host, other] = f"{short['hop'][0]} reports an MTU of {short['hop'][1]} bytes"

    def _compare(self, one: str, other: str) -> None:
        """Find the lost directions between two hosts. An echo request and its reply cross both, so a limit shows at both ends.

        If only one of two ends that probed reports it, packets get lost for another reason.
        """
        both = [(here, there) for here, there in ((one, other), (other, one)) if (here, there) in self.reports]
        if len(both) == 1 and other in self.partners and (one, other) not in self.hops:
            self.unstable.setdefault(one, []).append(other)
            return
        size = max(int(self.reports[each]["bytes"]) for each in both)
        arrives = {each: self.reports[each]["sent"] for each in both}
        lost = [each for each in both if arrives[each] is False]
        if not lost and all(arrives.values()) and len(both) == 2:
            # Each end receives the large packets of the other: only ICMP is treated differently.
            self.unstable.setdefault(one, []).append(other)
            self.unstable.setdefault(other, []).append(one)
            return
        if not lost:
            lost = [(there, here) for here, there in both if arrives[here, there]]
        if not lost:
            lost = [(one, other), (other, one)]
            self.unclear |= set(lost)
        self.lost.update(dict.fromkeys(lost, size))

    @cached_property
    def ends(self) -> Mapping[End, list[Direction]]:
        """(host, 0) → the lost directions that begin at a host; (host, 1) → those that end there."""
        found: dict[End, list[Direction]] = {}
        for direction in self.lost:
            for end in (0, 1):
                found.setdefault((direction[end], end), []).append(direction)
        return found

    @cached_property
    def culprits(self) -> frozenset[End]:
        """The ends that lose packets with nearly all partners that answer: the worst first, which explains its directions.

        Only hosts of the play: a finding on another one would not be shown.
        """
        found: set[End] = set()
        left = {end: set(directions) for end, directions in self.ends.items()}
        while left:
            end = max(left, key=lambda each: (len(left[each]), each))
            directions = left.pop(end)
            if len(directions) < 2:
                break
            host, _side = end
            possible = self.partners.get(host, len(self.partners)) - len(self.quiet.get(host, ()))
            if host in self.hosts and len(self.ends[end]) >= SHARE * possible:
                found.add(end)
                for unexplained in left.values():
                    unexplained.difference_update(directions)
        return frozenset(found)

    @cached_property
    def is_whole_rail(self) -> bool:
        """Whether more than half of the hosts lose packets with most of their partners."""
        many = [host for host in self.hosts if self._share_lost(host) > SHARE_OF_RAIL]
        return 2 * len(many) > len(self.hosts)

    def _share_lost(self, host: str) -> float:
        lost = {direction[1 - direction.index(host)] for end in (0, 1) for direction in self.ends.get((host, end), ())}
        return len(lost) / max(1, self.partners.get(host, len(self.partners)))


def check_path_mtu(folder: RunFolder, fleet: Fleet) -> Iterator[Doubt]:
    """Yield a finding `network.path_mtu` for each host and rail, if this run has probed. A port with an error is not proven."""
    plan: Plan | None = folder.read_if_there(PLAN)
    probed = (folder.path / FOLDER).glob("*.json") if plan else ()
    if plan is None or not any(path.name != "plan.json" for path in probed):
        return
    results = {host: folder.read_if_there(folder.host_file(FOLDER, host)) or {} for host in fleet.hosts}
    for name, planned in plan.items():
        hosts = {host: planned[host] for host in fleet.hosts if host in planned}
        rail = _Rail.of(hosts, {host: results[host].get(name) for host in hosts})
        for host in hosts:
            finding = Finding(STAGE, CHECK, host, name, *_judged(host, rail, _rdma_bytes(host, name, fleet)))
            yield Doubt(finding, frozenset({(host, name)}) if finding.status == ERROR else frozenset())


def _rdma_bytes(host: str, name: str, fleet: Fleet) -> int:
    """Return the size of the largest RoCE packets of a port; 0 if its active MTU is not known."""
    endpoint, facts = fleet.endpoints[host].get(name), fleet.facts[host]
    port = facts.devices[endpoint["device"]].ports[str(endpoint["port"])] if endpoint else None
    return port.active_mtu_bytes + ROCE_HEADERS_BYTES if port is not None and port.active_mtu_bytes else 0


def _judged(host: str, rail: _Rail, rdma_bytes: int) -> tuple[str, str, str, str]:
    """Return (status, observed, expected, remedy). rdma_bytes: the size of the largest RoCE packets."""
    size = int(rail.hosts[host]["bytes"])
    expected = f"packets of {size} bytes pass between all hosts of the rail"
    concerned = [direction for end in (0, 1) for direction in rail.ends.get((host, end), ())]
    own = [direction for direction in concerned if _is_reported_at(host, direction, rail)]
    if own:
        # RDMA uses smaller packets than TCP, and they may pass.
        passes_rdma = 0 < rdma_bytes <= min(rail.lost[direction] for direction in own)
        return WARNING if passes_rdma else ERROR, _observed(host, own, size, rail), expected, _remedy(host, own, size, rail)
    if host in rail.errors:
        return UNKNOWN, rail.errors[host], expected, f"Run the pairs stage again for {host}."
    partners, quiet, unstable = rail.partners[host], rail.quiet.get(host, []), rail.unstable.get(host, [])
    if not partners:
        return NOT_APPLICABLE, "no other host is in the subnet of this rail", expected, ""
    if len(quiet) == partners:
        return WARNING, f"none of {partners} hosts answers ICMP echo of any size, so the path MTU is not known", expected, _allow(host)
    if unstable:
        words = f"packets of any size get lost now and then, or only in one direction, with {some(sorted(set(unstable)))}"
        return WARNING, words, expected, f"Read the counters of the rail's port on {host} and of its switch port. The pairs are measured."
    elsewhere = sorted({direction[1 - direction.index(host)] for direction in concerned})
    words = f"packets of up to {size} bytes pass to and from {partners - len(quiet) - len(elsewhere)} hosts"
    if elsewhere:
        words += f"; not with {some(elsewhere)}: the finding there explains it"
    if quiet:
        words += f"; no answer of any size from {some(quiet)}"
    return OK, words, expected, ""


def _allow(host: str) -> str:
    return (
        f"1. Allow ICMP echo on the rail: check the firewall of {host} and its partners. "
        "2. Run `ansible-playbook rdma.cluster.validate` on the control node."
    )


def _is_reported_at(host: str, direction: Direction, rail: _Rail) -> bool:
    """Whether a lost direction is reported at this end: at the host whose port loses nearly everything, else at both ends."""
    culprits = {direction[end] for end in (0, 1) if (direction[end], end) in rail.culprits}
    return host in (culprits or set(direction))


def _observed(host: str, own: Sequence[Direction], size: int, rail: _Rail) -> str:
    words = []
    for end, what in ((1, "from {} do not arrive"), (0, "to {} do not arrive")):
        known = [direction for direction in own if direction[end] == host and direction not in rail.unclear]
        if known:
            words.append(what.format(some([direction[1 - end] for direction in known])))
    unclear = sorted({direction[1 - direction.index(host)] for direction in own if direction in rail.unclear})
    if unclear:
        words.append(f"to or from {some(unclear)} do not arrive (the direction is not known, because UDP has no answer)")
    passes = max(rail.lost[direction] for direction in own)
    hops = sorted({rail.hops[each] for direction in own for each in (direction, direction[::-1]) if each in rail.hops})
    return "; ".join([f"packets of {size} bytes {', and those '.join(words)}", f"the largest that passes has {passes} bytes", *hops])


def _remedy(host: str, own: Iterable[Direction], size: int, rail: _Rail) -> str:
    others = sorted({direction[1 - direction.index(host)] for direction in own})
    if rail.is_whole_rail:
        port = "every switch port of the rail"
    elif {(host, 0), (host, 1)} & rail.culprits:
        port = f"the switch port of {host}"
    else:
        port = f"the links between switches on the path from {host} to {some(others)}, and of the ports of these hosts"
    return (
        f"1. On the switch, read and correct the MTU of {port}: it needs room for {size} bytes and the Ethernet header (usually 9216). "
        "2. If it is right, read the MTU of routers and VLANs on the path. 3. Run `ansible-playbook rdma.cluster.pairs` on the control "
        "node."
    )
