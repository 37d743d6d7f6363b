# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links that are bad: not active, fewer lanes or slower than planned, than both ends support, or than similar links."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Link
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter, counted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.faults import faults
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, Rate, View, rate_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

declare(
    {
        "fabric.link": Check(
            "fabric",
            "every link: active, and at the width and speed of the plan, of both ends' maximum, and of similar links",
            "`iblinkinfo`, `ibnetdiscover`",
            "check for a forced speed or width, the cable's type and both ends; if no link is active, start a subnet manager",
            sources=(reads.GRAPH, reads.result("iblinkinfo")),
        ),
    }
)

CHECK = "fabric.link"
ALL = "all links"
EXPECTED = "every link active, at the width and speed that its ends support and similar links have"
#: The port states before a subnet manager has activated the port.
NOT_ACTIVE = ("INIT", "ARMED")
#: With at least this many bad links, if they are most links of a node, the node is the cause.
SEVERAL = 3


@dataclass(frozen=True)
class Bad:
    """A bad link. status: ERROR or WARNING. words: its fault, without its name."""

    link: Link
    status: str
    words: str
    waits: bool = False


def check_links(reporter: Reporter) -> list[Cause]:
    """Return the findings fabric.link: one for each bad link, or one for the node that most of them share."""
    view = reporter.view
    bad = sorted(
        (found for link in view.links if (found := judge(view, link)) is not None), key=lambda each: natural(link_name(view, each.link))
    )
    if view.links and sum(each.waits for each in bad) == len(view.links):
        return [_no_manager(reporter)]
    causes = [*_shared(reporter, bad), *_unrated(reporter)]
    return causes or [reporter.well(CHECK, f"{len(view.links)} links, {_rates(view)}", EXPECTED)]


def link_name(view: View, link: Link) -> str:
    """ "node17 mlx5_3 to leaf3 port 14"."""
    a, b = sorted((link.a, link.b), key=lambda end: (view.is_switch(end[0]), natural(view.end(end))))
    return f"{view.end(a)} to {view.end(b)}"


def judge(view: View, link: Link) -> Bad | None:
    """Return the fault of a link, if any."""
    found, rate = faults(view, link), rate_of(link)
    states = [f"{view.end(end)} is {port.state}" for end, port in found.not_up if port.state in NOT_ACTIVE]
    if states:
        return Bad(link, ERROR, f"not active: {some(sorted(states, key=natural))}", waits=True)
    if rate is None:
        return None
    seen = f"runs at {words(rate)}"
    if found.could_be is not None:
        return Bad(link, ERROR, f"{seen}, both ends support {words(found.could_be)}")
    if found.planned_gbps is not None:
        return Bad(link, ERROR, f"{seen}, {link.rate_gbps:g} Gb/s; planned {found.planned_gbps:g}")
    if found.usual is None:
        return None
    of_host = "host" in view.kind(link) and rate[0] >= found.usual[0]
    return Bad(link, WARNING if of_host else ERROR, f"{seen}, most similar links ({' to '.join(view.kind(link))}) at {words(found.usual)}")


def words(rate: Rate) -> str:
    return f"{rate[0]}X {rate[1]}"


def _shared(reporter: Reporter, bad: Sequence[Bad]) -> Iterator[Cause]:
    """Yield bad links as findings. Those of one node are one finding if they are most of its links."""
    view, left = reporter.view, list(bad)
    degrees = Counter(guid for link in view.links for guid, _port in (link.a, link.b))
    while left:
        by_node: dict[str, list[Bad]] = defaultdict(list)
        for each in left:
            for guid, _port in (each.link.a, each.link.b):
                by_node[guid].append(each)
        most = [node for node, those in by_node.items() if len(those) >= SEVERAL and 2 * len(those) > degrees[node]]
        if not most:
            break
        node = min(most, key=lambda guid: (-len(by_node[guid]), natural(view.name(guid))))
        yield _of_node(reporter, node, by_node[node])
        taken = {id(each) for each in by_node[node]}
        left = [each for each in left if id(each) not in taken]
    yield from (_of_link(reporter, each) for each in left)


def _of_node(reporter: Reporter, node: str, bad: Sequence[Bad]) -> Cause:
    view = reporter.view
    status = ERROR if any(each.status == ERROR for each in bad) else WARNING
    names = some(sorted((link_name(view, each.link) for each in bad), key=natural))
    observed = f"{len(bad)} links of {view.name(node)}: {bad[0].words} ({names})"
    remedy = f"On {view.name(node)}, check: 1. the port settings (enabled speeds and widths, splits); 2. firmware and power; 3. the cables."
    return reporter.cause(
        CHECK, status, view.name(node), observed, EXPECTED, remedy,
        host=view.host(node) if view.is_host(node) else None, nodes=[node],
        ends=[end for each in bad for end in (each.link.a, each.link.b)],
    )  # fmt: skip


def _of_link(reporter: Reporter, bad: Bad) -> Cause:
    view, name = reporter.view, link_name(reporter.view, bad.link)
    hosts = [view.host(guid) for guid, _port in (bad.link.a, bad.link.b) if view.is_host(guid)]
    remedy = (
        f"Run `sminfo` and read the log of the subnet manager of {view.plane}: it has not activated this link."
        if bad.waits
        else "1. Check both ends for a forced speed or width (`ibportstate`). 2. Check that the cable supports the rate. "
        "3. Clean and reseat both ends; if that does not help, replace the cable."
    )
    return reporter.cause(
        CHECK, bad.status, name, f"{name} {bad.words}" if not bad.waits else bad.words, EXPECTED, remedy,
        host=hosts[0] if hosts else None, ends=(bad.link.a, bad.link.b),
    )  # fmt: skip


def _no_manager(reporter: Reporter) -> Cause:
    remedy = f"Start a subnet manager on {reporter.view.plane}; check with `sminfo` that it answers."
    observed = "no link is active: no subnet manager has configured them"
    return reporter.cause(CHECK, ERROR, ALL, observed, EXPECTED, remedy)


def waits_for_manager(cause: Cause) -> bool:
    """Return whether the finding is that no subnet manager has activated any link."""
    return cause.finding.check == CHECK and cause.finding.subject == ALL


def _unrated(reporter: Reporter) -> Iterator[Cause]:
    """Yield a finding on links without a rate, if others have one. If none has, the source does not report rates (LLDP)."""
    view = reporter.view
    unrated = [link for link in view.links if rate_of(link) is None]
    if unrated and len(unrated) < len(view.links):
        names = some(sorted((link_name(view, link) for link in unrated), key=natural))
        remedy = "Query both ends: `ibportstate LID PORT query`."
        ends: list[End] = [end for link in unrated for end in (link.a, link.b)]
        observed = f"{counted(unrated, 'link')} without a width or speed: {names}"
        yield reporter.cause(CHECK, UNKNOWN, "rates", observed, EXPECTED, remedy, ends=ends)


def _rates(view: View) -> str:
    kinds = [f"{' to '.join(kind)} {words(rate)}" for kind, rate in sorted(view.usual_rates.items())]
    return "; ".join(kinds) or "rates not reported"
