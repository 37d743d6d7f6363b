# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The odd one out: who says of a thing what most others do not, found in one pass.

Where more than half agree, the others are odd; without such a majority nobody can tell who is, and all are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding

#: How many hosts a finding names; all of them in each finding would be the square of their number.
NAMED = 4

Found = dict[str, list[Finding]]


@dataclass(frozen=True)
class Claim:
    """What one host says of a thing that all should say the same of."""

    host: str
    subject: str
    value: Any


@dataclass(frozen=True)
class Odd:
    """A claim that is not as most are. has_majority: whether there is such a most, which usual then is.

    others: the usual value and who has it; without a majority, the values that there are and who has them.
    """

    claim: Claim
    has_majority: bool
    usual: Any
    others: str


def odd_ones(claims: Sequence[Claim], of: str = "hosts") -> Iterator[Odd]:
    """The claims that are not as most of them are; all of them where there is no majority. of: what makes a claim, in the plural."""
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
    """The items by their key, in the order in which they come."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


def some(names: Sequence[str], without: str | None = None) -> str:
    """The first few of some names, "node1, node2 and 7 more"; one of them may be left out."""
    shown = [name for name in names[: NAMED + 1] if name != without][:NAMED]
    more = len(names) - len(shown) - (without is not None)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
