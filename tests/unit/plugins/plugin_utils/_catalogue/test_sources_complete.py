# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No check reads a source that it does not declare: without all other sources it says the same of a healthy host.

The hosts are the stand-ins of test_sources, and the checks are all of the catalogue. The other sources are taken away together, as
missing. Garbled ones cannot be: the reader refuses the facts as a whole, with the name of the source, which test_sources requires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.sources import COMMAND, FOLDER, NOTHING, RESULT, Source
from tests.unit.builders.blind_hosts import MISSING
from tests.unit.plugins.plugin_utils._catalogue.test_sources import Fleet, fleets, same

__all__ = ["fleets"]
#: They show which rails a host has, and whether a link is up. Without them nothing can be checked on a rail.
RAILS = (
    reads.folder("/sys/class/net"),
    reads.link(f"{reads.NET}/device"),
    reads.DEVICES,
    reads.file(f"{reads.IB}/node_type"),
    *(reads.file(f"{reads.IB}/ports/*/{name}") for name in ("link_layer", "state", "phys_state")),
)
#: Without it the facts are refused as a whole.
REFUSES = "statvfs"
#: Check → the source that it reads and does not declare. The list may only shrink: the entry of a check that is fixed fails.
NOT_DECLARED: dict[str, str] = {
    "preflight.secure_boot": "files of add-on modules: without them the finding is ok as well, and names the enrolled key instead",
    "nccl.file": "GIDs, addresses and the SSH session: the planned content changes without them, and the file then differs, an error",
    "planes.services": "SSH_CONNECTION: the control node is one server more; without the session it is not known that there is one",
}


@cache
def others(check: str) -> tuple[Source, ...]:
    """The sources of other checks, without those that have a part in common with one of this check."""
    own = [each for source in all_checks()[check].sources for each in source.all] + [*RAILS]
    known = {(each.kind, each.names): each for declared in all_checks().values() for source in declared.sources for each in source.all}
    return tuple(
        each
        for each in known.values()
        if each.kind not in (NOTHING, RESULT) and REFUSES not in each.names and not any(_overlap(each, of) for of in own)
    )


def _overlap(one: Source, other: Source) -> bool:
    if COMMAND in (one.kind, other.kind):
        length = min(len(one.names), len(other.names))
        return one.kind == other.kind and one.names[:length] == other.names[:length]
    return any(_covers(a, b, one.kind) or _covers(b, a, other.kind) for a in one.names for b in other.names)


def _covers(name: str, path: str, kind: str) -> bool:
    return fnmatchcase(path, name) or (kind == FOLDER and fnmatchcase(path, f"{name}/*"))


def changes(fleet: Fleet, check: str) -> Iterator[str]:
    """What a check says otherwise where all other sources are missing."""
    first, *more = others(check)
    judged = fleet.judged(reads.any_of(first, *more), MISSING)
    assert not judged.refused
    for before in fleet.well.of(check):
        if before.status == OK:
            now = same(before, judged.of(check))
            if now is None or (now.status, now.observed) != (before.status, before.observed):
                words = "nothing" if now is None else f"{now.status}, {now.observed!r}"
                yield f"{fleet.host.name}, {before.subject}: {before.observed!r} -> {words}"


def _checks() -> Iterator[Any]:
    for check, declared in all_checks().items():
        if any(source.kind not in (NOTHING, RESULT) for source in declared.sources):
            reason = NOT_DECLARED.get(check)
            yield pytest.param(check, marks=[pytest.mark.xfail(reason=reason, strict=True)] if reason else [])


@pytest.mark.parametrize("check", [*_checks()])
def test_a_check_reads_no_source_that_it_does_not_declare(fleets: Mapping[str, Fleet], check: str) -> None:
    assert [words for fleet in fleets.values() for words in changes(fleet, check)] == []
