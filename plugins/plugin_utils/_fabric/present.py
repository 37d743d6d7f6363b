# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether every planned HCA is in the graph of its plane, with a link. Needs only the rails of the intent, no cabling plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import Wanted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter, counted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

CHECK = "fabric.cabling"
EXPECTED = "every planned HCA in the graph of its plane"
SEVERAL = 3


def places(view: View) -> dict[str, str]:
    """Return HCA → its place in words, for the other planes."""
    return {
        guid: f"{view.plane} ({view.end(there)})"
        for (guid, _number), there in view.peers.items()
        if view.is_host(guid) and view.is_switch(there[0])
    }


def check_present(
    reporter: Reporter, expected: Sequence[Expected], elsewhere: Mapping[str, str], before: Wanted | None, named: Collection[str]
) -> list[Cause]:
    """Return the findings fabric.cabling on missing HCAs: on another plane, without a link, missing with their leaf, or missing alone.

    elsewhere: HCA → its place on another plane. before: the cabling in an earlier run. named: nodes that another finding names.
    """
    view = reporter.view
    of_view = {(view.host(guid), view.rail(guid)): guid for guid in view.hcas}
    causes, gone = [], []
    for each in sorted(expected, key=lambda each: (natural(each.host), natural(each.rail))):
        guid = each.guid if each.guid in view.nodes else of_view.get((each.host, each.rail))
        if (guid or each.guid) in named or (guid is None and each.guid is None and each.device is None):
            continue
        if guid is not None:
            if guid not in view.linked:
                causes.append(_no_link(reporter, each, guid))
        elif each.guid is not None and each.guid in elsewhere:
            causes.append(_elsewhere(reporter, each, elsewhere[each.guid]))
        else:
            gone.append(each)
    causes += _gone(reporter, gone, expected, before)
    return causes or [reporter.well(CHECK, f"all {counted(expected, 'planned HCA')} are present", EXPECTED)]


def _no_link(reporter: Reporter, each: Expected, guid: str) -> Cause:
    states = [f"port {port.number} is {port.state}, {port.physical}" for port in reporter.view.nodes[guid].ports.values() if port.state]
    remedy = f"1. Check its cable. 2. On {each.host}, run `ibstat {each.device or ''}`."
    observed = f"{each.words} has no link{': ' if states else ''}{'; '.join(states)}"
    return reporter.cause(CHECK, ERROR, each.words, observed, EXPECTED, remedy, host=each.host, nodes=[guid], absence=True)


def _elsewhere(reporter: Reporter, each: Expected, place: str) -> Cause:
    observed = f"{each.words} is on {place}, planned {reporter.view.plane}"
    remedy = f"Move its cable, or correct `plane` of {each.rail} for {each.host}."
    return reporter.cause(CHECK, ERROR, each.words, observed, EXPECTED, remedy, host=each.host, nodes=[each.guid or ""])


def _gone(reporter: Reporter, gone: list[Expected], expected: Sequence[Expected], before: Wanted | None) -> Iterator[Cause]:
    """Yield causes for missing HCAs. Those of one missing leaf, most of a rail, or those of one host are one cause."""
    by_leaf: dict[str, list[Expected]] = defaultdict(list)
    for each in gone:
        leaf = _leaf_before(reporter.view, each, before)
        if leaf is not None:
            by_leaf[leaf].append(each)
    for leaf, those in by_leaf.items():
        name = before.names[leaf] if before is not None else leaf
        yield _together(reporter, those, name, f"{name} is missing, and with it {counted(those, 'HCA')}", [leaf])
        gone = _without(gone, those)
    of_rail: dict[str, list[Expected]] = defaultdict(list)
    for each in gone:
        of_rail[each.rail].append(each)
    for rail, those in of_rail.items():
        if (
            len(those) >= SEVERAL
            and 2 * len(those) > sum(each.rail == rail for each in expected)
            and not _whole_hosts(those, gone, expected)
        ):
            yield _together(reporter, those, rail, f"{counted(those, 'HCA')} of {rail} are not in the fabric", [])
            gone = _without(gone, those)
    of_host: dict[str, list[Expected]] = defaultdict(list)
    for each in gone:
        of_host[each.host].append(each)
    for host, those in of_host.items():
        words = some([each.words for each in those])
        remedy = f"1. Check that {host} runs. 2. On {host}, run `ibstat`: the port must be up. 3. Check the cable."
        yield reporter.cause(
            CHECK, ERROR, words, f"{words} is not in the fabric", EXPECTED, remedy, host=host, nodes=_guids(those), absence=True
        )


def _without(gone: Sequence[Expected], those: Collection[Expected]) -> list[Expected]:
    taken = set(those)
    return [each for each in gone if each not in taken]


def _whole_hosts(those: Sequence[Expected], gone: Sequence[Expected], expected: Sequence[Expected]) -> bool:
    """Return whether the hosts are missing with all their rails, so that the rail is not the cause."""
    hosts = {each.host for each in those}
    rails = {each.rail for each in expected if each.host in hosts}
    return len(rails) > 1 and sum(each.host in hosts for each in gone) == sum(each.host in hosts for each in expected)


def _together(reporter: Reporter, those: Sequence[Expected], subject: str, observed: str, nodes: Sequence[str]) -> Cause:
    remedy = f"1. Check that the leaf of {subject} has power and has booted. 2. Check its uplinks." if not nodes else (
        f"1. Check that {subject} has power and has booted. 2. Check its uplinks."
    )  # fmt: skip
    names = some([each.words for each in those])
    return reporter.cause(CHECK, ERROR, subject, f"{observed}: {names}", EXPECTED, remedy, nodes=[*nodes, *_guids(those)], absence=True)


def _guids(those: Sequence[Expected]) -> list[str]:
    return [each.guid for each in those if each.guid is not None]


def _leaf_before(view: View, each: Expected, before: Wanted | None) -> str | None:
    """Return the earlier leaf of an HCA, if that leaf is missing too."""
    if before is None or each.guid is None:
        return None
    there = before.peers.get((each.guid, each.port))
    return there[0] if there is not None and there[0] in before.switches and there[0] not in view.nodes else None
