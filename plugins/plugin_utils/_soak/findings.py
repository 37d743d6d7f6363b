# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings of a soak: the rate of errors of each port, with its interval."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import CONGESTION
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.interval import bound_of_none
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.judge import BILLION, OWN, Burst, Port, Tally

STAGE, CHECK = "pairs", "soak.errors"
declare(
    {
        CHECK: Check(
            STAGE,
            "each port of [a soak](soak.md): its errors per 10^9 packets, with an interval of 95 %, against "
            "`rdma_soak.errors_per_billion_packets`; only the playbook `soak` runs it",
            "the error counters and the packets of the port before and after each slice",
            "replace the cable of a port that has errors with several partners; soak longer if the interval includes the limit",
            sources=(reads.result("slices of a soak"),),
        ),
    }
)
#: Times and counters that are listed.
MOST_TIMES, MOST_NAMES = 8, 4
NEVER = "no finished slice has this port"


def check_soak(found: Mapping[Port, Tally], planned: Mapping[str, Sequence[str]], limit: float, hours: float) -> Iterator[Finding]:
    """Yield the finding soak.errors of each planned port. planned: host → its rails. limit: errors per 10^9 packets. hours: measured."""
    expected = f"at most {limit:g} errors per 10^9 packets (rdma_soak.errors_per_billion_packets)"
    for host, rails in planned.items():
        for rail in rails:
            status, observed, remedy = _judged(host, rail, found.get((rail, host), Tally()), limit, hours)
            yield Finding(STAGE, CHECK, host, rail, status, observed, expected, remedy)


def _judged(host: str, rail: str, tally: Tally, limit: float, hours: float) -> tuple[str, str, str]:
    """Return (status, observed, remedy)."""
    if tally.interval is None:
        return UNKNOWN, _uncounted(tally) or NEVER, _read_remedy(host, rail)
    low, high = tally.interval
    observed = "; ".join(filter(None, [tally_words(tally), _left_out(tally), _uncounted(tally)]))
    if low > limit:
        return ERROR, observed, _remedy(host, rail, tally)
    if tally.errors and high > limit:
        return WARNING, observed, f"The interval includes the limit: soak longer. {_remedy(host, rail, tally)}"
    if high > limit:
        return UNKNOWN, observed, _longer(tally, limit, hours)
    return (WARNING, observed, _read_remedy(host, rail)) if tally.uncounted_errors else (OK, observed, "")


def tally_words(tally: Tally) -> str:
    """Return the rate of a port that has counted packets, in words."""
    low, high = tally.interval or (0.0, 0.0)
    if not tally.errors:
        return f"none in {tally.packets:.3g} packets of {_slices(tally.slices)}: below {high:.3g} per 10^9 packets with 95 % confidence"
    names = sorted(tally.names.items(), key=lambda item: (-item[1], item[0]))
    most = max(tally.bursts, key=lambda burst: burst.errors)
    return (
        f"{tally.errors} in {tally.packets:.3g} packets: {tally.rate:.3g} per 10^9 packets (95 %: {low:.3g} to {high:.3g}), "
        f"in {len(tally.bursts)} of {_slices(tally.slices)}, with {first_of(tally.partners, MOST_NAMES)}; "
        f"most in slice {most.number}: {most.errors}; slices that began at {_times(tally.bursts)}; "
        f"{first_of([f'{name} {by}' for name, by in names], MOST_NAMES)}"
    )


def _times(bursts: Sequence[Burst]) -> str:
    days = {time.strftime("%Y-%m-%d", time.gmtime(burst.at)) for burst in bursts}
    form = "%H:%M:%S" if len(days) == 1 else "%m-%d %H:%M"
    listed = [f"{time.strftime(form, time.gmtime(burst.at))} (slice {burst.number})" for burst in bursts]
    return f"{first_of(listed, MOST_TIMES)} UTC"


def _slices(count: int) -> str:
    return f"{count} slice{'s' if count != 1 else ''}"


def _left_out(tally: Tally) -> str:
    return f"{_slices(tally.others)} with errors of its partner left out" if tally.others else ""


def _uncounted(tally: Tally) -> str:
    """Return the slices whose counters do not show all errors, in words; "" if there are none."""
    words = "; ".join(f"{_slices(count)} not counted: {why}" for why, count in tally.unknown.items())
    return f"{words}; {tally.uncounted_errors} errors in them" if tally.uncounted_errors else words


def _remedy(host: str, rail: str, tally: Tally) -> str:
    again = "Then run the soak again."
    if tally.names.keys() <= CONGESTION:
        return (
            f"1. Compare PFC and ECN of {host} with its switch port: packets are dropped for lack of buffers. 2. Look for other traffic at "
            f"these times. 3. {again}"
        )
    if tally.names.keys() & OWN or tally.blamed:
        return (
            f"1. At these times, look into `journalctl -k` of {host} and the log of its switch. 2. Clean and reseat the cable of {rail} at "
            f"both ends, then replace it; if nothing changes, use another switch port. 3. {again}"
        )
    partner = tally.partners[0]
    return (
        f"1. {host} had errors only with {partner}, so either end may be the cause, or the path between them: soak until both have met "
        f"others. 2. Compare the counters of both switch ports. 3. {again}"
    )


def _read_remedy(host: str, rail: str) -> str:
    return (
        f"1. On {host}, look for a reboot, a reload of the driver, or a program that clears counters. 2. Compare "
        f"`ls /sys/class/infiniband/*/ports/*/*counters` for the port of {rail}. 3. Run the soak again."
    )


def _longer(tally: Tally, limit: float, hours: float) -> str:
    needed = bound_of_none() / limit * BILLION
    return (
        f"The packets are too few to show a rate below {limit:g} per 10^9: {needed:.2g} without an error are needed. 1. Soak longer: "
        f"`-e rdma_soak_hours={max(1, round(hours * needed / tally.packets + 0.5))}`, or raise rdma_soak.duty_percent."
    )
