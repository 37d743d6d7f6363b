# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of the stage of pairs: sweeps against the wire's own time, and verdicts against what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench import lab_sweep, runners
from tests.bench.bars import Line, figure, rounded
from tests.bench.localization import Compared, compare, verdict_1024x8
from tests.bench.verdict_fleet import DEAD_NIC, SLOW_HOST, SLOW_NIC
from tests.simulator.sweeps import DEVELOPMENT_KINDS, HELD_OUT_KINDS, HELD_OUT_SEEDS

ROOT = Path(__file__).parents[2]
HOSTS = 64
SEQUENTIAL_PAIRS = 16
PAIRS = ("python", "-m", "tests.bench.figures", "pairs")
VERDICTS = ("python", "-m", "tests.bench.figures", "verdicts")
LOCALIZATION = ("python", "-m", "tests.bench.localization", "held-out")
DEAD_HOST_KINDS = frozenset({"dead", "refused", "timeout", "exit code"})
"""What becomes of a measurement whose partner is not there, or goes in its middle."""


def pairs(folder: Path) -> Iterator[Line]:
    """Runners on this machine with a perftest that only waits, the newest sweep of the lab, and a host's own schedule."""
    yield from sweeps(folder)
    yield lab(ROOT / "artifacts")
    yield figure("schedule_ms_4096x8", runners.schedule_ms(folder), PAIRS)


def sweeps(
    folder: Path,
    hosts: int = HOSTS,
    *,
    one_by_one: int = SEQUENTIAL_PAIRS,
    dead: int = runners.DEAD,
    killed: int = runners.KILLED,
    start_deadline_seconds: float = runners.START_DEADLINE_SECONDS,
) -> Iterator[Line]:
    """All pairs of hosts at once, the same with a dead host and one that dies, and some pairs one by one.

    Raises RuntimeError where measurements failed that had no reason to, for then something else was measured.
    """
    whole = runners.sweep(folder / "whole", hosts)
    check_sweep(whole, hosts)
    yield figure("pairs_overhead_64", whole.overhead, PAIRS, note=f"{whole.seconds:.1f} s, {whole.rounds} rounds")
    broken = runners.sweep(folder / "broken", hosts, dead=dead, killed=killed, start_deadline_seconds=start_deadline_seconds)
    check_sweep(broken, hosts, out=2)
    note = f"{broken.seconds:.1f} s, of them {broken.connect_timeouts_seconds:.1f} s connect timeouts; failed: {_counted(broken.failed)}"
    yield figure("pairs_overhead_64_dead_host", broken.overhead, PAIRS, note=note)
    pair_seconds = runners.sequential_seconds(folder / "one-by-one", one_by_one)
    faster = pair_seconds * hosts * (hosts - 1) / 2 / whole.seconds
    yield figure("pairs_speedup_over_sequential", faster, PAIRS, baseline=1.0, note=f"{pair_seconds:.2f} s a pair one by one")


def check_sweep(measured: runners.Measured, hosts: int, out: int = 0) -> None:
    """Raise RuntimeError unless all pairs of the hosts that were not out are measured on both ends, and nothing else failed oddly."""
    failed = sum(measured.failed.values())
    good, least = measured.records - failed, (hosts - out) * (hosts - out - 1)
    most = hosts * (hosts - 1) - least
    odd = set(measured.failed) - (DEAD_HOST_KINDS if out else set())
    if good < least or failed > most or odd:
        raise RuntimeError(f"{good} measurements are good, of {least} at least; failed: {_counted(measured.failed)}")


def _counted(failed: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(failed.items())) or "none"


def lab(artifacts: Path) -> Line:
    """The newest full sweep of the lab in which all went well. The bar holds from the start of the last host on."""
    found, reason = lab_sweep.newest(artifacts)
    if found is None:
        return figure("pairs_overhead_lab", None, PAIRS, reason)
    shape = f"{found.rounds} rounds, perftest {found.perftest_seconds:.1f} s"
    late = f"{found.late_seconds:.1f} s of it for hosts that were started later"
    note = f"run {found.run}: {shape}; from the first host's start on {rounded(found.most_overhead):g} times, {late}"
    return figure("pairs_overhead_lab", found.overhead, PAIRS, note=note)


def verdicts(_folder: Path) -> Iterator[Line]:
    """The method on sweeps that it was not developed on, and a large fleet's files, which lie in a folder of their own."""
    yield from localization(
        {"kinds developed on": compare(HELD_OUT_SEEDS, DEVELOPMENT_KINDS), "other kinds": compare(HELD_OUT_SEEDS, HELD_OUT_KINDS)}
    )
    yield from large_fleet(verdict_1024x8(), hosts=1024, rails=8)


def localization(parts: Mapping[str, Compared]) -> Iterator[Line]:
    """Precision and recall of the part where the method is worst; baseline: the threshold's of that part."""
    for name in ("precision", "recall"):
        reached = {words: getattr(part.method, name) for words, part in parts.items()}
        worst = min(reached, key=lambda words: reached[words])
        note = ", ".join(f"{words} {rounded(value):g}" for words, value in reached.items())
        baseline = getattr(parts[worst].baseline, name)
        note += f"; threshold {rounded(baseline):g}"
        yield figure(f"localization_{name}", reached[worst], LOCALIZATION, baseline=baseline, note=note)


def large_fleet(answer: Mapping[str, Any], hosts: int, rails: int) -> Iterator[Line]:
    """Of what verdict_1024x8 says. Raises RuntimeError unless all results were judged and exactly what is wrong was named."""
    wrong = [["host", None, SLOW_HOST, False], ["nic", *SLOW_NIC, False], ["nic", *DEAD_NIC, True]]
    if answer["results"] != hosts * (hosts - 1) // 2 * rails or sorted(answer["verdicts"], key=str) != sorted(wrong, key=str):
        raise RuntimeError(f"something else was judged: {answer['results']} results, verdicts {answer['verdicts']}")
    note = f"reading {answer['read_seconds']:.1f} s, CPU {answer['cpu_seconds']:.1f} s"
    yield figure("verdict_seconds_1024x8", answer["seconds"], VERDICTS, note=note)
    yield figure("verdict_peak_mib_1024x8", answer["mib"], VERDICTS)
    yield figure("result_bytes", answer["bytes_per_result"], VERDICTS)
