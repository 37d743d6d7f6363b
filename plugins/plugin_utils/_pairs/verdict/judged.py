# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status of a verdict, and the verdict after the re-measurement of its suspect with good partners.

Cards have a line rate, and their thresholds are sharp. Software devices are compared with their own fleet, whose level is uncertain if it
is small or its machines are busy. A slow software device is therefore an error only if that level is certain, or if a second measurement
beside good pairs confirms it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, STOPPING, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.proof import EVIDENCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.scale_few import BLAMED_BELOW
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.words import Places, describe, subject

CONFIRMED, CLEARED = "confirmed", "cleared"
#: The probability that the true median of healthy measurements is below the bound of median_bound.
BOUND_ERROR = 0.05
#: The minimum scatter of software devices (standard deviation of the logarithm), however alike a few measurements look.
SCATTER = 0.35
#: A slow software device is confirmed if it is below healthy ones by this many standard errors: by chance, one in 400 is.
ERRORS = 2.8
#: The second measurement alone must be this near to the threshold (of its logarithm): a device that was slow only once is cleared.
NEARER = 0.75
#: Standard error of a median ÷ that of a mean, and standard deviation ÷ median absolute deviation, both of a normal distribution.
MEDIAN_ERROR, DEVIATIONS = math.sqrt(math.pi / 2), 1.4826


@dataclass(frozen=True)
class Judged:
    """A verdict with the texts of its finding. again: the result of the re-measurement, CONFIRMED, CLEARED or "" without one.

    stands_out: it differs from the others; False if it is only below a threshold. doubtful: the level of the fleet is too uncertain for an
    error; only a re-measurement can confirm it.
    """

    verdict: Verdict
    status: str
    observed: str
    expected: str
    remedy: str
    again: str = ""
    stands_out: bool = True
    doubtful: bool = False

    @property
    def is_suspect(self) -> bool:
        """Whether the verdict stops the gate, or would if the level of the fleet were certain."""
        return self.status in STOPPING or self.doubtful

    @property
    def words(self) -> str:
        """One line for a person."""
        return f"{self.observed} ({self.status}, confidence {self.verdict.confidence:.2f}{f', {self.again}' if self.again else ''})"


def judged(
    verdicts: Sequence[Verdict], matrix: Matrix, settings: Mapping[str, Any], *, software: bool, places: Places | None = None
) -> list[Judged]:
    """Return the relevant verdicts. settings: the intent's rdma_pairs. software: devices without line rate. places: for the remedies."""
    found = []
    healthy = _healthy(matrix, verdicts) if software else []
    for verdict in verdicts:
        status = _status(verdict, matrix, settings, software)
        doubtful = software and status == ERROR and not is_certain(_reached(verdict, matrix), healthy, settings["software_fail_below"])
        if status != OK:
            words = describe(verdict, matrix, places, software=software)
            found.append(Judged(verdict, WARNING if doubtful else status, *words, doubtful=doubtful))
    return found


def with_doubts(low: Sequence[Judged], found: Iterable[Judged], matrix: Matrix, settings: Mapping[str, Any]) -> list[Judged]:
    """Return errors of software devices as warnings if the level of the fleet is too uncertain. found: the other accusations."""
    accused = [each.verdict for each in (*low, *found)]
    after = []
    for each in low:
        healthy = _healthy(matrix, accused)
        if is_certain(_reached(each.verdict, matrix), healthy, settings["software_fail_below"]):
            after.append(each)
        else:
            after.append(replace(each, status=WARNING, doubtful=True))
    return after


def _status(verdict: Verdict, matrix: Matrix, settings: Mapping[str, Any], software: bool) -> str:
    if verdict.failed or verdict.ratio is None:
        return UNKNOWN
    if software:
        return ERROR if verdict.ratio < settings["software_fail_below"] else OK
    reached = statistics.median(ratio for at in verdict.evidence if not math.isnan(ratio := matrix.ratio[at]))
    return ERROR if reached < settings["fail_below"] else WARNING


def is_certain(reached: float, healthy: Sequence[float], fail_below: float) -> bool:
    """Return whether a software device is below the threshold even if the level of the fleet is as low as possible."""
    bound = median_bound(healthy)
    return bound is not None and reached < fail_below * bound


def median_bound(values: Iterable[float]) -> float | None:
    """Return the lower confidence bound (BOUND_ERROR) of the median, by the binomial distribution of the order; None for fewer than 5."""
    ordered = sorted(values)
    n, rank, chance = len(ordered), 0, 0.0
    if n > 1000:
        return ordered[int(n / 2 - statistics.NormalDist().inv_cdf(1 - BOUND_ERROR) * math.sqrt(n) / 2) - 1]
    while (chance := chance + math.comb(n, rank) / 2**n) <= BOUND_ERROR:
        rank += 1
    return ordered[rank - 1] if rank else None


def _healthy(matrix: Matrix, accused: Collection[Verdict]) -> list[float]:
    """Return the measured values without an accused port at either end."""
    ports = _Accused.of(accused, matrix)
    return [matrix.value[at] for at in range(len(matrix)) if matrix.value[at] > 0 and not ports.touch(matrix, at)]


def _reached(verdict: Verdict, matrix: Matrix) -> float:
    values = [matrix.value[at] for at in verdict.evidence if matrix.value[at] > 0]
    return statistics.median(values) if values else 0.0


class _Accused(NamedTuple):
    """Names: (rail, host), None for all rails or all hosts; and (rail, one host, the other) of pairs and of measurements on a path."""

    ports: frozenset[tuple[str | None, str | None]]
    pairs: frozenset[tuple[str | None, frozenset[str]]]

    @classmethod
    def of(cls, verdicts: Iterable[Verdict], matrix: Matrix) -> _Accused:
        ports: set[tuple[str | None, str | None]] = set()
        pairs: set[tuple[str | None, frozenset[str]]] = set()
        for verdict in verdicts:
            rail = None if verdict.rail is None else matrix.rails[verdict.rail]
            if verdict.kind == "path":
                pairs.update((matrix.rails[matrix.rail[at]], frozenset(_ends(matrix, at))) for at in verdict.evidence)
            elif verdict.kind == "pair" and verdict.host is not None and verdict.other is not None:
                pairs.add((rail, frozenset((matrix.hosts[verdict.host], matrix.hosts[verdict.other]))))
            else:
                ports.add((rail, None if verdict.host is None else matrix.hosts[verdict.host]))
        return cls(frozenset(ports), frozenset(pairs))

    def touch(self, matrix: Matrix, at: int) -> bool:
        """Return whether an accused port or pair takes part in a measurement."""
        rail, ends = matrix.rails[matrix.rail[at]], _ends(matrix, at)
        if {(rail, None), *((on, host) for on in (rail, None) for host in ends)} & self.ports:
            return True
        return bool({(rail, frozenset(ends)), (None, frozenset(ends))} & self.pairs)


def after_again(
    suspects: Sequence[Judged],
    matrix: Matrix,
    again: Matrix,
    settings: Mapping[str, Any],
    *,
    software: bool,
    places: Places | None = None,
) -> list[Judged]:
    """Return the verdicts after the re-measurement of their suspects. matrix: the sweep of the verdicts. again: with its own positions.

    A suspect that answers and is good when re-measured is cleared; a verdict on several rails keeps those that remain bad. A card is good
    only if every re-measurement is: above all thresholds and, if it stood out, closer to healthy ones than to its first result. A software
    device is compared with good pairs of the same round, by medians. A verdict on a pair becomes a verdict on one end if the other end is
    good with all others and this one is not.
    """
    accused = [suspect.verdict for suspect in suspects]
    if software:
        judge: _Bars | _Beside = _Beside.of(matrix, again, accused, settings)
    else:
        judge = _Bars(settings["floor_gbps"], settings["fail_below"], settings["warn_below"])
    after: dict[int, list[Judged]] = {}
    guilty: list[Judged] = []
    # First find the ends that verdicts on pairs become, then judge ports that only their own figures accuse.
    for suspect in sorted(suspects, key=lambda each: not each.stands_out):
        found = _after(suspect, [*suspects, *guilty], matrix, again, judge)
        after[id(suspect)] = []
        for each in found:
            if each.verdict.kind == "pair" and each.again != CLEARED:
                ends = _by_end(each, accused, matrix, again, judge, places=places)
                guilty += [end for end in ends if end.verdict.kind != "pair" and end.again != CLEARED]
                after[id(suspect)] += ends
            else:
                after[id(suspect)].append(each)
    return [each for suspect in suspects for each in after[id(suspect)]]


def _after(suspect: Judged, suspects: Sequence[Judged], matrix: Matrix, again: Matrix, judge: _Bars | _Beside) -> list[Judged]:
    """Return one verdict, or one for each rail if its rails differ."""
    found = _of_suspect(suspect.verdict, matrix, again)
    if suspect.verdict.kind == "rail":
        return (_one_of_rail(suspect, matrix, again, found, judge) or [judge.after(suspect, matrix, again, found)]) if found else [suspect]
    # A measurement of a suspect with another suspect shows little about it, and nothing if that one fails.
    dead = {(rail, host) for rail, host in _dead(again) if host not in _names(suspect.verdict, matrix)}
    found = [at for at in found if not {(again.rails[again.rail[at]], end) for end in _ends(again, at)} & dead] or found
    others = [each for each in suspects if each is not suspect]
    for partners in ([each for each in others if each.verdict.failed], [each for each in others if each.stands_out], others):
        ports = _Accused.of([each.verdict for each in partners], matrix)
        found = [at for at in found if not ports.touch(again, at)] or found
    if not found:
        return [suspect]
    rails = dict.fromkeys(again.rails[again.rail[at]] for at in found)
    if suspect.verdict.rail is not None or suspect.verdict.kind == "path" or len(rails) < 2:
        return [judge.after(suspect, matrix, again, found)]
    parts = {rail: [at for at in found if again.rails[again.rail[at]] == rail] for rail in rails}
    after = [judge.after(_on_rail(suspect, matrix, rail), matrix, again, own) for rail, own in parts.items()]
    return after if len({each.again for each in after}) > 1 else [judge.after(suspect, matrix, again, found)]


def _one_of_rail(suspect: Judged, matrix: Matrix, again: Matrix, found: Sequence[int], judge: _Bars | _Beside) -> list[Judged]:
    """Return the verdict on the one host without which a rail is good, and the cleared verdict on the rail; none without such a host."""
    guilty = []
    for host in dict.fromkeys(end for at in found for end in _ends(again, at)):
        own, rest = ([at for at in found if (host in _ends(again, at)) is with_it] for with_it in (True, False))
        if not rest or (rail := judge.after(suspect, matrix, again, rest)).again != CLEARED:
            continue
        nic = judge.without([host]).after(_on_host(suspect, matrix, host), matrix, again, own)
        if nic.again != CLEARED:
            guilty.append([nic, rail])
    return guilty[0] if len(guilty) == 1 else []


def _dead(again: Matrix) -> set[tuple[str, str]]:
    """Return (rail, host) whose every new measurement failed, with at least two partners, one of which succeeded with another one."""
    partners: dict[tuple[str, str], set[str]] = {}
    alive: set[tuple[str, str]] = set()
    for at in range(len(again)):
        rail, ends = again.rails[again.rail[at]], _ends(again, at)
        for host, other in (ends, ends[::-1]):
            partners.setdefault((rail, host), set()).add(other)
        if again.value[at] > 0:
            alive.update((rail, host) for host in ends)
    return {
        (rail, host)
        for (rail, host), others in partners.items()
        if (rail, host) not in alive and len(others) > 1 and any((rail, other) in alive for other in others)
    }


def _on_host(suspect: Judged, matrix: Matrix, host: str) -> Judged:
    """Return a verdict on a rail, narrowed to one host."""
    verdict = replace(suspect.verdict, kind="nic", host=list(matrix.hosts).index(host))
    own = _of_suspect(verdict, matrix, matrix)
    failed = 2 * sum(1 for at in own if math.isnan(matrix.value[at])) >= len(own)
    partners = len({end for at in own for end in _ends(matrix, at)}) - 1
    narrow = replace(verdict, evidence=tuple(own[:EVIDENCE]), failed=failed, partners=partners, explained=len(own), measured=partners)
    observed, expected, remedy = describe(narrow, matrix)
    return replace(suspect, verdict=narrow, observed=observed, expected=expected, remedy=remedy)


def _on_rail(suspect: Judged, matrix: Matrix, rail: str) -> Judged:
    """Return a verdict on all rails, narrowed to one of them."""
    verdict = suspect.verdict
    at = list(matrix.rails).index(rail)
    kind = "nic" if verdict.kind == "host" else verdict.kind
    evidence = [each for each in verdict.evidence if matrix.rail[each] == at]
    evidence = evidence or _of_suspect(replace(verdict, kind=kind, rail=at), matrix, matrix)[:EVIDENCE]
    failed = verdict.failed and 2 * sum(1 for each in evidence if math.isnan(matrix.value[each])) >= len(evidence)
    narrow = replace(verdict, kind=kind, rail=at, evidence=tuple(evidence), failed=failed)
    return replace(suspect, verdict=narrow, observed=f"{rail} of {suspect.observed}")


def _by_end(
    pair: Judged, accused: Collection[Verdict], matrix: Matrix, again: Matrix, judge: _Bars | _Beside, *, places: Places | None
) -> list[Judged]:
    """Return a verdict on a pair, or on one of its ends if the other one is cleared because it is good with all other partners."""
    verdict = pair.verdict
    ends = [replace(verdict, kind="host" if verdict.rail is None else "nic", host=end, other=None) for end in (verdict.host, verdict.other)]
    ports = _Accused.of([each for each in accused if (each.host, each.other) != (verdict.host, verdict.other)], matrix)
    found, after = [], []
    for end, other in zip(ends, ends[::-1], strict=True):
        (partner,) = _names(other, matrix)
        own = [at for at in _of_suspect(end, matrix, again) if partner not in _ends(again, at)]
        own = [at for at in own if not ports.touch(again, at)] or own
        if not own:
            return [pair]
        found.append(own)
        after.append(judge.without(_names(end, matrix)).after(replace(pair, verdict=end), matrix, again, own))
    if [each.again for each in after].count(CLEARED) != 1:
        return [pair]
    at = 1 if after[0].again == CLEARED else 0
    named = _direction(after[at], matrix, again, found[at], judge)
    evidence = [each for each in _of_suspect(named, matrix, matrix) if each in verdict.evidence] or verdict.evidence
    met = {host for each in _of_suspect(named, matrix, matrix) for host in _ends(matrix, each)}
    named = replace(named, evidence=tuple(evidence), partners=1, measured=len(met) - 1, explained=len(evidence))
    observed, expected, remedy = describe(named, matrix, places, software=isinstance(judge, _Beside))
    own = _of_suspect(named, matrix, again)
    own = [each for each in own if not ports.touch(again, each)] or own
    whole = judge.without(_names(named, matrix)).after(replace(pair, verdict=named, observed=observed), matrix, again, own)
    narrow = pair if pair.again == CONFIRMED else whole
    return [replace(narrow, verdict=named, observed=whole.observed, expected=expected, remedy=remedy), after[1 - at]]


def _names(verdict: Verdict, matrix: Matrix) -> list[str]:
    """Return the hosts of a verdict."""
    return [matrix.hosts[host] for host in (verdict.host, verdict.other) if host is not None]


def _direction(end: Judged, matrix: Matrix, again: Matrix, found: Sequence[int], judge: _Bars | _Beside) -> Verdict:
    """Return the verdict on an end, for one direction if it is good in the other one."""
    host = matrix.hosts[end.verdict.host or 0]
    parts = {"receives": [at for at in found if _ends(again, at)[0] == host], "sends": [at for at in found if _ends(again, at)[1] == host]}
    if again.is_bidirectional or not all(parts.values()):
        return end.verdict
    bad = [which for which, own in parts.items() if judge.without([host]).after(end, matrix, again, own).again != CLEARED]
    return replace(end.verdict, kind="direction", direction=bad[0]) if len(bad) == 1 else end.verdict


def _values(again: Matrix, found: Sequence[int]) -> str:
    return ", ".join("failed" if math.isnan(again.value[at]) else f"{again.value[at]:.3g} Gb/s" for at in found[:8])


def _cleared(suspect: Judged, words: str) -> Judged:
    return replace(suspect, status=OK, observed=suspect.observed + words, remedy="", again=CLEARED, doubtful=False)


class _Bars(NamedTuple):
    """The thresholds of a card: Gb/s, and shares of the expected value; below warn_ratio it is still a warning."""

    floor_gbps: float
    least_ratio: float
    warn_ratio: float

    def without(self, _hosts: Collection[str]) -> _Bars:
        """Return the same: a card is not compared with others."""
        return self

    def after(self, suspect: Judged, matrix: Matrix, again: Matrix, found: Sequence[int]) -> Judged:
        words = f"; again: {_values(again, found)}"
        least = max(self.floor_gbps, _between(suspect.verdict, matrix) if suspect.stands_out else 0.0)
        if all(again.value[at] >= least and again.ratio[at] >= self.least_ratio for at in found):
            if statistics.median(again.ratio[at] for at in found) >= self.warn_ratio:
                return _cleared(suspect, words)
            if suspect.verdict.failed:
                return self._slow_now(suspect, matrix, again, found)
            return replace(suspect, status=WARNING, observed=suspect.observed + words, again=CLEARED)
        return replace(suspect, observed=suspect.observed + words, again=CONFIRMED)

    def _slow_now(self, suspect: Judged, matrix: Matrix, again: Matrix, found: Sequence[int]) -> Judged:
        """Return the verdict on a suspect that failed in the sweep and is slightly slow now: its remedy is about the slowness only."""
        hosts = [
            None if each is None else list(again.hosts).index(matrix.hosts[each]) for each in (suspect.verdict.host, suspect.verdict.other)
        ]
        rail = None if suspect.verdict.rail is None else list(again.rails).index(matrix.rails[suspect.verdict.rail])
        ratio = statistics.median(again.ratio[at] for at in found)
        slow = replace(
            suspect.verdict, host=hosts[0], other=hosts[1], rail=rail, failed=False, ratio=ratio, evidence=tuple(found[:EVIDENCE])
        )
        gbps = statistics.median(again.value[at] for at in found)
        observed = f"{subject(slow, again)}: {gbps:.3g} Gb/s, {ratio:.2f} of the limit, when measured again; before: {suspect.observed}"
        expected = f"at least {self.warn_ratio:g} of the limit"
        return replace(suspect, status=WARNING, observed=observed, expected=expected, remedy=describe(slow, again)[2], again=CLEARED)


def _between(verdict: Verdict, matrix: Matrix) -> float:
    """Return the boundary between bad and good measurements: the geometric mean of its own and healthy ones; 0 if all failed."""
    bad = [matrix.value[at] for at in verdict.evidence if not math.isnan(matrix.value[at])]
    if not bad or not verdict.ratio:
        return 0.0
    return statistics.median(bad) / math.sqrt(verdict.ratio)


#: Logarithms of a suspect's figures, and of those of good pairs, in the re-measurement or in the sweep.
_Round = tuple[Sequence[float], Sequence[float]]


class _Beside(NamedTuple):
    """Software devices beside good pairs. before, now: the figures of those pairs in the sweep and in the re-measurement, by pair."""

    floor_gbps: float
    fail_below: float
    before: Sequence[_OfPair]
    now: Sequence[_OfPair]

    @classmethod
    def of(cls, matrix: Matrix, again: Matrix, accused: Collection[Verdict], settings: Mapping[str, Any]) -> _Beside:
        ports = _Accused.of(accused, matrix)
        return cls(settings["floor_gbps"], settings["software_fail_below"], *(_good_pairs(each, ports) for each in (matrix, again)))

    def without(self, hosts: Collection[str]) -> _Beside:
        """Return the same without the pairs of these hosts."""
        before, now = ([each for each in of if each.ends.isdisjoint(hosts)] for of in (self.before, self.now))
        return self._replace(before=before, now=now)

    def after(self, suspect: Judged, matrix: Matrix, again: Matrix, found: Sequence[int]) -> Judged:
        words = f"; again: {_values(again, found)}"
        if any(not again.value[at] > 0 for at in found):
            status = suspect.status if suspect.verdict.failed else ERROR
            return replace(suspect, status=status, observed=suspect.observed + words, again=CONFIRMED, doubtful=False)
        own = [math.log(again.value[at]) for at in found]
        if math.exp(statistics.median(own)) < self.floor_gbps:
            return replace(suspect, status=ERROR, observed=suspect.observed + words, again=CONFIRMED, doubtful=False)
        before, now = ([each.log for each in of] for of in (self.before, self.now))
        if now:
            words += f", good pairs beside it {math.exp(statistics.median(now)):.3g} Gb/s"
        if suspect.verdict.failed and before and statistics.median(own) >= statistics.median(before) + math.log(self.fail_below):
            return _cleared(suspect, words)
        # Failures in the sweep left no figures there: the new figures are compared with the sweep's too.
        slow_before = [math.log(matrix.value[at]) for at in suspect.verdict.evidence if matrix.value[at] > 0]
        rounds = [(own, now), (own if suspect.verdict.failed else slow_before, before)]
        rounds = [(values, good) for values, good in rounds if values and good]
        if not rounds or _apart(*rounds[0]) >= math.log(self.fail_below) / 2 or self._share(rounds) >= self.fail_below:
            return _cleared(suspect, words)
        wide = _scatter(*(values for each in rounds for values in each)) > SCATTER
        # A suspect that is now nearly as fast as good pairs were in the sweep may have luckier pairs beside it.
        near = math.log(self.fail_below) / 2 if wide else math.log(BLAMED_BELOW)
        is_near = bool(before) and _apart(own, before) >= near
        # The re-measurement must be evidence by itself for failed suspects, and for ports that the sweep chose as the lowest ones.
        tests = [rounds] if suspect.stands_out and not suspect.verdict.failed else [rounds, rounds[:1]]
        if not is_near and all(self._is_slow(each) for each in tests):
            return replace(suspect, status=ERROR, observed=suspect.observed + words, again=CONFIRMED, doubtful=False)
        return replace(suspect, status=WARNING, observed=f"{suspect.observed}{words}: too few and too scattered to judge", doubtful=True)

    def _share(self, rounds: Sequence[_Round]) -> float:
        """Return a suspect's share of the level of good pairs.

        With fewer pairs at once, all are faster, so it is compared within its round.
        """
        return math.exp(statistics.fmean(_apart(*each) for each in rounds))

    def _is_slow(self, rounds: Sequence[_Round]) -> bool:
        """Return whether a suspect is slower than good pairs in each round, and in all rounds by more than chance."""
        variance = sum(1 / len(own) + 1 / len(good) for own, good in rounds) / len(rounds) ** 2
        error = MEDIAN_ERROR * _scatter(*(values for each in rounds for values in each)) * math.sqrt(variance)
        apart = [_apart(*each) for each in rounds]
        return statistics.fmean(apart) + ERRORS * error < math.log(BLAMED_BELOW) and max(apart) < NEARER * math.log(self.fail_below)


def _apart(own: Sequence[float], good: Sequence[float]) -> float:
    return statistics.median(own) - statistics.median(good)


class _OfPair(NamedTuple):
    """The result of two good hosts: the median of the logarithms. One measurement or many, they are one sample: a pair may be lucky."""

    ends: frozenset[str]
    log: float


def _good_pairs(matrix: Matrix, ports: _Accused) -> list[_OfPair]:
    found: dict[frozenset[str], list[float]] = {}
    for at, value in enumerate(matrix.value):
        if value > 0 and not ports.touch(matrix, at):
            found.setdefault(frozenset(_ends(matrix, at)), []).append(math.log(value))
    return [_OfPair(ends, statistics.median(logs)) for ends, logs in found.items()]


def _scatter(*groups: Sequence[float]) -> float:
    """Return the standard deviation of groups about their own medians, by the median absolute deviation; at least SCATTER."""
    apart = [abs(value - statistics.median(group)) for group in groups for value in group]
    return max(SCATTER, DEVIATIONS * statistics.median(apart))


def _of_suspect(verdict: Verdict, matrix: Matrix, again: Matrix) -> list[int]:
    """Return the positions of the re-measurements of a verdict's own subject."""
    rail = None if verdict.rail is None else matrix.rails[verdict.rail]
    host, other = (None if each is None else matrix.hosts[each] for each in (verdict.host, verdict.other))
    if verdict.kind == "path":
        own = {(matrix.rails[matrix.rail[at]], *_ends(matrix, at)) for at in verdict.evidence}
        return [at for at in range(len(again)) if (again.rails[again.rail[at]], *_ends(again, at)) in own]
    found = []
    for at, (on, server, client) in enumerate(zip(again.rail, again.server, again.client, strict=True)):
        ends = (again.hosts[server], again.hosts[client])
        if rail not in (None, again.rails[on]) or (host is not None and host not in ends):
            continue
        if (other is not None and other not in ends) or (verdict.direction and ends[verdict.direction == "sends"] != host):
            continue
        found.append(at)
    return found


def _ends(matrix: Matrix, at: int) -> tuple[str, str]:
    """Return the receiver and the sender."""
    return matrix.hosts[matrix.server[at]], matrix.hosts[matrix.client[at]]
