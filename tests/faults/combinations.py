# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random pairs and triples of faults, on different hosts and on one host, the same ones in every run."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

from tests.faults.beds import hosts
from tests.faults.fault import Expected, Fault, faults
from tests.faults.score import BEDS, PARTLY, Result, compare, new

SEED, EACH = 32, 15
#: Size, and whether the faults are on one host.
KINDS = ((2, False), (2, True), (3, False), (3, True))


@dataclass(frozen=True)
class Combination:
    """Faults of one bed, each with its host."""

    bed: str
    placed: tuple[tuple[str, Fault], ...]

    @property
    def name(self) -> str:
        return " + ".join(f"{fault.id} on {host}" for host, fault in self.placed)

    @property
    def kind(self) -> str:
        """For the table: "2 on different hosts"."""
        one = len({host for host, _fault in self.placed}) == 1
        return f"{len(self.placed)} on {'one host' if one else 'different hosts'}"


@cache
def all_combinations() -> tuple[Combination, ...]:
    """EACH of every kind, drawn from the faults of whole hosts that accuse no other host and change nothing that another one changes."""
    chance, pools = random.Random(SEED), defaultdict(list)
    for fault in faults():
        if fault.bed in hosts.BEDS and is_alone(fault):
            pools[fault.bed].append(fault)
    found: list[Combination] = []
    for size, on_one in KINDS:
        drawn: list[Combination] = []
        while len(drawn) < EACH:
            bed = chance.choices(list(pools), weights=[len(pool) for pool in pools.values()])[0]
            chosen = chance.sample(pools[bed], size)
            names = hosts.BEDS[bed].hosts
            if (not on_one and len(names) < size) or any(collide(one.inject, other.inject) for one, other in combinations(chosen, 2)):
                continue
            places = [chance.choice(names)] * size if on_one else chance.sample(names, size)
            drawn.append(Combination(bed, tuple(zip(places, chosen, strict=True))))
        found += drawn
    return tuple(found)


def is_alone(fault: Fault) -> bool:
    """Whether a fault is of one host, and everything that it may cause is known and on that host."""
    named = {each.host for each in fault.expect} | {host for _check, host in fault.may}
    return len(fault.on) == 1 and named == {*fault.on} and not fault.inject.keys() & {"managers", "lost", "absent"}


def _leaves(inject: Mapping[str, Any]) -> Iterator[str]:
    """What an injection changes: the paths of a tree, the commands, keys of the inventory and of facts, and devices."""
    for key, value in inject.items():
        yield from (f"{'path' if key in ('write', 'remove', 'replace', 'link', 'mode', 'config') else key} {name}" for name in value)


def collide(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two injections change the same place, or one removes what the other changes."""
    first, second = [*_leaves(one)], [*_leaves(other)]
    return any(a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for a in first for b in second)


def judge(combination: Combination) -> Result:
    """The findings of all its faults together. The fault of the result stands for all of them."""
    injected: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    expect: list[Expected] = []
    may: list[tuple[str, str]] = []
    for host, fault in combination.placed:
        injected[host].append(fault.inject)
        expect += [replace(each, host=host) for each in fault.expect]
        may += [(check, host) for check, _host in fault.may]
    findings = new(combination.bed, BEDS[combination.bed].judge(injected))
    return Result(combination.placed[0][1], *compare(findings, expect, may, tie=True))


def hidden(combination: Combination, result: Result) -> Combination | None:
    """The faults that are not named although others are. They are what the next run meets after the repair of those others."""
    if result.verdict != PARTLY:
        return None
    left = [
        (host, fault)
        for host, fault in combination.placed
        if any(each.check == lost.check and host == lost.host for each in fault.expect for lost in result.missing)
    ]
    return Combination(combination.bed, tuple(left))
