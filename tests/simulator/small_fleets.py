# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small fleets: few pairs, and one thing that happens to them, which is a fault or is none.

Two to six hosts with one or two rails. A measurement gives the fleet's level × the noise of that moment × the factor of the fault. Noise of
software devices is lognormal, and now and then a measurement gets far less (its machine was busy) or far more (nothing else ran). When
suspects are measured again, fewer pairs run at once and all of them are faster. NOISE has its two ranges: in the wide one, a pair that is
lucky is so in all of its measurements of a phase. Cards have a line rate, which all of them nearly reach.

The same seed gives the same fleet for every method. Methods are developed on DEVELOPMENT_SEEDS and reported on HELD_OUT_SEEDS; 100001 to
101000, and 2000 each from 200001, 300001 and 400001 on were held out for earlier versions, and are neither any more. The bars of the first
versions were set on REPORTED_SEEDS.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

DEVELOPMENT_SEEDS = range(1, 1001)
HELD_OUT_SEEDS = range(500_001, 502_001)
REPORTED_SEEDS = range(200_001, 200_361)
HEALTHY_KINDS = ("healthy", "lucky", "late", "busy")
"""healthy: noise only; lucky: one pair runs on an idle machine; late: a host stands still for a part of the sweep and then answers; busy: a
host is slow during the sweep only."""
FAULTY_KINDS = ("off", "slow_cable", "lossy_cable", "cut_cable", "dead_rail")
KINDS = HEALTHY_KINDS + FAULTY_KINDS
CARD_KINDS = tuple(kind for kind in KINDS if kind != "lucky")
"""No pair of cards is faster than its links."""
GBPS, CARD_GBPS = 0.05, 97.5
NOISE = {"usual": (0.1, 0.5), "wide": (0.1, 0.7), "cards": (0.002, 0.01)}
"""The range of sigma."""
HICCUP_CHANCE, HICCUP = 0.04, (0.2, 0.7)
LUCK_CHANCE, LUCK = 0.02, (2.0, 4.0)
PAIR_LUCK_CHANCE = 0.08
LUCKY = (3.0, 6.0)
BUSY = (0.25, 0.8)
SLOW, CARDS_SLOW = (0.05, 0.33), (0.1, 0.75)
LOSSY, LOSSY_FAILS = (0.03, 0.3), 0.3
LATE_SHARE = (0.3, 1.0)
QUIET = (1.0, 2.5)


@dataclass(frozen=True)
class SmallFleet:
    """One fleet. host, rail: where it happens; a healthy kind has no faults. sigma: of the noise; factor: what is left there.

    noise: a key of NOISE.
    """

    seed: int
    kind: str
    hosts: int
    rails: int
    host: int
    rail: int
    sigma: float
    factor: float
    noise: str = field(default="usual", repr=False)

    @property
    def faults(self) -> frozenset[tuple[int, int]]:
        """(rail, host) of the ports that are bad."""
        if self.kind == "off":
            return frozenset((rail, self.host) for rail in range(self.rails))
        if self.kind == "dead_rail":
            return frozenset((self.rail, host) for host in range(self.hosts))
        return frozenset() if self.kind in HEALTHY_KINDS else frozenset({(self.rail, self.host)})

    def measure(self, phase: str, rail: int, server: int, client: int, time: int = 0) -> float | None:
        """What two hosts measure in Gb/s, None if it fails. phase: "sweep" or "again"; time: how often they did so before in this phase."""
        chance = random.Random(f"{self.seed} {phase} {rail} {server} {client}{f' {time}' if time else ''}")
        if self.noise == "cards":
            value = CARD_GBPS * math.exp(-abs(chance.gauss(0.0, self.sigma)))
        else:
            value = GBPS * self._noise(chance, phase, (server, client))
        left = self._left(chance, phase, rail, (server, client))
        return None if left is None else value * left

    def _noise(self, chance: random.Random, phase: str, pair: tuple[int, int]) -> float:
        noise = chance.lognormvariate(0.0, self.sigma)
        noise *= chance.uniform(*HICCUP) if chance.random() < HICCUP_CHANCE else 1.0
        of_pair = random.Random(f"{self.seed} {phase} luck {sorted(pair)}") if self.noise == "wide" else chance
        noise *= of_pair.uniform(*LUCK) if of_pair.random() < (LUCK_CHANCE if of_pair is chance else PAIR_LUCK_CHANCE) else 1.0
        return noise * random.Random(f"{self.seed} quiet").uniform(*QUIET) if phase == "again" else noise

    def _left(self, chance: random.Random, phase: str, rail: int, pair: tuple[int, int]) -> float | None:
        """The factor of what happens there, None if the measurement fails."""
        if any((rail, end) in self.faults for end in pair):
            if self.kind == "lossy_cable":
                return None if chance.random() < LOSSY_FAILS else chance.uniform(*LOSSY)
            return self.factor if self.kind == "slow_cable" else None
        if phase == "again":
            return 1.0
        if self.kind == "late" and self.host in pair:
            return None if chance.random() < self.factor else 1.0
        if self.kind == "lucky" and rail == self.rail and set(pair) == {self.host, (self.host + 1) % self.hosts}:
            return random.Random(f"{self.seed} lucky").uniform(*LUCKY)
        return self.factor if self.kind == "busy" and self.host in pair else 1.0


def simulate_small(seed: int, noise: str = "usual") -> SmallFleet:
    """A fleet by its seed, each kind as often as the others. noise: a key of NOISE."""
    chance = random.Random(f"small {seed}")
    cards = noise == "cards"
    kinds = CARD_KINDS if cards else KINDS
    kind = kinds[seed % len(kinds)]
    hosts, rails = chance.randint(2, 6), chance.randint(1, 2)
    span = {"slow_cable": CARDS_SLOW if cards else SLOW, "busy": BUSY, "late": LATE_SHARE}.get(kind, (1.0, 1.0))
    where = chance.randrange(hosts), chance.randrange(rails)
    return SmallFleet(seed, kind, hosts, rails, *where, chance.uniform(*NOISE[noise]), chance.uniform(*span), noise)
