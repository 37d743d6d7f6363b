# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cabling differences as findings with readable names: against the plan (fabric.cabling) or an earlier run (fabric.change)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.compare import Difference, differences
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import Wanted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter, counted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import NAMED, some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

declare(
    {
        "fabric.cabling": Check(
            "fabric",
            "every cable against the plan; without a plan, every planned HCA: present, on its plane, with a link",
            "the graph; `rdma_fabric.planes.NAME.plan`, `rdma_rails`",
            "move the cable that the finding names, or correct the plan",
            sources=(reads.GRAPH,),
        ),
    }
)

CHECK = "fabric.cabling"
#: Kinds of differences that show as something missing.
ABSENT = frozenset({"cut off", "switch gone", "host gone", "leaf empty", "missing"})


@dataclass(frozen=True)
class Terms:
    """The wording of a difference. was: "planned " or "before ". since: " since run …".

    least, worst: the statuses of the least and the worst difference.
    """

    check: str
    was: str
    expected: str
    least: str
    worst: str
    since: str = ""
    alternative: str = ""


PLANNED = Terms(CHECK, "planned", "cabled as planned", WARNING, ERROR, "", ", or correct the plan")


@dataclass(frozen=True)
class DifferenceText:
    """A difference in words."""

    subject: str
    observed: str
    remedy: str
    least: bool = False


def check_cabling(wanted: Wanted, reporter: Reporter) -> list[Cause]:
    """Return the findings fabric.cabling: one for each cause, or one ok if there is none."""
    found = list(difference_causes(differences(wanted, reporter.view), wanted, reporter, PLANNED))
    if not found:
        cables = len(wanted.peers) // 2
        return [reporter.well(CHECK, f"all {cables} planned cables are in place", PLANNED.expected)]
    return found


def difference_causes(
    found: Iterator[Difference] | Sequence[Difference], wanted: Wanted, reporter: Reporter, terms: Terms
) -> Iterator[Cause]:
    """Yield differences as findings."""
    words = _Words(wanted, reporter.view, terms)
    for each in sorted(found, key=words.order):
        text = words.text(each)
        yield reporter.cause(
            terms.check,
            terms.least if text.least else terms.worst,
            text.subject,
            text.observed,
            terms.expected,
            text.remedy,
            host=words.host(each),
            nodes=each.nodes,
            ends=each.ends,
            absence=each.kind in ABSENT,
        )


class _Words:
    """Words for differences."""

    def __init__(self, wanted: Wanted, view: View, terms: Terms) -> None:
        self.wanted, self.view, self.terms = wanted, view, terms

    def order(self, each: Difference) -> tuple[object, ...]:
        return each.kind, [natural(self.name(node)) for node in each.nodes]

    def text(self, each: Difference) -> DifferenceText:
        ways = {
            "cut off": self._cut_off, "switch gone": self._switch_gone, "host gone": self._host_gone, "leaf empty": self._leaf_empty,
            "replaced": self._replaced, "exchanged": self._exchanged, "missing": self._missing, "swapped": self._swapped,
            "moved": self._moved, "ports": self._ports, "extra node": self._extra, "extra": self._extra,
        }  # fmt: skip
        return ways[each.kind](each)

    def host(self, each: Difference) -> str | None:
        """Return the host that a difference concerns; for two exchanged hosts, the first one."""
        if each.kind in ("switch gone", "leaf empty", "cut off", "exchanged"):
            return None
        if each.kind == "swapped" and each.nodes[0] not in self.view.nodes and each.nodes[0] not in self.wanted.switches:
            return min(each.nodes, key=natural)
        hosts = [self.owner(node) for node in each.nodes if self.is_hca(node)]
        return min(hosts, key=natural, default=None)

    def is_hca(self, node: str) -> bool:
        return node in self.wanted.hosts or self.view.is_host(node)

    def owner(self, node: str) -> str:
        return self.wanted.hosts.get(node) or self.view.host(node)

    def name(self, node: str) -> str:
        return self.wanted.names.get(node) or (self.view.name(node) if node in self.view.nodes else node)

    def end(self, end: End) -> str:
        return self.wanted.end(end) if end[0] in self.wanted.names else self.view.end(end)

    def names(self, nodes: Sequence[str]) -> str:
        return some(sorted({self.name(node) for node in nodes}, key=natural))

    def cable(self, pair: tuple[End, End]) -> str:
        a, b = sorted(pair, key=lambda end: (not self.is_hca(end[0]), natural(self.end(end))))
        return f"{self.end(a)} to {self.end(b)}"

    def cables(self, pairs: Sequence[tuple[End, End]]) -> str:
        return some(sorted({self.cable(pair) for pair in pairs}, key=natural))

    def _cut_off(self, each: Difference) -> DifferenceText:
        seen = len(self.wanted.switches) - len(each.nodes)
        observed = f"{seen} of {len(self.wanted.switches)} switches found{self.terms.since}; missing: {self.names(each.nodes)}"
        remedy = (
            "The discovering host is cut off, or the fabric is split. 1. Check the port and the leaf of that host. "
            "2. Run the discovery from another host."
        )
        return DifferenceText("the switches", observed, remedy)

    def _switch_gone(self, each: Difference) -> DifferenceText:
        name = self.name(each.nodes[0])
        observed = f"{name} is gone{self.terms.since}, with {counted(each.wanted, 'cable')}"
        if len(each.nodes) > 1:
            observed += f" and {counted(each.nodes[1:], 'HCA')} with no other link: {self.names(each.nodes[1:])}"
        remedy = f"1. Check that {name} has power and has booted. 2. Check its cables{self.terms.alternative}."
        return DifferenceText(name, observed, remedy)

    def _host_gone(self, each: Difference) -> DifferenceText:
        name, owner = self.names(each.nodes), self.owner(each.nodes[0])
        places = some(sorted({self.end(b) for _a, b in each.wanted}, key=natural))
        observed = f"{name} is not in the fabric{self.terms.since}; {self.terms.was} {places}{self._port_states(each)}"
        return DifferenceText(
            name,
            observed,
            f"1. Check that {owner} runs. 2. On {owner}, run `ibstat`: the port must be up. "
            f"3. Check the cable at {places}{self.terms.alternative}.",
        )

    def _leaf_empty(self, each: Difference) -> DifferenceText:
        name = self.name(each.nodes[0])
        observed = f"{name} has lost all its hosts{self.terms.since}: {self.names(each.nodes[1:])}"
        return DifferenceText(name, observed, f"Check what these hosts share: power, the rack, or disabled ports of {name}.")

    def _replaced(self, each: Difference) -> DifferenceText:
        old, new = self.name(each.nodes[0]), each.nodes[1]
        words = f"{self.view.name(new)} ({new})" if new not in self.view.name(new) else new
        observed = f"{words} is in the place of {old}"
        remedy = f"If {old} was replaced: give the new switch its name, and write the new GUID into the plan."
        return DifferenceText(old, observed, remedy, least=True)

    def _exchanged(self, each: Difference) -> DifferenceText:
        a, b = sorted((self.name(node) for node in each.nodes), key=natural)
        return DifferenceText(
            f"{a} and {b}",
            f"{a} is cabled where {b} is {self.terms.was}, and {b} where {a} is",
            "Swap their names, or swap their GUIDs in the plan.",
        )

    def _missing(self, each: Difference) -> DifferenceText:
        pairs = _once(each.wanted)
        subject = self.cable(pairs[0]) if len(pairs) == 1 else self._between(each)
        observed = f"no link: {self.cables(pairs)}{self.terms.since}{self._port_states(each)}"
        return DifferenceText(
            subject,
            observed,
            f"Check that the cable is seated, both ports are enabled (`ibportstate`) and the optics are lit{self.terms.alternative}.",
        )

    def _between(self, each: Difference) -> str:
        names = sorted({self.name(node) for node in each.nodes}, key=natural)
        return names[0] if len(each.nodes) == 1 else some(names)

    def _port_states(self, each: Difference) -> str:
        """Return the states that the ports report, if any."""
        ports = {
            end: port for pair in each.wanted for end in pair if (port := self.view.port(end)) is not None and end not in self.view.peers
        }
        states = {
            f"{self.end(end)} is {port.state}{', ' + port.physical if port.physical else ''}" for end, port in ports.items() if port.state
        }
        return f"; {some(sorted(states, key=natural))}" if states else ""

    def _swapped(self, each: Difference) -> DifferenceText:
        leaves = {end[0] for pair in each.wanted for end in pair if end[0] in self.wanted.switches}
        places = [self._place(pair) for pair in map(self._near_first, _once(each.wanted))]
        names = some([node if node not in self.wanted.names else self.name(node) for node in sorted(each.nodes, key=natural)])
        hcas = any(self.is_hca(end[0]) for pair in each.wanted for end in pair)
        subject = " and ".join(sorted((node if hcas else self.name(node) for node in each.nodes), key=natural)) or names
        places = sorted(places, key=natural)
        observed = f"swapped: {'; '.join(places[:NAMED])}" + (f"; and {len(places) - NAMED} more" if len(places) > NAMED else "")
        return DifferenceText(subject, observed, f"Swap the cables{self.terms.alternative}.", least=hcas and len(leaves) == 1)

    def _near_first(self, pair: tuple[End, End]) -> tuple[End, End]:
        a, b = sorted(pair, key=lambda end: (not self.is_hca(end[0]), natural(self.end(end))))
        return a, b

    def _place(self, pair: tuple[End, End]) -> str:
        a, b = pair
        there = self.view.peers.get(a)
        return f"{self.end(a)} is on {self.end(there) if there else 'nothing'}, {self.terms.was} {self.end(b)}{self._rails(a, b, there)}"

    def _rails(self, end: End, planned: End, there: End | None) -> str:
        """Return words that the leaf belongs to another rail, if most of its wanted HCAs are of one rail."""
        if there is None or not self.is_hca(end[0]) or there[0] == planned[0]:
            return ""
        here, other = self._rail_of_leaf(planned[0]), self._rail_of_leaf(there[0])
        return f": a leaf of {other}, not of {here}" if here and other and here != other else ""

    def _rail_of_leaf(self, leaf: str) -> str | None:
        rails = Counter(
            rail for (guid, _n), (other, _m) in self.wanted.peers.items()
            if other == leaf and guid in self.view.nodes and self.view.is_host(guid) and (rail := self.view.rail(guid))
        )  # fmt: skip
        most = rails.most_common(1)
        return most[0][0] if most and 2 * most[0][1] > sum(rails.values()) else None

    def _moved(self, each: Difference) -> DifferenceText:
        places = sorted({self._place(pair) for pair in each.wanted}, key=natural)
        same = all((there := self.view.peers.get(a)) is not None and there[0] == b[0] for a, b in each.wanted)
        return DifferenceText(self.names(each.nodes), "; ".join(places), f"Move the cable{self.terms.alternative}.", least=same)

    def _ports(self, each: Difference) -> DifferenceText:
        a, b = sorted((self.name(node) for node in each.nodes), key=natural)
        observed = f"{counted(each.found, 'cable')} between {a} and {b} on other ports: {self.cables(each.found)}"
        return DifferenceText(
            f"{a} and {b}",
            f"{observed}; {self.terms.was} {self.cables(each.wanted)}",
            f"This costs no bandwidth. Move the cables{self.terms.alternative}.",
            least=True,
        )

    def _extra(self, each: Difference) -> DifferenceText:
        names = self.names(each.nodes) if each.kind == "extra node" else " and ".join(sorted(map(self.name, each.nodes), key=natural))
        observed = f"not {self.terms.was}: {self.cables(each.found)}" if each.found else f"{names} is not {self.terms.was}"
        return DifferenceText(names, observed, "Add it to the plan, or remove it.", least=True)


def _once(pairs: Iterable[tuple[End, End]]) -> list[tuple[End, End]]:
    """Return each cable once, independent of the end from which it was found."""
    return sorted({(a, b) if a <= b else (b, a) for a, b in pairs})
