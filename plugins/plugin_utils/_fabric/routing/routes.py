# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the routes of routers with the plan: what good sessions should carry, in FRR and in the kernel, and what must not be there."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._routing.kernel import KERNEL
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import RouterState
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.judge import APPLY, Judge, cable_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some


def check_leaks(judge: Judge) -> None:
    planned = {prefix for prefixes in judge.plane.own_prefixes.values() for prefix in prefixes}
    origins: dict[str, list[str]] = defaultdict(list)
    passed: dict[str, list[str]] = defaultdict(list)
    for name, state in judge.read().items():
        own = set(judge.plane.own_prefixes[name])
        known = planned.union(judge.elsewhere) if name in judge.plane.hosts else planned
        for route in state.table:
            # What a host announces in another plane is in its table too.
            if route.own and route.prefix not in own and route.prefix not in (judge.elsewhere if name in judge.plane.hosts else ()):
                origins[route.prefix].append(name)
            elif not route.own and route.prefix not in known:
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


def _kind(judge: Judge, prefix: str) -> str:
    network = ipaddress.IPv4Network(prefix)
    if network.prefixlen == 0:
        return " (a default route: traffic of the fabric would leave it here)"
    known = [ipaddress.ip_network(each) for each in judge.management]
    if any(each.version == network.version and network.overlaps(each) for each in known):
        return " (the management network)"
    return ""


#: (origin, prefix, number of planned paths).
Wanted = tuple[str, str, int]


def check_routes(judge: Judge) -> None:
    """Report missing prefixes and paths. Those that a bad session explains are not reported again."""
    widths = judge.plane.paths_by({name: tuple(judge.good(name)) for name in judge.plane.speakers})
    behind = _hosts_behind(judge)
    missing: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, state in judge.read().items():
        known = {route.prefix: route.paths for route in state.routes if route.protocol == "bgp"}
        narrow: dict[tuple[str, int, int], list[str]] = defaultdict(list)
        # What it announces itself although it is not its own is reported as such.
        announced = {route.prefix for route in state.table if route.own}
        wanted = [each for each in _wanted(judge, name, widths[name], behind) if each[1] not in announced]
        for origin, prefix, width in wanted:
            paths = len(known.get(prefix, ()))
            if paths == 0:
                missing[origin, prefix].append(name)
            elif paths < width:
                narrow[origin, paths, width].append(prefix)
        for (origin, paths, width), prefixes in narrow.items():
            _narrow(judge, name, origin, f"{paths} of {width}", prefixes)
        if isinstance(state.kernel, dict):
            _kernel_paths(judge, name, known, state.kernel, wanted)
    by_names: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (origin, prefix), names in missing.items():
        by_names[origin, tuple(names)].append(prefix)
    for (origin, lacking), prefixes in by_names.items():
        observed = f"{some(prefixes)} of {origin} {'is' if len(prefixes) == 1 else 'are'} missing on {some(list(lacking))}"
        remedy = f"1. On {origin}: `vtysh -c 'show bgp ipv4 unicast {prefixes[0]}'` must show it as announced. 2. Apply the plan: {APPLY}."
        judge.add(ERROR, origin, observed, "route", remedy)
    _unread_kernels(judge)


def _wanted(judge: Judge, name: str, widths: Mapping[str, int], behind: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[Wanted]:
    """Yield what a switch or a host should have by its good sessions. behind: leaf → its hosts with good sessions, and their prefixes."""
    speaker = judge.plane.speakers[name]
    # A host has the /31 of its own rails itself.
    own = {port.prefix for port in speaker.host_ports}
    for other, width in widths.items():
        for prefix in judge.plane.own_prefixes[other]:
            if prefix not in own and not _is_off(judge, other, prefix):
                yield other, prefix, width
        yield from ((host, prefix, width) for host, prefix in behind.get(other, ()) if host != name)
    yield from ((host, prefix, 1) for host, prefix in behind.get(name, ()))


def _hosts_behind(judge: Judge) -> dict[str, list[tuple[str, str]]]:
    """Return leaf → the hosts with BGP whose session with it is good, each with the prefix that it announces there."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, host in judge.plane.hosts.items():
        for each, port in zip(host.neighbors, host.host_ports, strict=True):
            if cable_of(name, each) in judge.up:
                found[each.name].append((name, port.host_prefix))
    return found


def _kernel_paths(
    judge: Judge, name: str, known: Mapping[str, Sequence[str]], kernel: Mapping[str, Sequence[str]], wanted: Sequence[Wanted]
) -> None:
    """Report paths that FRR shows and the kernel does not have: traffic does not use them. One lost path is one finding.

    known: prefix → the paths in FRR; kernel: those in the kernel.
    """
    at = {each.port: each.name for each in judge.plane.speakers[name].sessions}
    lost: dict[tuple[tuple[str, ...], int, int], list[str]] = defaultdict(list)
    for _origin, prefix, width in wanted:
        shown, used = known.get(prefix, ()), kernel.get(prefix, ())
        planned = min(width, len(shown))
        if len(used) < planned:
            lost[tuple(sorted(set(shown) - set(used))), len(used), planned].append(prefix)
    for (ports, paths, planned), prefixes in lost.items():
        where = " and ".join(f"{port} to {at[port]}" if port in at else port for port in ports) or "one of them"
        observed = f"the kernel has {paths} of {planned} paths that FRR shows to {some(prefixes)}; missing: {where}"
        compare = f"compare `ip route show {prefixes[0]}` with `vtysh -c 'show ip route {prefixes[0]}'`"
        clear = f"`vtysh -c 'clear bgp {ports[0] if ports else '*'}'`"
        remedy = (
            f"1. On {name}, {compare}. 2. Apply the plan: {APPLY}. It sets `no zebra nexthop kernel enable`. 3. While no job runs, on "
            f"{name}: {clear} restarts the session, and FRR writes its routes again."
        )
        judge.add(ERROR, name, observed, "path", remedy)


def _unread_kernels(judge: Judge) -> None:
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, state in judge.read().items():
        if isinstance(state.kernel, str):
            reasons[state.kernel].append(name)
    for reason, names in reasons.items():
        observed = f"the routes of the kernel are not known: {reason}"
        judge.add(UNKNOWN, some(names), observed, "path", f"On {names[0]}: `{' '.join(KERNEL)}` must print JSON (package iproute2).")


def _narrow(judge: Judge, name: str, other: str, paths: str, prefixes: Sequence[str]) -> None:
    relax = judge.read()[name].summary.multipath_relax
    why = "; `bgp bestpath as-path multipath-relax` is not set, so paths by spines with different ASNs are not used together"
    observed = f"{paths} paths to {other} ({some(list(prefixes))}){why if relax is False else ''}"
    remedy = f"1. Apply the plan: {APPLY}. 2. On {name}: `vtysh -c 'show bgp ipv4 unicast {prefixes[0]}'` shows which paths it has and why."
    judge.add(ERROR, name, observed, "route", remedy)


def _is_off(judge: Judge, other: str, prefix: str) -> bool:
    """Return whether a host port has no carrier: its host is off or cut, which the host's own checks report."""
    port = next((port.port for port in judge.plane.routers[other].host_ports if port.prefix == prefix), None)
    state = judge.states.get(other)
    if port is None or not isinstance(state, RouterState):
        return False
    interface = state.interfaces.get(port)
    return interface is not None and not interface.up
