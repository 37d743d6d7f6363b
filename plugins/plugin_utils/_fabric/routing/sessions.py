# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the sessions of routers with the plan: each cable is judged once, by what both of its ends report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import RouterState
from ansible_collections.rdma.cluster.plugins.module_utils._routing.vtysh import ESTABLISHED, NO_POLICY
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.judge import APPLY, Cable, Judge, cable_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import Neighbor, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import RANKS


def check_identities(judge: Judge) -> None:
    for name, state in judge.read().items():
        router, summary = judge.plane.speakers[name], state.summary
        if (summary.asn, summary.router_id) != (router.asn, router.router_id):
            observed = "BGP is not configured" if summary.asn is None else f"ASN {summary.asn}, router ID {summary.router_id}"
            judge.add(
                ERROR, name, f"{observed}; planned: ASN {router.asn}, router ID {router.router_id}", "session", f"Apply the plan: {APPLY}."
            )


def check_sessions(judge: Judge) -> None:
    by_id = {router.router_id: name for name, router in judge.plane.speakers.items()}
    wrong: dict[Cable, tuple[str, Neighbor, tuple[str, str]]] = {}
    for name, state in judge.read().items():
        router = judge.plane.speakers[name]
        for each in router.sessions:
            cable = cable_of(name, each)
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


def _left(judge: Judge, name: str, lost: Neighbor) -> str:
    """Return how many uplinks of a cable's lower switch have a good session; "" if the bad session carries routes, of another switch."""
    state = judge.states[name]
    peer = state.summary.peers.get(lost.port) if isinstance(state, RouterState) else None
    if peer is not None and peer.state == ESTABLISHED and peer.policy != NO_POLICY:
        return ""
    lower = min((name, lost.name), key=lambda each: RANKS.index(judge.plane.speakers[each].tier))
    good, planned = _uplinks(judge, lower, judge.good(lower)), _uplinks(judge, lower, judge.plane.speakers[lower].neighbors)
    return f"; {lower} has {good} of {planned} uplinks with a good session"


def _uplinks(judge: Judge, name: str, neighbors: Iterable[Neighbor]) -> int:
    """Return how many of these neighbors of a switch are in a higher tier."""
    tier = {each: RANKS.index(router.tier) for each, router in judge.plane.speakers.items()}
    return sum(tier[each.name] > tier[name] for each in neighbors)


def _unnamed(judge: Judge, name: str, planned: Neighbor, state: RouterState) -> None:
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
