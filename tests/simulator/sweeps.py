# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sweeps that nobody measured: a fleet with one to three faults that are known, its noise and its gaps.

What a measurement gives is decided by the narrowest thing on its way: rate × the fleet's efficiency × the smallest factor of the faults
that it meets × noise, and never above the rate that the link allows. Written before the method that is tried on it, and not changed for
it: the method is developed on DEVELOPMENT_SEEDS with DEVELOPMENT_KINDS, and what it reaches is reported on the others.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DEVELOPMENT_SEEDS = range(1, 61)
HELD_OUT_SEEDS = range(100_001, 100_121)
DEVELOPMENT_KINDS = ("host", "nic", "rail", "sends", "receives", "pair", "dead_nic", "dead_host")
HELD_OUT_KINDS = ("flapping_nic", "noisy_nic", "lossy_host", "host_sends", "host_receives", "dead_pair")

RAILS = 8
HOSTS = ((32, 4), (64, 3), (128, 2), (256, 1), (512, 1))
"""Number of hosts and how often it is drawn."""
SAMPLED_FROM = 256
"""From so many hosts on, every second fleet is measured with SAMPLE partners each instead of all."""
SAMPLE = 16
EXPECTED_GBPS = 392.2
"""400 Gb/s Ethernet, RoCE v2 over IPv4, MTU 4096."""
EFFICIENCY = (0.94, 0.99)
NOISE = 0.03
MOST_MISSING = 0.10
ABSENT_HOST_CHANCE = 0.3
FACTOR = (0.05, 0.85)
PAIR_FACTOR = (0.05, 0.75)
FLAPPING_SHARE = (0.4, 0.7)
NOISY_FACTOR = (0.3, 1.0)
LOSSY_FACTOR = (0.05, 0.6)


@dataclass(frozen=True)
class Truth:
    """What is to blame, as a verdict should name it.

    kind: host, nic, rail, direction or pair. host, other: index, other only of a pair; rail: index, None of a host's fault;
    direction: "sends" or "receives".
    """

    kind: str
    host: int | None = None
    rail: int | None = None
    direction: str | None = None
    other: int | None = None


@dataclass(frozen=True)
class Row:
    """One measurement: the client sends to the server. gbps None: it failed."""

    rail: int
    server: int
    client: int
    gbps: float | None


@dataclass(frozen=True)
class Sweep:
    """What was measured (rows, in no order that means anything), and what is wrong with the fleet."""

    hosts: int
    rails: int
    expected_gbps: float
    rows: tuple[Row, ...]
    truths: frozenset[Truth]


@dataclass(frozen=True)
class _Fault:
    kind: str
    truth: Truth
    factor: float

    def met_by(self, rail: int, server: int, client: int) -> bool:
        truth = self.truth
        if truth.rail not in (None, rail):
            return False
        if truth.kind == "pair":
            return {server, client} == {truth.host, truth.other}
        if truth.direction == "sends":
            return client == truth.host
        if truth.direction == "receives":
            return server == truth.host
        return truth.kind == "rail" or truth.host in (server, client)

    def left(self, chance: random.Random) -> float | None:
        """What a measurement that meets it has left, None if it fails."""
        if self.kind.startswith("dead_"):
            return None
        if self.kind == "flapping_nic":
            return self.factor if chance.random() < chance.uniform(*FLAPPING_SHARE) else 1.0
        if self.kind == "noisy_nic":
            return chance.uniform(*NOISY_FACTOR)
        if self.kind == "lossy_host":
            return chance.uniform(*LOSSY_FACTOR)
        return self.factor


def simulate(seed: int, kinds: Sequence[str]) -> Sweep:
    """One sweep with one to three faults of these kinds; the same for the same seed and kinds."""
    chance = random.Random(f"{seed} {' '.join(kinds)}")
    hosts = chance.choices([number for number, _often in HOSTS], [often for _number, often in HOSTS])[0]
    meetings = list(_meetings(hosts, chance))
    absent = chance.randrange(hosts) if chance.random() < ABSENT_HOST_CHANCE else None
    faults = _faults(chance, kinds, hosts, meetings, absent)
    efficiency, missing = chance.uniform(*EFFICIENCY), chance.uniform(0, MOST_MISSING)
    must_be_there = {(fault.truth.rail, frozenset((fault.truth.host, fault.truth.other))) for fault in faults if fault.truth.kind == "pair"}
    rows = []
    for rail, server, client in meetings:
        lost = chance.random() < missing or absent in (server, client)
        if lost and (rail, frozenset((server, client))) not in must_be_there:
            continue
        left = [fault.left(chance) for fault in faults if fault.met_by(rail, server, client)]
        rows.append(Row(rail, server, client, _measured(chance, efficiency, left)))
    return Sweep(hosts, RAILS, EXPECTED_GBPS, tuple(rows), frozenset(fault.truth for fault in faults))


def _meetings(hosts: int, chance: random.Random) -> Iterator[tuple[int, int, int]]:
    """(rail, server, client): every pair once on every rail, or SAMPLE random matchings; who serves is drawn."""
    sampled = hosts >= SAMPLED_FROM and chance.random() < 0.5
    for rail in range(RAILS):
        pairs = set(itertools.combinations(range(hosts), 2)) if not sampled else set(_matchings(hosts, chance))
        for pair in sorted(pairs):
            server, client = pair if chance.random() < 0.5 else pair[::-1]
            yield rail, server, client


def _matchings(hosts: int, chance: random.Random) -> Iterator[tuple[int, int]]:
    for _number in range(SAMPLE):
        order = chance.sample(range(hosts), hosts)
        for one, other in zip(order[::2], order[1::2], strict=True):
            yield min(one, other), max(one, other)


def _faults(
    chance: random.Random, kinds: Sequence[str], hosts: int, meetings: Sequence[tuple[int, int, int]], absent: int | None
) -> list[_Fault]:
    """Faults that do not hide one another: each on hosts of its own, one whole rail at the most, and none within that rail."""
    wanted = [chance.choice(kinds) for _number in range(chance.randint(1, 3))]
    rail = chance.randrange(RAILS) if "rail" in wanted else None
    faults = [_Fault("rail", Truth("rail", rail=rail), chance.uniform(*FACTOR))] if rail is not None else []
    free_rails = [each for each in range(RAILS) if each != rail]
    used = {absent}
    for kind in wanted:
        if kind == "rail":
            continue
        while True:
            if kind.endswith("pair"):
                at, host, other = chance.choice(meetings)
            else:
                at, host, other = chance.choice(free_rails), chance.randrange(hosts), None
            if at in free_rails and not used & {host, other} - {None}:
                break
        used |= {host, other} - {None}
        factor = chance.uniform(*(PAIR_FACTOR if kind == "pair" else FACTOR))
        faults.append(_Fault(kind, _truth(kind, at, host, other), factor))
    return faults


def _truth(kind: str, rail: int, host: int, other: int | None) -> Truth:
    if kind.endswith("pair") and other is not None:
        return Truth("pair", min(host, other), rail, other=max(host, other))
    if kind in ("sends", "receives"):
        return Truth("direction", host, rail, kind)
    if kind in ("host_sends", "host_receives"):
        return Truth("direction", host, direction=kind.removeprefix("host_"))
    return Truth("host", host) if kind.endswith("host") else Truth("nic", host, rail)


def _measured(chance: random.Random, efficiency: float, left: Sequence[float | None]) -> float | None:
    if None in left:
        return None
    factor = min((each for each in left if each is not None), default=1.0)
    return min(EXPECTED_GBPS, EXPECTED_GBPS * efficiency * factor * max(0.0, chance.gauss(1.0, NOISE)))
