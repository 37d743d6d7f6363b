# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet's part of the fabric gate: judge the graph of each plane; findings for every host and every plane."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Link, merged
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.change import parse_history
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Plan, parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.rails import leaf_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import STAGE, by_host
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.entry import Reading
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import expected_hcas
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.identity import CHECK, DISCOVERY, EXPECTED
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.judge import Asked, Judged, judge
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.counters import parse_baseline
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.present import places
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import (
    FABRIC,
    GRAPHS,
    LLDP,
    best_graph,
    ethernet,
    folder_of,
    readings,
    refused_answers,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.judge import CHECK as ROUTING
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.planes import host_interfaces, routed_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import routing_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, Expected, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import MESH
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import PLANE, RunFolder

SILENT = "no LLDP neighbor reported its name on any of its rails"


@dataclass
class Ports:
    """An Ethernet plane. of_hosts: host → why it does not report neighbors. why_not: why there is no graph."""

    expected: list[Expected] = field(default_factory=list)
    graph: Graph | None = None
    read_at: float = 0.0
    why_not: str | None = None
    of_hosts: dict[str, str] = field(default_factory=dict)


def ethernet_planes(folder: RunFolder, hosts: Mapping[str, Known]) -> dict[str, Ports]:
    """Return each plane with hardware RoCE rails. A host reports only its own interfaces."""
    neighbors = readings(folder, LLDP)
    found: dict[str, Ports] = {}
    for host, known in hosts.items():
        if known.intent and known.facts:
            for plane, rails in ethernet(known.intent, known.facts).items():
                ports = found.setdefault(plane, Ports())
                for rail in rails:
                    role = str(rail.rail.get("role") or "compute")
                    rate_gbps = rail.rail.get("rate_gbps")
                    ports.expected.append(
                        Expected(host, rail.name, f"{host} {rail.netdev}", rail.netdev, rate_gbps=rate_gbps, plane=plane, role=role)
                    )
    for plane, ports in found.items():
        _join(plane, ports, neighbors)
    return found


def _join(plane: str, ports: Ports, neighbors: Mapping[str, Reading]) -> None:
    rails = {str(each.guid) for each in ports.expected}
    graphs = []
    for host in dict.fromkeys(each.host for each in ports.expected):
        reading = neighbors.get(host)
        graph = _of_rails(reading.graph, rails) if reading is not None and reading.graph is not None else None
        if reading is None or graph is None or (graph.problems and not graph.nodes):
            ports.of_hosts[host] = "; ".join(graph.problems) if graph is not None else "its LLDP neighbors were not read"
        else:
            graphs.append(graph)
            ports.read_at = max(ports.read_at, reading.read_at)
    if not graphs:
        ports.why_not = "no host reports LLDP neighbors"
    elif not any(graph.links for graph in graphs):
        ports.why_not = SILENT
    else:
        graph = merged(plane, graphs)
        silent = (
            [f"{len(ports.of_hosts)} hosts do not report LLDP neighbors: {', '.join(list(ports.of_hosts)[:4])}"] if ports.of_hosts else []
        )
        ports.graph = replace(graph, complete=graph.complete and not silent, problems=[*graph.problems, *silent])


def _of_rails(graph: Graph, rails: set[str]) -> Graph:
    """Return the neighbors of a host's rails. Its other interfaces do not belong to this plane."""
    links: list[Link] = [link for link in graph.links if {link.a[0], link.b[0]} & rails]
    ends = {end[0] for link in links for end in (link.a, link.b)}
    return replace(graph, nodes={guid: node for guid, node in graph.nodes.items() if guid in ends}, links=links)


NO_FABRIC = "no rail on a fabric that can be discovered: Soft-RoCE has no fabric, and a virtual function is not an InfiniBand node"
NOBODY = "no host of this run has an active port on it"
LLDP_REMEDY = (
    "1. On the hosts, install and start lldpd. 2. On the switches, enable LLDP on the host ports. "
    "3. On a host, run `lldpcli show neighbors`: it must list the switch. Then rerun."
)


@dataclass(frozen=True)
class Plane:
    """A plane to judge. graph: None if it could not be read. why_not: why that is acceptable, None if it is a fault."""

    expected: Sequence[Expected]
    graph: Graph | None
    read_at: float = 0.0
    why_not: str | None = None
    of_hosts: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Found:
    """Findings by host, and findings on each plane as a whole; their host is "plane NAME"."""

    hosts: dict[str, list[Finding]]
    planes: dict[str, list[Finding]]


@dataclass(frozen=True)
class FabricGate:
    """known: intent and facts of the hosts of the stage. run: the id of this run.

    read_plan: returns the text of a plan file, or raises ParseError.
    """

    folder: RunFolder
    known: Mapping[str, Known]
    run: str
    read_plan: Callable[[str], str]

    def judge(self) -> Found:
        """Return all findings. Store graphs, counter baselines and the history of changes in the run folder."""
        found = Found({host: [] for host in self.known}, {})
        for name, plane in self.planes.items():
            hosts = list(dict.fromkeys(each.host for each in plane.expected))
            if plane.graph is None:
                self._not_read(name, plane, hosts, found)
            else:
                self._read(name, plane, plane.graph, hosts, found)
        self._without_graph(found)
        self._routed(found)
        for host, findings in refused_answers(self.folder, STAGE, CHECK, GRAPHS).items():
            found.hosts.setdefault(host, []).extend(findings)
        graphs = [plane.graph.to_dict() for plane in self.planes.values() if plane.graph is not None]
        if graphs:
            self.folder.write(FABRIC, json.dumps({"schema": 1, "planes": graphs}) + "\n")
        for host, findings in found.hosts.items():
            if not findings:
                findings.append(Finding(STAGE, CHECK, host, "host", NOT_APPLICABLE, NO_FABRIC, EXPECTED))
        return found

    @cached_property
    def planes(self) -> dict[str, Plane]:
        """Return the planes by name: on InfiniBand those with rails of hosts, on Ethernet those with readable interfaces of hosts."""
        found = {}
        for name, expected in expected_hcas(self.known).items():
            read = best_graph(readings(self.folder, folder_of(GRAPHS, name)))
            found[name] = Plane(expected, replace(read[0], plane=name), read[1]) if read is not None else Plane(expected, None)
        for name, ports in ethernet_planes(self.folder, self.known).items():
            found.setdefault(name, Plane(ports.expected, ports.graph, ports.read_at, ports.why_not, ports.of_hosts))
        return dict(sorted(found.items()))

    def _not_read(self, name: str, plane: Plane, hosts: Sequence[str], found: Found) -> None:
        if plane.why_not is None:
            remedy = "1. Fix the findings of the link stage: at least one host of the run needs an active port on this plane. 2. Rerun."
            found.planes[name] = [Finding(STAGE, CHECK, f"{PLANE}{name}", DISCOVERY, UNKNOWN, NOBODY, EXPECTED, remedy)]
        elif (required := self._required(name)) or plane.why_not == SILENT:
            # If LLDP runs on the hosts but no neighbor answers, the cables are unchecked: a warning, or unknown if the intent requires the
            # check.
            status, observed = UNKNOWN if required else WARNING, f"{plane.why_not}{required}"
            found.planes[name] = [Finding(STAGE, CHECK, f"{PLANE}{name}", DISCOVERY, status, observed, EXPECTED, LLDP_REMEDY)]
        for host in hosts:
            why = plane.of_hosts.get(host) or plane.why_not or f"plane {name} was not read: {NOBODY}"
            found.hosts[host].append(Finding(STAGE, CHECK, host, f"plane {name}", NOT_APPLICABLE, why, EXPECTED))

    def _without_graph(self, found: Found) -> None:
        """Add findings on unreadable plans of planes without a graph, and on planes whose plan or ratio cannot be compared."""
        intents = [known.intent for known in self.known.values() if known.intent]
        with_rails = {str(rail.get("plane") or "default") for intent in intents for rail in intent["rails"]}
        for name in sorted({plane for intent in intents for plane in intent["fabric"]["planes"]}):
            if name in self.planes and self.planes[name].graph is not None:
                continue
            findings = self._plan(name)[1]
            if name not in self.planes and name in with_rails and (required := self._required(name)):
                observed = f"{NO_FABRIC}{required}"
                remedy = (
                    f"Remove it from rdma_fabric.planes.{name}, or fix the findings of the driver stage: "
                    "it found no NIC on the rails of this plane."
                )
                findings.append(Finding(STAGE, CHECK, f"{PLANE}{name}", DISCOVERY, UNKNOWN, observed, EXPECTED, remedy))
            if findings:
                found.planes[name] = [*findings, *found.planes.get(name, [])]

    def _routed(self, found: Found) -> None:
        """Add the findings on the routers of planes with routing."""
        intents = {host: known.intent for host, known in self.known.items() if known.intent}
        wanted = sorted({name for intent in intents.values() for name, plane in intent["fabric"]["planes"].items() if plane.get("routing")})
        if not wanted:
            return
        try:
            planes = routed_planes(intents, self.read_plan, host_interfaces(self.known))
        except (RoutingError, ParseError) as error:
            remedy = (
                "Correct the routing, the cabling plan or the rails: `ansible-playbook rdma.cluster.plan --tags routing` shows all of it."
            )
            for name in wanted:
                subject = f"rdma_fabric.planes.{name}.routing"
                finding = Finding(STAGE, ROUTING, f"{PLANE}{name}", subject, UNKNOWN, str(error), "a plan of the routing", remedy)
                found.planes.setdefault(name, []).append(finding)
            return
        for plane in planes:
            found.planes.setdefault(plane.name, []).extend(routing_findings(self.folder, plane, planes, intents))

    def _required(self, name: str) -> str:
        """Return words for the intent's settings of a plane that cannot be checked without its graph; "" if there are none."""
        keys = [f"rdma_fabric.planes.{name}.{key}" for key in self._checked_by_graph(name) if self._setting(name, key) is not None]
        return f"; {' and '.join(keys)} cannot be checked" if keys else ""

    def _checked_by_graph(self, name: str) -> tuple[str, ...]:
        """Return the settings that only a graph confirms. Soft-RoCE has none, but fabric.bgp compares the cables of its routers."""
        rails = (rail for known in self.known.values() if known.intent for rail in known.intent["rails"])
        soft = all(rail.get("soft") for rail in rails if str(rail.get("plane") or "default") == name)
        return ("ratio",) if soft and self._setting(name, "routing") is not None else ("plan", "ratio")

    def _read(self, name: str, plane: Plane, graph: Graph, hosts: Sequence[str], found: Found) -> None:
        plan, wrong = self._plan(name)
        judged = self._judged(name, plane, graph, plan)
        of_hosts, others = by_host(judged.findings, hosts)
        found.planes[name] = [*wrong, *(replace(each, host=f"{PLANE}{name}") for each in others)]
        view = View(graph, plane.expected, mesh=self._mesh(hosts))
        for host, findings in of_hosts.items():
            found.hosts[host] += [*findings, _seen(view, host, plane)]
        if graph.complete:
            self._keep(name, graph, judged)

    def _judged(self, name: str, plane: Plane, graph: Graph, plan: Plan | None) -> Judged:
        before = self.folder.earlier(_file(name, "graph"), Graph.from_dict)
        run = before[0] if before is not None else ""
        earlier_baseline = self.folder.of_run(run, _file(name, "baseline"), parse_baseline) if run else None
        earlier_history = self.folder.of_run(run, _file(name, "history"), parse_history) if run else None
        elsewhere = {
            guid: place
            for other, its in self.planes.items()
            if other != name and its.graph is not None
            for guid, place in places(View(its.graph, its.expected)).items()
        }
        asked = Asked(
            plan=plan,
            expected=plane.expected,
            ratio=self._setting(name, "ratio"),
            elsewhere=elsewhere,
            before=before[1] if before is not None else None,
            before_run=run,
            baseline=earlier_baseline,
            history=earlier_history,
            seconds=plane.read_at,
            run=self.run,
            mesh=self._mesh({each.host for each in plane.expected}),
        )
        return judge(graph, asked)

    def _mesh(self, hosts: Iterable[str]) -> bool:
        """Return whether the rails of a plane's hosts are cables between them."""
        return any(intent["fabric"].get("topology") == MESH for host in hosts if (intent := self.known[host].intent))

    def _plan(self, name: str) -> tuple[Plan | None, list[Finding]]:
        """Return the cabling plan of a plane, if the intent has a readable one, and findings."""
        file = self._setting(name, "plan")
        if file is None:
            return None, []
        try:
            return parse_plan(self.read_plan(file)), []
        except ParseError as error:
            subject, remedy = f"rdma_fabric.planes.{name}.plan", f"Correct {file} on the control node."
            expected = "a cabling plan as described in docs/fabric.md"
            observed = str(error) if file in str(error) else f"{file}: {error}"
            return None, [Finding(STAGE, "intent.value", f"{PLANE}{name}", subject, ERROR, observed, expected, remedy)]

    def _setting(self, plane: str, key: str) -> Any:
        """Return the setting of a plane: that of the first host whose intent has it."""
        intents = [known.intent for known in self.known.values() if known.intent]
        planes = (intent["fabric"]["planes"].get(plane) for intent in intents)
        values = (dict(of).get(key) for of in planes if of is not None)
        return next((value for value in values if value is not None), None)

    def _keep(self, name: str, graph: Graph, judged: Judged) -> None:
        for what, data in (("graph", graph.to_dict()), ("baseline", judged.baseline), ("history", judged.history)):
            self.folder.write(_file(name, what), json.dumps(data) + "\n")


def _file(plane: str, what: str) -> str:
    return f"fabric/{plane}/{what}.json"


def _there(view: View, hca: str) -> End | None:
    """Return the leaf port of an HCA; in a mesh, also the port of the other host."""
    place = leaf_of(view, hca)
    if place is None and view.mesh:
        return next((view.peers[hca, number] for number in view.linked.get(hca, ())), None)
    return None if place is None else place[1]


def _seen(view: View, host: str, plane: Plane) -> Finding:
    """Return the finding with a host's place in the graph. Without it, a good host would have no finding."""
    own = sorted(view.of_host.get(host, ()), key=view.name)
    spots = [f"{view.rail(guid) or view.name(guid)} on {view.end(there)}" for guid in own if (there := _there(view, guid)) is not None]
    subject = view.plane
    if spots:
        return Finding(STAGE, CHECK, host, subject, OK, ", ".join(spots), EXPECTED)
    why = plane.of_hosts.get(host) or f"not found in the graph: see the findings of {view.plane}"
    return Finding(STAGE, CHECK, host, subject, NOT_APPLICABLE, why, EXPECTED)
