# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the routers of a plane with their plan: sessions, routes, paths, leaks, BFD, kernel settings. One cause is one finding."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import FORWARD, HASH, RouterState
from ansible_collections.rdma.cluster.plugins.module_utils._routing.vtysh import ESTABLISHED, NO_POLICY
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import Neighbor, RoutedPlane, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import TIERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.routing import HASH_POLICIES
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import PLANE

STAGE, CHECK = "fabric", "fabric.bgp"

declare(
    {
        CHECK: Check(
            STAGE,
            "the routers of a plane with `routing`: each session and the switch at its other end, the routes, the number of equal paths, "
            "prefixes that are not planned, BFD, the hash policy, the MTU of the uplinks",
            "on each switch `vtysh -c 'show bgp summary json'`, the neighbors, the tables of BGP and of the kernel, `show bfd peers json`, "
            "`show interface json`, and sysctl",
            "apply the planned configuration with `rdma.cluster.routed`; correct the cable that leads to another switch",
            sources=(reads.result("routers"),),
        ),
    }
)

APPLY = "`ansible-playbook rdma.cluster.routed -e frr_allowed=true`"
#: In a plane with switches that the collection does not configure.
VENDORS = f"{APPLY} for switches with FRR; for others, the network team applies their files in plan/ of the run folder"
_EXPECTED = {
    "read": "every switch of the plan is read",
    "session": "each planned session is Established with the planned switch",
    "route": "every switch has each planned prefix by all equal paths",
    "leak": "the fabric carries only the planned loopbacks and host ports",
    "bfd": "BFD is up on each uplink",
    "kernel": "the switch forwards, and its hash policy is the planned one",
    "mtu": "all uplinks have the MTU of the rails",
}
#: A cable, by its two ends (switch, port).
Cable = frozenset[tuple[str, str]]
State = RouterState | str


@dataclass
class _Judge:
    """The comparison of one plane. states: switch → what was read, or why nothing was. up: the cables with a good session."""

    plane: RoutedPlane
    states: Mapping[str, State]
    mtu_bytes: int | None
    management: Sequence[str]
    findings: list[Finding] = field(default_factory=list)
    up: set[Cable] = field(default_factory=set)

    def add(self, status: str, subject: str, observed: str, expected: str, remedy: str) -> None:
        host = f"{PLANE}{self.plane.name}"
        if any(router.syntax != "frr" for router in self.plane.routers.values()):
            remedy = remedy.replace(APPLY, VENDORS)
        self.findings.append(Finding(STAGE, CHECK, host, subject, status, observed, _EXPECTED[expected], remedy))

    def read(self) -> dict[str, RouterState]:
        return {name: state for name, state in self.states.items() if isinstance(state, RouterState)}


def check_routers(
    plane: RoutedPlane, states: Mapping[str, State], mtu_bytes: int | None = None, management: Sequence[str] = ()
) -> list[Finding]:
    """Return the findings fabric.bgp of a plane.

    states: switch → its state, or why it could not be read; a planned switch that is missing was not read. mtu_bytes: the largest MTU of
    the plane's rails, None if none is planned. management: subnets of the management network.
    """
    judge = _Judge(plane, states, mtu_bytes, management)
    unread = {
        name: states.get(name, "it was not read in this run") for name in plane.routers if not isinstance(states.get(name), RouterState)
    }
    for reason in dict.fromkeys(unread.values()):
        names = some([name for name, each in unread.items() if each == reason])
        group = "Add the switch to the group rdma_switches of the inventory, by its name in the cabling plan."
        remedy = f"1. {group} 2. On the switch: `systemctl status frr`. 3. Apply the plan: {APPLY}."
        judge.add(UNKNOWN, names, str(reason), "read", remedy)
    _identities(judge)
    _sessions(judge)
    _leaks(judge)
    _routes(judge)
    _bfd(judge)
    _kernel(judge)
    _mtu(judge)
    if not judge.findings:
        sessions = f"{len(judge.up)} sessions between {len(plane.routers)} switches are Established"
        judge.add(OK, "routing", f"{sessions}, and all prefixes have all their paths", "route", "")
    return judge.findings


def _identities(judge: _Judge) -> None:
    for name, state in judge.read().items():
        router, summary = judge.plane.routers[name], state.summary
        if (summary.asn, summary.router_id) != (router.asn, router.loopback):
            observed = "BGP is not configured" if summary.asn is None else f"ASN {summary.asn}, router ID {summary.router_id}"
            judge.add(
                ERROR, name, f"{observed}; planned: ASN {router.asn}, router ID {router.loopback}", "session", f"Apply the plan: {APPLY}."
            )


# Sessions: each cable is judged once, by what both of its ends report.


def _sessions(judge: _Judge) -> None:
    by_id = {router.loopback: name for name, router in judge.plane.routers.items()}
    wrong: dict[Cable, tuple[str, Neighbor, tuple[str, str]]] = {}
    for name, state in judge.read().items():
        router = judge.plane.routers[name]
        for each in router.neighbors:
            cable: Cable = frozenset({(name, each.port), (each.name, each.its_port)})
            if cable in wrong:
                continue
            problem = _session(router, each, state, by_id)
            if problem is None:
                judge.up.add(cable)
                _unnamed(judge, name, each, state)
            else:
                wrong[cable] = (name, each, problem)
    judge.up -= wrong.keys()
    for name, each, (observed, remedy) in wrong.values():
        subject = f"{name} {each.port} to {each.name} {each.its_port}"
        judge.add(ERROR, subject, f"{observed}{_left(judge, name, each)}", "session", remedy)


def _left(judge: _Judge, name: str, lost: Neighbor) -> str:
    """Return how many uplinks of a cable's lower switch have a good session; "" if the bad session carries routes, of another switch."""
    state = judge.states[name]
    peer = state.summary.peers.get(lost.port) if isinstance(state, RouterState) else None
    if peer is not None and peer.state == ESTABLISHED and peer.policy != NO_POLICY:
        return ""
    lower = min((name, lost.name), key=lambda each: TIERS.index(judge.plane.routers[each].tier))
    good, planned = _uplinks(judge, lower, _good(judge, lower)), _uplinks(judge, lower, judge.plane.routers[lower].neighbors)
    return f"; {lower} has {good} of {planned} uplinks with a good session"


def _uplinks(judge: _Judge, name: str, neighbors: Iterable[Neighbor]) -> int:
    """Return how many of these neighbors of a switch are in a higher tier."""
    tier = {each: TIERS.index(router.tier) for each, router in judge.plane.routers.items()}
    return sum(tier[each.name] > tier[name] for each in neighbors)


def _unnamed(judge: _Judge, name: str, planned: Neighbor, state: RouterState) -> None:
    """Report a session whose other end is not known, so that its cable is not compared."""
    neighbor = state.neighbors.get(planned.port)
    if neighbor is None or neighbor.router_id is None:
        remedy = f"On {name}: `vtysh -c 'show bgp neighbors {planned.port}'` must show the remote router ID of {planned.name}."
        observed = "Established, but FRR does not report the router ID of the neighbor"
        judge.add(UNKNOWN, f"{name} {planned.port} to {planned.name} {planned.its_port}", observed, "session", remedy)


def _session(router: Router, planned: Neighbor, state: RouterState, by_id: Mapping[str, str]) -> tuple[str, str] | None:
    """Return what is wrong with one session, and the remedy."""
    peer, neighbor = state.summary.peers.get(planned.port), state.neighbors.get(planned.port)
    apply = f"Apply the plan: {APPLY}."
    if peer is None:
        return f"{router.name} has no neighbor on {planned.port}", apply
    answered = neighbor.router_id if neighbor is not None else None
    found = by_id.get(answered or "")
    if answered is not None and found != planned.name and peer.state == ESTABLISHED:
        named = f", {neighbor.host_name}" if neighbor is not None and neighbor.host_name else ""
        who = found or f"a switch that is not planned{named}"
        place = f"{planned.name} {planned.its_port}"
        steps = f"1. Compare the cable at {router.name} {planned.port} with the cabling plan. 2. Move it to {place}, or correct the plan."
        return f"the neighbor is {who} (router ID {answered}, ASN {peer.remote_asn}), planned is {planned.name}", steps
    if peer.state != ESTABLISHED:
        return _down(router, planned, state)
    if peer.policy == NO_POLICY:
        words = "Established (Policy): no route-map permits routes in both directions, so the session carries none (RFC 8212)"
        return words, f"{apply} Do not use `no bgp ebgp-requires-policy`: it would carry every route."
    return None


def _down(router: Router, planned: Neighbor, state: RouterState) -> tuple[str, str]:
    peer, neighbor, port = state.summary.peers[planned.port], state.neighbors.get(planned.port), state.interfaces.get(planned.port)
    if port is None:
        return f"{peer.state}: {router.name} has no interface {planned.port}", "Correct port_prefix, or the port in the cabling plan."
    if not port.up:
        steps = f"1. Check the cable and the optics at both ends. 2. On {router.name}: `ip link show {planned.port}`."
        return f"{peer.state}: {planned.port} of {router.name} has no carrier or is disabled", steps
    if not any(address.startswith("fe80:") for address in port.addresses):
        steps = f"On {router.name}: `sysctl net.ipv6.conf.{planned.port}.disable_ipv6` must be 0. Then set the link down and up."
        return f"{peer.state}: {planned.port} of {router.name} has no IPv6 link-local address, so BGP cannot reach the neighbor", steps
    reset = f"; the last session ended with: {neighbor.last_reset}" if neighbor is not None and neighbor.last_reset else ""
    steps = f"1. On {planned.name}: `vtysh -c 'show bgp summary'` must list {planned.its_port}. 2. Apply the plan: {APPLY}."
    return f"{peer.state}{reset}", steps


# Routes: what the good sessions should carry.


def _leaks(judge: _Judge) -> None:
    planned = {prefix for prefixes in judge.plane.own_prefixes.values() for prefix in prefixes}
    origins: dict[str, list[str]] = defaultdict(list)
    passed: dict[str, list[str]] = defaultdict(list)
    for name, state in judge.read().items():
        own = set(judge.plane.own_prefixes[name])
        for route in state.table:
            if route.own and route.prefix not in own:
                origins[route.prefix].append(name)
            elif not route.own and route.prefix not in planned:
                passed[route.prefix].append(name)
    grouped: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for prefix, names in (*origins.items(), *((prefix, names) for prefix, names in passed.items() if prefix not in origins)):
        grouped[tuple(names)].append(prefix)
    for switches, prefixes in grouped.items():
        verb = "announces" if any(prefix in origins for prefix in prefixes) else "has"
        words = some([f"{prefix}{_kind(judge, prefix)}" for prefix in prefixes])
        shown = f"`vtysh -c 'show bgp ipv4 unicast {prefixes[0]}'` shows where it comes from"
        remedy = f"1. Apply the plan, whose route-maps deny it: {APPLY}. 2. On {switches[0]}: {shown}."
        judge.add(ERROR, some(list(switches)), f"{verb} {words}", "leak", remedy)


def _kind(judge: _Judge, prefix: str) -> str:
    network = ipaddress.IPv4Network(prefix)
    if network.prefixlen == 0:
        return " (a default route: traffic of the fabric would leave it here)"
    known = [ipaddress.ip_network(each) for each in judge.management]
    if any(each.version == network.version and network.overlaps(each) for each in known):
        return " (the management network)"
    return ""


def _routes(judge: _Judge) -> None:
    """Report missing prefixes and paths. Those that a bad session explains are not reported again."""
    reads = judge.read()
    widths = _widths(judge)
    missing: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, state in reads.items():
        kernel = {route.prefix: route for route in state.routes}
        for other, width in widths[name].items():
            narrow: dict[int, list[str]] = defaultdict(list)
            for prefix in judge.plane.own_prefixes[other]:
                if _is_off(judge, other, prefix):
                    continue
                paths = len(kernel[prefix].paths) if prefix in kernel and kernel[prefix].protocol == "bgp" else 0
                if paths == 0:
                    missing[other, prefix].append(name)
                elif paths < width:
                    narrow[paths].append(prefix)
            for paths, prefixes in narrow.items():
                _narrow(judge, name, other, f"{paths} of {width}", prefixes)
    by_names: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (other, prefix), names in missing.items():
        by_names[other, tuple(names)].append(prefix)
    for (other, lacking), prefixes in by_names.items():
        observed = f"{some(prefixes)} of {other} {'is' if len(prefixes) == 1 else 'are'} missing on {some(list(lacking))}"
        remedy = f"1. On {other}: `vtysh -c 'show bgp ipv4 unicast {prefixes[0]}'` must show it as announced. 2. Apply the plan: {APPLY}."
        judge.add(ERROR, other, observed, "route", remedy)


def _narrow(judge: _Judge, name: str, other: str, paths: str, prefixes: Sequence[str]) -> None:
    relax = judge.read()[name].summary.multipath_relax
    why = "; `bgp bestpath as-path multipath-relax` is not set, so paths by spines with different ASNs are not used together"
    observed = f"{paths} paths to {other} ({some(list(prefixes))}){why if relax is False else ''}"
    remedy = f"1. Apply the plan: {APPLY}. 2. On {name}: `vtysh -c 'show bgp ipv4 unicast {prefixes[0]}'` shows which paths it has and why."
    judge.add(ERROR, name, observed, "route", remedy)


def _widths(judge: _Judge) -> dict[str, dict[str, int]]:
    """Return switch → other switch → number of paths to it by good sessions; without those that no good session reaches."""
    return judge.plane.paths_by({name: tuple(_good(judge, name)) for name in judge.plane.routers})


def _good(judge: _Judge, name: str) -> Iterator[Neighbor]:
    """The neighbors of a switch by good sessions. A session with an unread end counts by what the other end reports."""
    for each in judge.plane.routers[name].neighbors:
        if frozenset({(name, each.port), (each.name, each.its_port)}) in judge.up:
            yield each


def _is_off(judge: _Judge, other: str, prefix: str) -> bool:
    """Return whether a host port has no carrier: its host is off or cut, which the host's own checks report."""
    port = next((port.port for port in judge.plane.routers[other].host_ports if port.prefix == prefix), None)
    state = judge.states.get(other)
    if port is None or not isinstance(state, RouterState):
        return False
    interface = state.interfaces.get(port)
    return interface is not None and not interface.up


# BFD, kernel, MTU.


def _bfd(judge: _Judge) -> None:
    if not judge.plane.settings["bfd"]:
        return
    for name, state in judge.read().items():
        down = [
            f"{each.port} ({(state.bfd or {}).get(each.port, 'no session')})"
            for each in _good(judge, name)
            if state.bfd is None or state.bfd.get(each.port) != "up"
        ]
        if down:
            observed = "bfdd does not run" if state.bfd is None else f"BFD is not up on {some(down)}"
            late = "Until then, a silent cable is noticed after 9 s."
            remedy = f"1. On {name}: /etc/frr/daemons must have `bfdd=yes`. 2. Apply the plan: {APPLY}. {late}"
            judge.add(ERROR, name, observed, "bfd", remedy)


def _kernel(judge: _Judge) -> None:
    planned = {FORWARD: 1, HASH: HASH_POLICIES[judge.plane.settings["hash_policy"]]}
    words = {FORWARD: "it does not forward", HASH: "all flows of a pair of hosts use one spine"}
    for name, state in judge.read().items():
        # The chip of a vendor's switch forwards and hashes, not its kernel.
        for setting, value in planned.items() if judge.plane.routers[name].syntax == "frr" else ():
            seen = state.sysctls.get(setting)
            remedy = f"Apply the plan: {APPLY}. It writes {setting} = {value} for now and for each boot."
            if seen is None:
                judge.add(UNKNOWN, name, f"{setting} could not be read", "kernel", remedy)
            elif seen != value:
                judge.add(ERROR, name, f"{setting} is {seen}, planned {value}: {words[setting]}", "kernel", remedy)


def _mtu(judge: _Judge) -> None:
    for name, state in judge.read().items():
        for each in judge.plane.routers[name].neighbors:
            port, other = state.interfaces.get(each.port), judge.states.get(each.name)
            its = other.interfaces.get(each.its_port) if isinstance(other, RouterState) else None
            planned = max(judge.mtu_bytes or 0, (its.mtu_bytes or 0) if its is not None else 0)
            if port is not None and port.mtu_bytes is not None and port.mtu_bytes < planned:
                why = "the rails have" if planned == judge.mtu_bytes else f"{each.name} {each.its_port} has"
                remedy = f"On {name}: `ip link set {each.port} mtu {planned}`, and the same in the configuration of its network at boot."
                judge.add(ERROR, f"{name} {each.port}", f"its MTU is {port.mtu_bytes}; {why} {planned}", "mtu", remedy)
