# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sweep loses to strangers, to a runner that stops and to a perftest that SIGKILL does not end, against the same sweep in quiet.

Runners and addresses are those of tests.bench.runners, on this machine only. A host that is disturbed itself is the culprit:
its own pairs may fail. Pairs of all others are honest, and none of them may be lost.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import Positions, result_of
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import meeting_seconds
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import round_count
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import localize
from tests.bench import runners, strangers
from tests.bench.bars import Line, figure
from tests.bench.strangers import Stranger

HOSTS, RAILS = 8, 2
CULPRIT = 3
PERFTEST_SECONDS = 0.4
TEST_DEADLINE_SECONDS = 5.0
START_DEADLINE_SECONDS = 15.0
PAUSE_SECONDS = 3.0
"""Less than a runner waits for an answer of its partner."""
RATE_GBPS = 100.0
HOSTILE = ("python", "-m", "tests.bench.figures", "hostile")
Disturbs = Callable[[runners.Fleet], Stranger]


@dataclass(frozen=True)
class Swept:
    """A sweep. lost: records of honest pairs that are missing or failed; accused: honest hosts that the verdicts name."""

    seconds: float
    records: int
    expected: int
    honest: int
    lost: int
    failed: Mapping[str, int]
    repeated: int
    accused: tuple[str, ...]
    named: tuple[str, ...]
    ended: bool
    did: str

    def note(self, quiet: Swept) -> str:
        """For a person."""
        failed = ", ".join(f"{count} {kind}" for kind, count in sorted(self.failed.items())) or "none"
        ratio = f"{self.seconds:.1f} s, {self.seconds / quiet.seconds:.2f} times as long as in quiet"
        kept = f"{self.lost} of {self.honest} honest records lost, {self.records} of {self.expected} written, failed: {failed}"
        more = [f"{self.repeated} repeated"] if self.repeated else []
        more += [f"named: {', '.join(self.named)}"] if self.named else []
        return "; ".join((self.did, ratio, kept, *more))


@dataclass(frozen=True)
class Kind:
    """holds_up: it is of the host CULPRIT alone; culprit_rails: on how many rails that may lose its pairs; taps: messages are captured."""

    disturb: Disturbs
    holds_up: bool = False
    culprit_rails: int = 0
    taps: bool = False


def _throughout(fleet: runners.Fleet) -> Stranger:
    return strangers.Pause(fleet.plan, fleet.processes[CULPRIT], after=PERFTEST_SECONDS, seconds=strangers.MOST_SECONDS)


def _while(fleet: runners.Fleet) -> Stranger:
    return strangers.Pause(fleet.plan, fleet.processes[CULPRIT], after=2 * PERFTEST_SECONDS, seconds=PAUSE_SECONDS)


KINDS: dict[str, Kind] = {
    "flood": Kind(lambda fleet: strangers.Flood(fleet.plan)),
    "scan": Kind(lambda fleet: strangers.Scan(fleet.plan)),
    "handshake": Kind(lambda fleet: strangers.Taker(fleet.plan)),
    "replay": Kind(lambda fleet: strangers.Replay(fleet.plan, fleet.folder / "tap"), taps=True),
    "pause": Kind(_while, holds_up=True),
    "stopped": Kind(_throughout, holds_up=True, culprit_rails=RAILS),
    "unkillable": Kind(
        lambda fleet: strangers.Undying(fleet.plan, fleet.processes[CULPRIT], after=PERFTEST_SECONDS), holds_up=True, culprit_rails=1
    ),
}
"""pause: SIGSTOP of a runner for PAUSE_SECONDS; stopped: for as long as the others sweep."""


def make_plan(hosts: int) -> dict[str, Any]:
    """A plan of RAILS rails, the same as the benchmark's of one."""
    plan, *others = (runners.make_plan(hosts, START_DEADLINE_SECONDS) for _rail in range(RAILS))
    plan["tests"] = [{**test, "deadline_seconds": TEST_DEADLINE_SECONDS} for test in plan["tests"]]
    for number, other in enumerate(others, 1):
        profiles = range(len(plan["profiles"]), len(plan["profiles"]) + hosts)
        plan["profiles"] += other["profiles"]
        plan["rails"].append({"name": f"rail{number}", "addresses": other["rails"][0]["addresses"], "profiles": list(profiles)})
    return plan


def sweep(folder: Path, hosts: int = HOSTS, kind: Kind | None = None, perftest_seconds: float = PERFTEST_SECONDS) -> Swept:
    """One sweep, with a stranger or without. seconds: until the last runner ended that nobody held up.

    The wait for each runner is bounded by the plan: a meeting's longest time for the culprit's rail, beside three times the sweep's own.
    """
    plan, culprit_rails = make_plan(hosts), 0 if kind is None else kind.culprit_rails
    culprit = CULPRIT if culprit_rails else None
    how = ("-c", strangers.TAP) if kind is not None and kind.taps else ()
    fleet = runners.Fleet(folder, plan, runners.compile_standin(folder), {"STANDIN_SECONDS": str(perftest_seconds)}, how)
    rounds = round_count(hosts)
    allowed = meeting_seconds(plan["tests"])
    most = START_DEADLINE_SECONDS + 3 * rounds * perftest_seconds + allowed
    stranger: Stranger | None = None
    begun = time.monotonic()
    try:
        fleet.start(range(hosts))
        if kind is not None:
            stranger = kind.disturb(fleet)
            stranger.start()
        ended = _ended(fleet, [host for host in range(hosts) if host != culprit], most)
        seconds = time.monotonic() - begun
        if culprit is not None and isinstance(stranger, strangers.Undying):
            ended = _ended(fleet, [culprit], most) and ended
    finally:
        try:
            if stranger is not None:
                stranger.close()
            if culprit is not None:
                ended = _ended(fleet, [culprit], most) and ended
        finally:
            fleet.kill()
    swept = judged(folder, plan, fleet.records(), culprit_rails)
    return replace(swept, seconds=seconds, ended=ended, did="quiet" if stranger is None else stranger.did)


def _ended(fleet: runners.Fleet, hosts: Sequence[int], seconds: float) -> bool:
    """Whether some runners end by themselves in a time, and say that all was recorded."""
    deadline = time.monotonic() + seconds
    while any(fleet.processes[host].poll() is None for host in hosts) and time.monotonic() < deadline:
        time.sleep(0.02)
    return all(fleet.processes[host].poll() == 0 for host in hosts)


def judged(folder: Path, plan: dict[str, Any], records: Sequence[Mapping[str, Any]], culprit_rails: int) -> Swept:
    """What was lost, and the hosts that the product's own verdicts name."""
    hosts, name = len(plan["hosts"]), plan["hosts"][CULPRIT] if culprit_rails else None
    failed = [record for record in records if record["error"] or record["exit_code"]]
    kinds = Counter(record["error"]["class"] if record["error"] else "exit code" for record in failed)
    honest_hosts = hosts - (name is not None)
    expected, honest = (RAILS * number * (number - 1) for number in (hosts, honest_hosts))
    may_fail = culprit_rails * 2 * (hosts - 1)
    bad = sum(name not in (record["server"], record["client"]) for record in failed)
    written = sum(name not in (record["server"], record["client"]) for record in records)
    lost = max(honest - written + bad, expected - len(records) + len(failed) - may_fail)
    named = _named(folder, plan, records)
    return Swept(
        seconds=0.0,
        records=len(records),
        expected=expected,
        honest=honest,
        lost=lost,
        failed=dict(kinds),
        repeated=sum(bool(record.get("strangers")) and record["role"] == "server" for record in records),
        accused=tuple(each for each in named if each != name),
        named=named,
        ended=False,
        did="",
    )


def _named(folder: Path, plan: dict[str, Any], records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The hosts that the verdicts of the sweep name; of what names no host, its kind."""
    positions = Positions.of(plan)
    files = {host: folder / f"{host}.results" for host in plan["hosts"]}
    for host, file in files.items():
        own = [record for record in records if record[record["role"]] == host]
        results = [result for record in own if (result := result_of(record, positions)) is not None]
        file.write_text("".join(f"{result.to_line()}\n" for result in results), encoding="ascii")
    test = plan["tests"][0]["name"]
    matrix = Matrix.read([(plan, files)], [test])[test]
    matrix = matrix.with_limits([[RATE_GBPS] * len(plan["hosts"])] * RAILS)
    return tuple(dict.fromkeys(verdict.kind if verdict.host is None else plan["hosts"][verdict.host] for verdict in localize(matrix)))


def hostile(
    folder: Path, hosts: int = HOSTS, kinds: Mapping[str, Kind] | None = None, perftest_seconds: float = PERFTEST_SECONDS
) -> Iterator[Line]:
    """Measure the kinds, all if none is given, against the quiet sweep. Raises RuntimeError where that one is not whole."""
    quiet = sweep(folder / "quiet", hosts, perftest_seconds=perftest_seconds)
    if quiet.lost or quiet.accused or not quiet.ended:
        raise RuntimeError(f"the quiet sweep is not whole: {quiet}")
    yield figure("pairs_hostile_quiet_s", quiet.seconds, HOSTILE, note=f"{hosts} hosts, {RAILS} rails, perftest {perftest_seconds:g} s")
    for name, kind in (KINDS if kinds is None else kinds).items():
        yield from lines(name, kind, sweep(folder / name, hosts, kind, perftest_seconds), quiet)


def lines(name: str, kind: Kind, swept: Swept, quiet: Swept) -> Iterator[Line]:
    """What was lost or said wrongly, and the time: a ratio, but seconds where one host is held up, for they do not grow with the sweep."""
    wrong = swept.lost + len(swept.accused) + (not swept.ended)
    yield figure(f"pairs_hostile_{name}_lost", wrong, HOSTILE, note=swept.note(quiet))
    if kind.holds_up:
        yield figure(f"pairs_hostile_{name}_more_s", swept.seconds - quiet.seconds, HOSTILE)
    else:
        yield figure(f"pairs_hostile_{name}_ratio", swept.seconds / quiet.seconds, HOSTILE)
