# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The check mesh.cable: the discovered cables of a mesh against the planned ones. Exchanged cables are one finding with their fix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.link_peers import LinkPeers, Nic
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, nic_label, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_NIC, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import LLDP, readings
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import CableEnd
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import MESH
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.answers import Answer, read_answers
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.plan import end_order, sorted_cables
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.sight import NO_LINK, SWITCH, Sight, Sights, sights
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

declare(
    {
        "mesh.cable": Check(
            "fabric",
            "in a mesh, whether each cable ends at its two planned ports; exchanged cables are one finding",
            "IPv6 echo to all nodes of each rail's link, `lldpcli`, `rdma_rails`",
            "move the plugs as the finding describes, or plan the cables again: `plan.yml --tags mesh`",
            follows=(*NO_NIC, "link.state"),
            repeats=("link.state",),
            sources=(reads.result("neighbors of a mesh"),),
        ),
    }
)

STAGE, CHECK = "fabric", "mesh.cable"
EXPECTED = "each cable at its two planned ports"
RERUN = "Run `ansible-playbook rdma.cluster.fabric` on the control node."


def check_cables(hosts: Mapping[str, Known], folder: RunFolder) -> dict[str, list[Finding]]:
    """Return host → its findings `mesh.cable`; nothing for hosts that are not in a mesh of Ethernet rails."""
    rails = {host: _ethernet(known) for host, known in hosts.items() if known.intent and known.intent["fabric"].get("topology") == MESH}
    if not any(rails.values()):
        return {}
    answers = {host: _with_facts(answer, hosts[host]) for host, answer in read_answers(folder, rails).items()}
    lldp = {host: reading.graph for host, reading in readings(folder, LLDP).items() if reading.graph is not None}
    named = {host: [each.nic for each in of] for host, of in rails.items()}
    strict = frozenset(host for host in rails if (intent := hosts[host].intent) and intent["fabric"].get("mesh") is not None)
    judge = _Judge(rails, sights(answers, named, lldp), strict)
    judge.judge()
    return judge.found


def _ethernet(known: Known) -> list[ResolvedRail]:
    rails = resolve(known.intent["rails"], known.facts) if known.intent else []
    return [rail for rail in rails if rail.rail["link_layer"] == "roce" and "guid" not in rail.rail["nic"]]


def _with_facts(answer: Answer, known: Known) -> Answer:
    """Return the answer of a host; if it has none, its NICs by its facts, so that its neighbors can name it."""
    if answer.peers is not None or known.facts is None:
        return answer
    nics = {name: Nic(netdev.mac.lower() if netdev.mac else None, netdev.pci) for name, netdev in known.facts.netdevs.items()}
    return Answer(LinkPeers({}, nics), answer.why_not)


@dataclass
class _Judge:
    """strict: hosts with rdma_fabric.mesh, where an unseen cable is unknown. Others have not requested discovery, so they get a warning.

    planned: end → the other end of its planned cable. explained: the ends of exchanged cables. reported: other cables in wrong ports.
    """

    rails: Mapping[str, Sequence[ResolvedRail]]
    seen: Sights
    strict: frozenset[str]
    found: dict[str, list[Finding]] = field(default_factory=dict)
    planned: dict[CableEnd, CableEnd] = field(default_factory=dict)
    rail_of: dict[CableEnd, ResolvedRail] = field(default_factory=dict)
    explained: set[CableEnd] = field(default_factory=set)
    reported: set[frozenset[CableEnd | None]] = field(default_factory=set)

    def judge(self) -> None:
        self.found.update({host: [] for host in self.rails})
        by_name: dict[str, list[CableEnd]] = defaultdict(list)
        for host, rails in self.rails.items():
            for rail in rails:
                end = CableEnd(host, nic_label(rail.rail["nic"]))
                by_name[rail.name].append(end)
                self.rail_of[end] = rail
        for ends in by_name.values():
            if len(ends) == 2:
                self.planned.update({ends[0]: ends[1], ends[1]: ends[0]})
            for end in ends if len(ends) == 1 else ():
                seen = "its other end is not on a host of this run"
                self._add(end.host, self.rail_of[end].subject, NOT_APPLICABLE, seen)
        for cycle in self._cycles():
            self._exchanged(cycle)
        well: dict[str, int] = defaultdict(int)
        cables = sorted_cables({frozenset(pair): pair for pair in self.planned.items()}.values())
        # A plug beside its port explains that another cable misses this port.
        for cable in sorted(cables, key=lambda ends: not any(map(self._is_near, ends))):
            if self.explained.isdisjoint(cable):
                self._cable(*cable, well)
        for host, count in well.items():
            self._add(host, "cables", OK, f"{count} {'cable ends' if count == 1 else 'cables end'} at the planned ports")

    def _add(self, host: str, subject: str, status: str, observed: str, remedy: str = "") -> None:
        self.found[host].append(Finding(STAGE, CHECK, host, subject, status, observed, EXPECTED, remedy))

    def _far(self, end: CableEnd) -> CableEnd | None:
        return self.seen.ends[end].far

    def _is_near(self, end: CableEnd) -> bool:
        """Return whether a cable leads to the planned host, but to another port of it."""
        far = self._far(end)
        return far is not None and far != self.planned[end] and far.host == self.planned[end].host

    def _belongs(self, end: CableEnd) -> CableEnd | None:
        """Return the port in which the cable in a wrong port should be; None if its other end is not a planned one, or it is right."""
        far = self._far(end)
        return None if far is None or far == self.planned[end] else self.planned.get(far)

    def _cycles(self) -> Iterator[list[CableEnd]]:
        """Yield ports whose cables are exchanged among them, each with the port of its cable next. Those of one host come first.

        The other ends of the same cables are exchanged too: one of both explains all, and one host is the simpler explanation.
        """
        found = []
        done: set[CableEnd] = set()
        for start in sorted(self.planned, key=end_order):
            cycle = self._cycle(start) if start not in done else []
            done.update(cycle)
            if cycle:
                found.append(cycle)
        found.sort(key=lambda cycle: len({end.host for end in cycle}))
        for cycle in found:
            ends = {each for end in cycle for each in (end, self.planned[end], self._far(end)) if each is not None}
            if self.explained.isdisjoint(ends):
                self.explained |= ends
                yield cycle

    def _cycle(self, start: CableEnd) -> list[CableEnd]:
        cycle, end = [start], self._belongs(start)
        while end is not None and end not in cycle:
            cycle.append(end)
            end = self._belongs(end)
        return cycle if end == start and len(cycle) > 1 else []

    def _exchanged(self, cycle: Sequence[CableEnd]) -> None:
        hosts = list(dict.fromkeys(end.host for end in cycle))
        ports = [self._port(end) if len(hosts) == 1 else self.seen.end(end) for end in cycle]
        listed = f"{', '.join(ports[:-1])} and {ports[-1]}"
        what = f"the cables of {listed} are exchanged" + (f" on {hosts[0]}" if len(hosts) == 1 else "")
        leads = "; ".join(
            f"{self._port(end)} leads to {self._name(self._far(end))}, planned {self._name(self.planned[end])}" for end in cycle
        )
        if len(cycle) == 2:
            step = f"1. Exchange the two plugs in {listed}" + (f" of {hosts[0]}." if len(hosts) == 1 else ".")
        else:
            moves = "; ".join(
                f"from {self.seen.end(end)} to {self.seen.end(to)}" for end, to in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
            )
            step = f"1. Move the plugs: {moves}."
        fars = {self.planned[end].host for end in cycle}
        other = f" Both cables lead to {next(iter(fars))}: you can also exchange them there." if len(cycle) == 2 and len(fars) == 1 else ""
        self._add(hosts[0], f"cables of {listed}", ERROR, f"{what}: {leads}", f"{step}{other} 2. {RERUN}")

    def _cable(self, a: CableEnd, b: CableEnd, well: dict[str, int]) -> None:
        """Judge one cable that no exchange explains. A finding belongs to the host whose port shows it."""
        one, other = self.seen.ends[a], self.seen.ends[b]
        if one.far == b or other.far == a:
            well[a.host] += 1
            well[b.host] += 1
        elif wrong := [end for end in (a, b) if self._far(end) is not None and frozenset((end, self._far(end))) not in self.reported]:
            self._misplaced(wrong[0])
        elif SWITCH in (one.kind, other.kind):
            end = a if one.kind == SWITCH else b
            remedy = f"Connect {self.seen.end(a)} and {self.seen.end(b)} by a cable, or set rdma_fabric.topology to switched."
            self._of_rail(end, WARNING, self.seen.ends[end].words, remedy)
        elif NO_LINK in (one.kind, other.kind):
            end = a if one.kind == NO_LINK else b
            remedy = f"1. Seat the cable at {self.seen.end(a)} and at {self.seen.end(b)}, or replace it. 2. {RERUN}"
            self._of_rail(end, ERROR, f"no cable to {self._name(self.planned[end])}: the port has no link", remedy)
        else:
            self._silent(a, b, one, other)

    def _misplaced(self, end: CableEnd) -> None:
        far, planned = self._far(end), self.planned[end]
        self.reported.add(frozenset((end, far)))
        taken = f", where the cable {self.rail_of[far].name} is planned" if far in self.planned else ""
        at = planned if self._is_near(end) else end
        verb = "Move the plug" if at == planned else "Lead the cable"
        step = f"1. {verb} from {self._name(far)} to {self._name(planned)}."
        replan = "2. If the cables are right, plan them again: `ansible-playbook rdma.cluster.plan --tags mesh`."
        observed = f"{self.seen.end(end)} leads to {self._name(far)}{taken}; planned {self._name(planned)}"
        self._of_rail(at, ERROR, observed, f"{step} {replan} 3. {RERUN}")

    def _silent(self, a: CableEnd, b: CableEnd, one: Sight, other: Sight) -> None:
        look = [f"`ip -6 address show dev {self.seen.netdevs.get(end, 'INTERFACE')}` on {end.host}" for end in (a, b)]
        remedy = (
            f"1. Run {' and '.join(look)}: if no address begins with fe80, enable IPv6 on the interface. 2. Allow ICMPv6 echo requests in "
            "the firewall, and set net.ipv6.icmp.echo_ignore_multicast to 0; or run lldpd on both hosts. "
            f"3. {RERUN}"
        )
        status = WARNING if self.strict.isdisjoint((a.host, b.host)) else UNKNOWN
        self._of_rail(a, status, f"{self.seen.end(a)}: {one.words}; {self.seen.end(b)}: {other.words}", remedy)

    def _of_rail(self, end: CableEnd, status: str, observed: str, remedy: str) -> None:
        self._add(end.host, self.rail_of[end].subject, status, observed, remedy)

    def _port(self, end: CableEnd) -> str:
        netdev = self.seen.netdevs.get(end)
        return end.nic if netdev is None else f"{netdev} ({end.nic})"

    def _name(self, end: CableEnd | None) -> str:
        return "nothing" if end is None else self.seen.end(end)
