# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds values that differ from the majority, in one pass.

If more than half of the hosts agree, the others differ. Without such a majority nothing shows which hosts are right: this is a finding
on the fleet, which names each value with its hosts and accuses none of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET

#: Hosts that a finding names at most; naming all in each finding would grow with the square of their number.
NAMED = 4
#: The subject of a claim on a rail: "rail 0 (rail0, 0000:21:00.0, ens1)"; the names after the rail's are the host's own.
_RAIL = re.compile(r"(rail \d+ \([^,)]+), [^)]*\)")

#: Host → its findings; FLEET → those that are about no single host.
Found = dict[str, list[Finding]]


@dataclass(frozen=True)
class Claim:
    """The value that one host has for a property that should be equal on all hosts."""

    host: str
    subject: str
    value: Any


@dataclass(frozen=True)
class Odd:
    """A claim that differs from most others. usual: the value of most; others: that value and its hosts, in words."""

    claim: Claim
    usual: Any
    others: str


@dataclass(frozen=True)
class Tie:
    """Claims of which no value has more than half. values: each value with its hosts in words, the most frequent first."""

    claims: tuple[Claim, ...]
    values: str

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(claim.host for claim in self.claims))

    @property
    def subject(self) -> str:
        """What the claims have in common: their subject, or the rail that each host calls in its own way: "rail 0 (rail0)"."""
        subjects = list(dict.fromkeys(claim.subject for claim in self.claims))
        return subjects[0] if len(subjects) == 1 else some(list(dict.fromkeys(_RAIL.sub(r"\1)", subject) for subject in subjects)))


def odd_ones(claims: Sequence[Claim], of: str = "hosts") -> tuple[list[Odd], Tie | None]:
    """The claims that differ from the majority, and the tie if there is no majority. of: the things that claim, in the plural."""
    groups = group_by(claims, lambda claim: claim.value)
    if len(groups) < 2:
        return [], None
    # Sorting keeps the order of values that are equally frequent.
    by_size = sorted(groups.items(), key=lambda item: -len(item[1]))
    most, those = by_size[0]
    if 2 * len(those) > len(claims):
        others = _on(most, those, len(claims), of)
        return [Odd(claim, most, others) for claim in claims if claim.value != most], None
    return [], Tie(tuple(claims), some([_on(value, same, len(claims), of) for value, same in by_size]))


def _on(value: Any, claims: Sequence[Claim], all_claims: int, of: str) -> str:
    hosts = some(list(dict.fromkeys(claim.host for claim in claims)))
    return f"{value} on {len(claims)} of {all_claims} {of} ({hosts})"


def tied(stage: str, check: str, subject: str, status: str, observed: str, expected: str, remedy: str) -> Finding:  # noqa: PLR0917
    """The finding on a tie: on the fleet, because no single host is known to be wrong. remedy: what to do on the others."""
    choose = f"1. Choose which of them is right: none is on more than half, so no host is known to be wrong. 2. {remedy}"
    return Finding(stage, check, FLEET, subject, status, observed, expected, choose)


def undecided(stage: str, check: str, host: str, subject: str, expected: str) -> Finding:
    """The finding of a host that is part of a tie."""
    why = f"no value is on more than half of the hosts: see {check} of {FLEET}"
    return Finding(stage, check, host, subject, NOT_APPLICABLE, why, expected)


def joined(*parts: Mapping[str, Sequence[Finding]]) -> Found:
    """The findings of several comparisons by host, and of the fleet if there are any."""
    found: Found = {}
    for part in parts:
        for host, findings in part.items():
            found.setdefault(host, []).extend(findings)
    return found


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
