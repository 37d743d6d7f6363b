# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds values that differ from the majority, in one pass.

If more than half of the hosts agree, the others differ; without such a majority all of them differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding

#: Hosts that a finding names at most; naming all in each finding would grow with the square of their number.
NAMED = 4

Found = dict[str, list[Finding]]


@dataclass(frozen=True)
class Claim:
    """The value that one host has for a property that should be equal on all hosts."""

    host: str
    subject: str
    value: Any


@dataclass(frozen=True)
class Odd:
    """A claim that differs from most others. has_majority: whether there is a majority; usual is then its value.

    others: the usual value and its hosts; without a majority, all values and their hosts.
    """

    claim: Claim
    has_majority: bool
    usual: Any
    others: str


def odd_ones(claims: Sequence[Claim], of: str = "hosts") -> Iterator[Odd]:
    """The claims that differ from the majority; all of them without a majority. of: the things that claim, in the plural."""
    groups = group_by(claims, lambda claim: claim.value)
    if len(groups) < 2:
        return
    most, those = max(groups.items(), key=lambda item: len(item[1]))
    if 2 * len(those) > len(claims):
        others = f"{most} on {len(those)} of {len(claims)} {of} ({_hosts(those)})"
        yield from (Odd(claim, True, most, others) for claim in claims if claim.value != most)
        return
    variety = some([f"{value} on {_hosts(same)}" for value, same in groups.items()])
    yield from (Odd(claim, False, None, variety) for claim in claims)


def _hosts(claims: Iterable[Claim]) -> str:
    return some(list(dict.fromkeys(claim.host for claim in claims)))


def group_by(items: Iterable[Any], key: Callable[[Any], Hashable]) -> dict[Any, list[Any]]:
    """The items by their key, in their order."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


def some(names: Sequence[str], without: str | None = None) -> str:
    """The first names, "node1, node2 and 7 more". without: a name to leave out."""
    shown = [name for name in names[: NAMED + 1] if name != without][:NAMED]
    more = len(names) - len(shown) - (without is not None)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
