# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes between runs and under load: links and nodes that appear, disappear, move, change their rate or come back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.compare import Difference, differences
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.findings import Terms, difference_causes
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import Wanted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.links import link_name, words
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, rate_of

declare(
    {
        "fabric.change": Check(
            "fabric",
            "missing, moved, slower and new links and devices since the last run",
            "the graphs of both runs",
            "as for `fabric.cabling`; each change is reported once, because the next run compares with this one",
            sources=(reads.GRAPH,),
        ),
        "fabric.under_load": Check(
            "pairs",
            "links and devices of a plane that went missing, moved or became slower while pairs were measured",
            "the graph before and after the load",
            "check the cable or switch that the finding names: it fails under load",
            sources=(reads.result("graph under load"),),
        ),
    }
)

CHECK = "fabric.change"
EXPECTED = "the fabric of the previous run"
SCHEMA = 1
CAME = ("extra", "extra node")
#: The end of a missing cable: GUID/port of both ends, the smaller one first → the run that last saw it.
History = Mapping[str, Any]


@dataclass(frozen=True)
class Earlier:
    """The earlier state to compare with, in words. since: "run 1"; then: "in run 1"."""

    check: str
    expected: str
    since: str
    then: str

    @classmethod
    def run(cls, name: str) -> Earlier:
        return cls(CHECK, EXPECTED, f"run {name}", f"in run {name}")


UNDER_LOAD = Earlier("fabric.under_load", "the fabric before the load", "the load began", "before the load")


def parse_history(data: Any) -> History:
    """Return the history in a file. Raises ParseError for a damaged one."""
    gone = data.get("gone", {}) if isinstance(data, Mapping) else data
    if not isinstance(gone, Mapping) or not all(isinstance(run, str) for run in gone.values()):
        raise ParseError(f"not a history of cables: `gone` is {quoted(gone)}")
    return {"schema": SCHEMA, "gone": dict(gone)}


def check_change(
    reporter: Reporter,
    before: Graph,
    wanted: Wanted,
    run: str,
    *,
    history: History | None,
    named: tuple[frozenset[str], frozenset[End]],
    planned: bool,
) -> tuple[list[Cause], dict[str, Any]]:
    """Return the findings fabric.change against an earlier graph, and the history for the next run.

    wanted: the cables of that graph (of_graph). run: its id. named: nodes and ends that another finding already names. planned: whether a
    plan judges the cabling; a change that the plan does not name is then as planned. New and faster links are ok.
    """
    gone = dict((history or {}).get("gone", {}))
    if not before.complete:
        return [reporter.skip(CHECK, f"the discovery of run {run} was not complete", EXPECTED)], {"schema": SCHEMA, "gone": gone}
    all_found = list(differences(wanted, reporter.view))
    causes = [
        *_changes(reporter, before, wanted, all_found, earlier=Earlier.run(run), named=named, status=OK if planned else WARNING),
        *_back(reporter, gone),
    ]
    return causes or [reporter.well(CHECK, f"as in run {run}", EXPECTED)], {
        "schema": SCHEMA,
        "gone": _still_gone(gone, all_found, reporter, run),
    }


def check_under_load(reporter: Reporter, before: Graph, wanted: Wanted) -> list[Cause]:
    """Return the findings fabric.under_load. The view's graph was read after the load, `before` before it.

    wanted: the cables of `before` (of_graph).
    """
    found = list(differences(wanted, reporter.view))
    causes = _changes(reporter, before, wanted, found, earlier=UNDER_LOAD, named=(frozenset(), frozenset()), status=ERROR)
    return causes or [reporter.well(UNDER_LOAD.check, "as before the load", UNDER_LOAD.expected)]


def _changes(
    reporter: Reporter,
    before: Graph,
    wanted: Wanted,
    differing: Sequence[Difference],
    *,
    earlier: Earlier,
    named: tuple[frozenset[str], frozenset[End]],
    status: str,
) -> list[Cause]:
    """Return the changes as causes. status: of missing and moved links."""
    found = [each for each in differing if not named[0] & set(each.nodes) and not named[1] & each.ends]
    came = [each for each in found if each.kind in CAME]
    went = Terms(earlier.check, "before", earlier.expected, status, status, f" since {earlier.since}")
    causes = list(difference_causes([each for each in found if each.kind not in CAME], wanted, reporter, went))
    causes += difference_causes(came, wanted, reporter, Terms(earlier.check, f"there {earlier.then}", earlier.expected, OK, OK))
    return [*causes, *_rates(reporter, before, earlier, named[1])]


def _rates(reporter: Reporter, before: Graph, moment: Earlier, named: Collection[End]) -> Iterator[Cause]:
    view = reporter.view
    for earlier in sorted(before.links, key=lambda link: (link.a, link.b)):
        link = view.link_at.get(earlier.a)
        if link is None or {link.a, link.b} != {earlier.a, earlier.b} or (named and {link.a, link.b} & set(named)):
            continue
        now, then = rate_of(link), rate_of(earlier)
        if now is None or then is None or link.rate_gbps == earlier.rate_gbps:
            continue
        slower = (link.rate_gbps or 0) < (earlier.rate_gbps or 0)
        name = link_name(view, link)
        hosts = [view.host(guid) for guid, _port in (link.a, link.b) if view.is_host(guid)]
        observed = f"{name} runs at {words(now)}, {moment.then} at {words(then)}: {'slower' if slower else 'faster'}"
        remedy = "1. Clean and reseat both ends of the cable. 2. If the link stays slow, replace the cable." if slower else ""
        status, host = WARNING if slower else OK, hosts[0] if hosts else None
        yield reporter.cause(moment.check, status, name, observed, moment.expected, remedy, host=host, ends=(link.a, link.b))


def _back(reporter: Reporter, gone: Mapping[str, str]) -> Iterator[Cause]:
    for link in reporter.view.links:
        run = gone.get(_key(link.a, link.b))
        if run is not None:
            name = link_name(reporter.view, link)
            yield reporter.cause(CHECK, OK, name, f"{name} is back; last seen in run {run}", EXPECTED)


def _still_gone(gone: Mapping[str, str], found: Collection[Difference], reporter: Reporter, run: str) -> dict[str, str]:
    back = {_key(link.a, link.b) for link in reporter.view.links}
    went = {_key(a, b): run for each in found for a, b in each.wanted}
    return {key: last for key, last in sorted({**went, **gone}.items()) if key not in back}


def _key(a: End, b: End) -> str:
    low, high = sorted((a, b))
    return f"{low[0]}/{low[1]} {high[0]}/{high[1]}"
