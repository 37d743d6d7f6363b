# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of the pairs gate on each port: its bandwidth, its latency, and its error counters under load.

The blame is determined from all measurements at once (_pairs/verdict/verdict.py): a good port with a bad partner is not in error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import FLAPS
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.counters import ERROR_KINDS, FEWEST_ERRORS, FEWEST_FLAPS, FLAP_KINDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import (
    LatencyBounds,
    Limit,
    is_software,
    judge_bandwidth,
    judge_latency,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.figures import Figure
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.reader import Refused
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import NoLimit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.judged import Judged
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.words import FAILED, SLOW_SOFTWARE, steps

declare(
    {
        "pair.bandwidth": Check(
            "pairs",
            "each rail of a host: its bandwidth with good partners, and whether a verdict names it",
            "perftest's own output; a proof of an earlier run; the expected value from link, MTU and PCIe path",
            "check MTU, flow control, cable or optic, PCIe, NUMA, in this order; [the pairs](pairs.md) explains how the cause is found",
            "the fraction of the limit of link, MTU and PCIe path below which it is an error, instead of `rdma_pairs.fail_below`; for "
            "software devices the fraction of the fleet's level, instead of `rdma_pairs.software_fail_below`",
            follows=(*NO_DEVICE, "link.state", "network.gid", "network.path_mtu"),
            repeats=("network.path_mtu",),
            sources=(reads.SWEEP,),
        ),
        "pair.latency": Check(
            "pairs",
            "each rail of a host: the median latency with good partners; not for software devices",
            "`ib_write_lat` or another, 2 bytes",
            "check C-states, the NIC's NUMA node, and the number of switches in between",
            "latency in µs that is an error, instead of 5 (InfiniBand and RoCE; double for `ib_read_lat`)",
            sources=(reads.SWEEP,),
        ),
        "pair.clock": Check(
            "pairs",
            "perftest on each measured host: a warning if it could not calibrate its clock (3 attempts), with the rails that have no "
            "measurement left; the other measurements count",
            "perftest's own output; `/sys/devices/system/clocksource/clocksource0/current_clocksource` at that moment",
            "check `host.clocksource`; stop other work on the host, then measure again",
            sources=(reads.result("attempts of perftest"),),
        ),
        "pair.results": Check(
            "pairs",
            "the lines of each host's results: `unknown` if a line is not a result, or not one of a measurement planned for this host. "
            "The line is ignored; other hosts that it names keep their own results",
            "the output of the host's pair runner in `/run/rdma-cluster/pairs`",
            "run the pairs stage again; if it persists, find the program on the host that writes there",
            sources=(reads.result("lines of the results"),),
        ),
        "pair.errors": Check(
            "pairs",
            "the increase of the error counters of each measured port under load; not for software devices",
            "`/sys/class/infiniband/*/ports`, `ethtool -S`, before and after the sweep",
            "as for `link.errors`",
            sources=(reads.result("port counters"),),
        ),
    }
)

STAGE = "pairs"
BANDWIDTH_CHECK, LATENCY_CHECK, ERRORS_CHECK, CLOCK_CHECK = "pair.bandwidth", "pair.latency", "pair.errors", "pair.clock"
RESULTS_CHECK = "pair.results"
ORDER = "Check in this order: MTU, flow control, cable or optic, PCIe generation and lanes, NUMA."
#: A port is equally slow with all partners if its lowest figure is at least this share of its highest.
EVEN = 0.9
LATENCY_REMEDY = (
    "On {host}: 1. Disable deep C-states. 2. Check that the test runs on the NUMA node of the NIC. 3. Count the switches on the path."
)


@dataclass(frozen=True)
class Port:
    """One host's rail at the gate. limit: its limit. figure: its figure, in this run's sweep or in its proof (then run is set).

    verdicts: those that name it. too_fast: measurements above the maximum.
    """

    host: str
    rail: str
    limit: Limit | NoLimit
    figure: Figure
    verdicts: tuple[Judged, ...] = ()
    too_fast: int = 0
    run: str = ""


def check_bandwidth(port: Port, settings: Mapping[str, Any]) -> Finding:
    """Return the finding pair.bandwidth. settings: the intent's rdma_pairs."""
    if port.verdicts and not port.too_fast:
        worst = min(port.verdicts, key=lambda each: (ERROR, UNKNOWN, WARNING, OK).index(each.status))
        words = (worst.observed, worst.expected, worst.remedy)
        return Finding(STAGE, BANDWIDTH_CHECK, port.host, port.rail, worst.status, *words, rate_ratio=port.figure.ratio)
    status, expected = _judge(port, settings)
    remedy = "" if status == OK else _remedy(port, status)
    return Finding(STAGE, BANDWIDTH_CHECK, port.host, port.rail, status, _observed(port), expected, remedy, rate_ratio=port.figure.ratio)


def _judge(port: Port, settings: Mapping[str, Any]) -> tuple[str, str]:
    figure, limit = port.figure, port.limit
    if figure.median is None or figure.ratio is None:
        return UNKNOWN, "a measurement with at least one good partner"
    if port.too_fast and isinstance(limit, Limit):
        return ERROR, f"at most {limit.ceiling_gbps:.4g} Gb/s; more is impossible ({limit.reason})"
    if figure.missing:
        return UNKNOWN, "a result for every planned measurement"
    if isinstance(limit, Limit):
        return _against(limit, figure.median, figure.ratio, settings)
    if limit.status == UNKNOWN:
        return UNKNOWN, f"a limit to compare with: {limit.reason}"
    least = max(settings["floor_gbps"], settings["software_fail_below"] * figure.median / figure.ratio)
    return (OK if figure.median >= least else ERROR), f"at least {least:.3g} Gb/s ({limit.reason}: compared with the fleet's level)"


def _against(limit: Limit, gbps: float, ratio: float, settings: Mapping[str, Any]) -> tuple[str, str]:
    if gbps < settings["floor_gbps"]:
        return ERROR, f"at least {settings['floor_gbps']:.3g} Gb/s (rdma_pairs.floor_gbps)"
    return judge_bandwidth(ratio * limit.gbps, limit, settings["fail_below"], settings["warn_below"])


def _observed(port: Port) -> str:
    figure = port.figure
    if figure.median is None:
        return f"nothing measured: {figure.failed} measurements failed, {figure.missing} left no record"
    parts = [f"{figure.median:.4g} Gb/s with {figure.partners} partner{'s' if figure.partners != 1 else ''}"]
    if figure.lowest != figure.highest:
        parts.append(f"lowest {figure.lowest:.4g}, highest {figure.highest:.4g}")
    if port.too_fast:
        parts.append(f"{port.too_fast} of them above the possible maximum")
    if figure.missing:
        parts.append(f"{figure.missing} planned measurements left no record")
    if port.run:
        parts.append(f"proven by run {port.run}")
    return ", ".join(parts)


def _remedy(port: Port, status: str) -> str:
    if port.too_fast:
        return f"Something else was measured: check that {port.rail} of {port.host} is the planned device and cable."
    if status == UNKNOWN:
        return f"1. Run the pairs stage again. 2. If this remains, fix the findings of the driver, link and network stages on {port.host}."
    if is_software(port.limit):
        texts = (each.format(host=port.host, rail=port.rail) for each in SLOW_SOFTWARE[:2])
        return steps(*texts, "Run the pairs stage again while the hosts are idle")
    lowest, highest = port.figure.lowest, port.figure.highest
    is_even = lowest is not None and highest is not None and lowest >= EVEN * highest
    even = f"All partners are equally slow, so all of {port.rail} may be slow."
    return f"{even if is_even else f'On {port.rail}, the bandwidth differs by partner.'} {ORDER}"


def check_clock(host: str, lost: int, rails: Sequence[str], partners: Sequence[str], source: str | None) -> Finding:
    """Return the finding on perftest's clock on a host. lost: measurements lost by its calibration.

    rails: those without any measurement left. partners: hosts whose clock caused a loss on these rails. source: the kernel's clock source,
    None if unknown.
    """
    seen = []
    if lost:
        named = f" (clock source {source})" if source else ""
        seen.append(f"perftest could not calibrate its clock on {host}{named}, which cost {lost} measurement{'s' if lost != 1 else ''}")
    if partners:
        seen.append(f"perftest could not calibrate its clock on {', '.join(partners)}")
    if rails:
        seen.append(f"nothing measured on {', '.join(rails)}")
    expected = "a clock source that perftest can calibrate: tsc"
    where = host if lost else " and ".join(partners)
    remedy = steps(*(each.format(host=where) for each in FAILED["clock"]))
    return Finding(STAGE, CLOCK_CHECK, host, "clock", WARNING, "; ".join(seen), expected, remedy)


def check_results(host: str, refused: Sequence[Refused]) -> Finding:
    """Return the finding on the ignored lines of a host's results, of each sweep. They do not count for the hosts that they name."""
    count = sum(each.lines for each in refused)
    observed = f"ignored {count} line{'s' if count != 1 else ''} of its results: {refused[0].words}"
    remedy = steps(
        f"Run the pairs stage again: it replaces the results of {host}",
        f"If the lines appear again: on {host}, read `journalctl -u 'rdma-pairs-*'` and find the program that writes in "
        "`/run/rdma-cluster/pairs`",
    )
    return Finding(STAGE, RESULTS_CHECK, host, "results", UNKNOWN, observed, "results of its own measurements only", remedy)


def check_latency(port: Port, usec: float | None, bounds: LatencyBounds | NoLimit) -> Finding:
    """Return the finding pair.latency. usec: the median of the port with good partners."""
    status, expected = judge_latency(usec, bounds)
    observed = "not measured" if usec is None else f"{usec:.3g} µs (median of {port.rail})"
    remedy = "" if status in (OK, NOT_APPLICABLE) else LATENCY_REMEDY.format(host=port.host)
    return Finding(STAGE, LATENCY_CHECK, port.host, port.rail, status, observed, expected, remedy)


def _not_compared(host: str, rail: str, expected: str, *, software: bool) -> Finding:
    """Return the finding pair.errors of a port without counters from both before and after the sweep."""
    why = "its counters before and after the sweep cannot be compared"
    if software:
        return Finding(STAGE, ERRORS_CHECK, host, rail, NOT_APPLICABLE, f"{why}; errors of software devices are not judged", expected)
    remedy = (
        f"1. On {host}, check whether it rebooted or reloaded the driver of {rail} during the sweep: `uptime`, `dmesg`. "
        "2. Measure again with `-e rdma_measure=true`."
    )
    return Finding(STAGE, ERRORS_CHECK, host, rail, UNKNOWN, why, expected, remedy)


def check_errors(host: str, counters: Mapping[str, Any], rails: Iterable[tuple[str, bool]]) -> Iterator[Finding]:
    """Yield findings on a host's error counters during the sweep. counters: rail → {"seconds", "risen"}.

    rails: name, and whether it is software.
    """
    for rail, software in rails:
        of_rail = counters.get(rail)
        expected = f"fewer than {FEWEST_ERRORS} on each error counter, and fewer than {FEWEST_FLAPS} on each flap counter, under load"
        if of_rail is None:
            yield _not_compared(host, rail, expected, software=software)
            continue
        risen = {name: count for name, count in of_rail["risen"].items() if count >= (FEWEST_FLAPS if name in FLAPS else FEWEST_ERRORS)}
        observed = ", ".join(f"{name} {count}" for name, count in sorted(risen.items(), key=lambda each: -each[1])) or "none"
        observed += f" in {of_rail['seconds']:.0f} s of load"
        if software:
            yield Finding(
                STAGE, ERRORS_CHECK, host, rail, NOT_APPLICABLE, f"{observed}; a software device resends what a busy CPU drops", expected
            )
            continue
        kinds = [kind for kind in (*FLAP_KINDS, *ERROR_KINDS) if kind.counters & risen.keys()]
        status = OK if not kinds else ERROR if any(kind.can_fail for kind in kinds) else WARNING
        remedy = "" if status == OK else f"They rose under load. {ORDER}"
        yield Finding(STAGE, ERRORS_CHECK, host, rail, status, observed, expected, remedy)
