# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hops between hosts: from one port in the graph to another, by NCCL's log or by the order of hosts alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.hostnames import short
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.log import RECEIVE, SEND, Communicator, Edges, RingLog
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.ports import HostPort, Ports
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

RING, TREE = "ring", "tree"


@dataclass(frozen=True, order=True)
class Route:
    """A ring or a tree. communicator: its name, "" if there is only one; channel: its number, or the rail of a hostfile's ring."""

    kind: str
    communicator: str
    channel: str

    @property
    def words(self) -> str:
        own = f"{self.kind} {self.channel}"
        return f"{own} of {self.communicator}" if self.communicator else own


@dataclass(frozen=True)
class Hop:
    """One flow from a port to another one of the same plane."""

    route: Route
    source: HostPort
    target: HostPort


@dataclass(frozen=True)
class Unknown:
    """A hop, a host or a ring that cannot be mapped. what: its name; why: the reason."""

    what: str
    why: str


@dataclass(frozen=True)
class Hops:
    """The hops between hosts, what is unknown, and the hosts in the order of their lowest ranks.

    between: the number of hops between hosts that are in the log or the hostfile, mapped or not. ranks: 0 for a hostfile.
    """

    hops: tuple[Hop, ...]
    unknown: tuple[Unknown, ...]
    order: tuple[str, ...]
    between: int
    ranks: int = 0


def hops_of_log(log: RingLog, ports: Ports, names: Mapping[str, str]) -> Hops:
    """Return the hops of all communicators of a log. names: name in a log → host of the inventory."""
    hops: list[Hop] = []
    unknown = [Unknown("the log", each) for each in log.unclear]
    if log.left_out:
        unknown.append(Unknown("the log", f"{log.left_out} lines are torn, and were skipped"))
    order: dict[str, int] = {}
    between = 0
    for each in log.communicators:
        hosts = {rank: _host(name, names) for rank, name in each.hosts.items()}
        own = replace(each, hosts=hosts)
        label = f"communicator {each.name}" if len(log.communicators) > 1 else ""
        strangers = sorted({str(name) for rank, name in each.hosts.items() if name and hosts[rank] is None}, key=natural)
        unknown += [Unknown(f"host {name}", "it is not in the play; map its name in rdma_job_hosts") for name in strangers]
        unknown += _missing(own, each, label)
        for rank, host in sorted(hosts.items()):
            if host is not None and host not in order and each is log.communicators[0]:
                order[host] = rank
        for route, edges in _routes(own, label):
            for sender, receiver in edges:
                if hosts.get(sender) is None or hosts.get(receiver) is None or hosts[sender] == hosts[receiver]:
                    continue
                between += 1
                found = _hop(log, own, ports, route, (sender, receiver))
                if isinstance(found, Hop):
                    hops.append(found)
                else:
                    unknown.append(found)
    ranks = log.communicators[0].nranks if log.communicators else 0
    others = {host for each in log.communicators for name in each.hosts.values() if (host := _host(name, names)) is not None} - set(order)
    if others:
        why = f"no communicator has all hosts; the largest one lacks {', '.join(sorted(others, key=natural))}. Name the hostfile"
        unknown.append(Unknown("the order of the hosts", f"{why}: -e rdma_job_hostfile=FILE"))
        order = {}
    return Hops(tuple(hops), tuple(dict.fromkeys(unknown)), tuple(order), between, ranks)


def hops_of_order(order: Sequence[str], ports: Ports, planes: Iterable[str]) -> Hops:
    """Return the hops of a simple model: one ring on each compute rail of each plane, in the order of the hosts."""
    hops: list[Hop] = []
    unknown: list[Unknown] = []
    between = 0
    names = list(planes)
    for plane in names:
        for rail, of_host in sorted(ports.rails(plane).items(), key=lambda item: natural(item[0])):
            route = Route(RING, f"plane {plane}" if len(names) > 1 else "", rail)
            on_rail = [host for host in order if host in of_host]
            unknown += [
                Unknown(route.words, f"{host} has no port of {rail} in the graph of plane {plane}") for host in order if host not in of_host
            ]
            pairs = list(zip(on_rail, [*on_rail[1:], *on_rail[:1]], strict=True)) if len(on_rail) > 1 else []
            between += len(pairs)
            hops += [Hop(route, of_host[one], of_host[other]) for one, other in pairs]
    return Hops(tuple(hops), tuple(unknown), tuple(order), between)


def reordered(hops: Iterable[Hop], ports: Ports, new_host: Mapping[str, str]) -> list[Hop] | str:
    """Return the hops after each host was replaced by another one, each time with the same rails, or why that is not possible."""
    found = []
    for hop in hops:
        ends = []
        for port in (hop.source, hop.target):
            host = new_host.get(port.host, port.host)
            same = ports.same_on(port, host)
            if same is None:
                return f"{host} has no port {port.label} in the graph of plane {port.plane}, which {port.host} has"
            ends.append(same)
        found.append(Hop(hop.route, *ends))
    return found


def _host(name: str | None, names: Mapping[str, str]) -> str | None:
    return None if name is None else names.get(name) or names.get(short(name))


def _missing(own: Communicator, each: Communicator, label: str) -> Iterator[Unknown]:
    of = f" of {label}" if label else ""
    if each.missing_ranks:
        yield Unknown(f"{ranges(each.missing_ranks)}{of}", "the log does not show its host: use the output of all ranks")
    if each.nranks > 1 and not each.rings:
        yield Unknown(f"the rings{of}", "the log has none: set NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV")
    for channel, edges in own.rings.items():
        absent = [rank for rank in range(own.nranks) if rank not in edges]
        if absent:
            yield Unknown(
                f"ring {channel}{of}",
                f"the log does not show the next rank of {ranges(absent)}: NCCL cuts the list of a long ring, so use the output of all "
                "ranks with NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV",
            )
    for channel, edges in own.trees.items():
        known = {*edges, *edges.values()}
        absent = [rank for rank in range(own.nranks) if rank not in known]
        if absent and own.nranks > 1:
            yield Unknown(f"tree {channel}{of}", f"the log does not show the parent of {ranges(absent)}")


def ranges(ranks: Sequence[int]) -> str:
    """Return ranks as words: "rank 3", "ranks 3-5, 9". ranks: sorted."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and parts[-1][1] == rank - 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    words = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
    return f"rank {words}" if len(ranks) == 1 else f"ranks {words}"


def _routes(own: Communicator, label: str) -> Iterator[tuple[Route, list[tuple[int, int]]]]:
    for channel, edges in own.rings.items():
        yield Route(RING, label, str(channel)), sorted(edges.items())
    for channel, edges in own.trees.items():
        yield Route(TREE, label, str(channel)), _both(edges)


def _both(edges: Edges) -> list[tuple[int, int]]:
    """Return the edges of a tree: data goes up to the root and down again."""
    return [pair for child, parent in sorted(edges.items()) for pair in ((child, parent), (parent, child))]


def _hop(log: RingLog, own: Communicator, ports: Ports, route: Route, edge: tuple[int, int]) -> Hop | Unknown:
    sender, receiver = edge
    found, why = [], []
    for direction, rank in ((SEND, sender), (RECEIVE, receiver)):
        nic = log.nic(own, direction, int(route.channel), sender, receiver)
        if nic.adapter is None:
            why.append(nic.why)
            continue
        port = ports.of_device(str(own.hosts[rank]), nic.adapter.name, nic.adapter.port)
        if isinstance(port, str):
            why.append(port)
        else:
            found.append(port)
    if not why and found[0].plane != found[1].plane:
        why.append(f"its ends are on planes {found[0].plane} and {found[1].plane}")
    if why:
        return Unknown(f"{route.words}, rank {sender} to rank {receiver}", "; ".join(why))
    return Hop(route, *found)
