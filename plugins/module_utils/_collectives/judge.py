# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a run of nccl-tests: its exit status, its ranks, its values and its rate.

The path of the data is judged in _collectives/judge_ways.py: a run over sockets fails at any rate.
"""

from __future__ import annotations

import statistics
from collections import Counter

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.judge_ways import check_hcas, check_transport
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import (
    BUSBW_CHECK,
    EXIT_CHECK,
    RANKS_CHECK,
    STAGE,
    WRONG_CHECK,
    Expected,
    NcclTestsResult,
    Outcome,
    short_name,
)

#: The number of hosts or messages that a finding names.
_NAMED = 5


def judge(outcome: Outcome, expected: Expected) -> list[Finding]:
    """Return a finding of each check on the host that launched the run, and collective.transport and .hcas on each participating host.

    Without hosts (ValueError) nothing can be expected.
    """
    if not expected.hosts or expected.ranks < 1:
        raise ValueError(f"a run of {expected.ranks} ranks on {len(expected.hosts)} hosts")
    return [
        check_exit(outcome),
        check_ranks(outcome, expected),
        check_wrong(outcome),
        check_busbw(outcome, expected),
        *check_transport(outcome, expected),
        *check_hcas(outcome, expected),
    ]


def check_exit(outcome: Outcome) -> Finding:
    """Return `collective.exit`: status 0 and complete output; an incomplete run proves nothing, with any status."""
    expected = "exit status 0, and complete output"
    excerpt = _excerpt(outcome)
    if outcome.exit_status is None:
        observed = f"{outcome.problem or 'it did not run to its end'}{excerpt}"
        return _finding(outcome, EXIT_CHECK, UNKNOWN, observed, expected, remedy=_look(outcome))
    observed = f"exit status {outcome.exit_status}{excerpt}"
    if outcome.exit_status != 0:
        return _finding(outcome, EXIT_CHECK, ERROR, observed, expected, remedy=_look(outcome))
    if outcome.test is None:
        why = outcome.problem or "no output of nccl-tests"
        return _finding(outcome, EXIT_CHECK, UNKNOWN, f"exit status 0, {why}", expected, remedy=_look(outcome))
    if outcome.test.truncated:
        return _finding(outcome, EXIT_CHECK, UNKNOWN, f"exit status 0, but the output is cut off{excerpt}", expected, remedy=_look(outcome))
    return _finding(outcome, EXIT_CHECK, OK, "exit status 0", expected)


def _excerpt(outcome: Outcome) -> str:
    lines = [*(outcome.test.errors if outcome.test else ())]
    if outcome.log is not None:
        lines += [line.text for line in (*outcome.log.warnings, *outcome.log.errors)]
    return "".join(f"; {line}" for line in lines[:_NAMED] or filter(None, [outcome.launcher]))


def _look(outcome: Outcome) -> str:
    return f"Run it again on {outcome.host} with NCCL_DEBUG=INFO, and read its output from the first warning on."


def check_ranks(outcome: Outcome, expected: Expected) -> Finding:
    """Return `collective.ranks`: as many as planned, in one run, on the planned hosts."""
    wanted = f"one run of {_many(expected.ranks, 'rank')} on {first_of(sorted(expected.hosts), _NAMED)}"
    test = outcome.test
    # Communicators split from a larger one have fewer.
    reported = {max(rank.nranks for rank in outcome.log.ranks)} if outcome.log is not None and outcome.log.ranks else set()
    if test is not None and test.runs > 1:
        seen = f"{test.runs} separate runs, of {test.nranks or 'unknown'} ranks each: nccl-tests was built without MPI"
        remedy = f"Build nccl-tests on {outcome.host} with `make MPI=1`, and check that the launcher starts this build."
        return _finding(outcome, RANKS_CHECK, ERROR, seen, wanted, remedy=remedy)
    count = test.nranks if test is not None else None
    counts = reported if count is None else reported | {count}
    if counts - {expected.ranks}:
        seen = f"{' and '.join(map(str, sorted(counts)))} ranks"
        remedy = f"On {outcome.host}, check the launcher's host file and slots, and -g and -t of nccl-tests."
        return _finding(outcome, RANKS_CHECK, ERROR, seen, wanted, remedy=remedy)
    if not counts:
        return _finding(outcome, RANKS_CHECK, UNKNOWN, "the output does not show all ranks", wanted, remedy=_look(outcome))
    return _placed(outcome, expected, wanted)


def _placed(outcome: Outcome, expected: Expected, wanted: str) -> Finding:
    """Return whether the ranks are on the planned hosts, if the output shows it."""
    names = Counter(short_name(rank.host) for rank in outcome.test.ranks) if outcome.test is not None else Counter()
    planned = {short_name(name) for name in expected.hosts.values()}
    strange, absent = sorted(names.keys() - planned), sorted(planned - names.keys())
    if names and (strange or absent):
        parts = [f"ranks on {', '.join(strange[:_NAMED])}"] if strange else []
        parts += [f"none on {', '.join(absent[:_NAMED])}"] if absent else []
        remedy = f"On {outcome.host}, correct the launcher's host file: it starts ranks on other hosts."
        return _finding(outcome, RANKS_CHECK, ERROR, f"{expected.ranks} ranks, {', '.join(parts)}", wanted, remedy=remedy)
    return _finding(outcome, RANKS_CHECK, OK, f"{_many(expected.ranks, 'rank')} on {_many(len(planned), 'host')}", wanted)


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def check_wrong(outcome: Outcome) -> Finding:
    """Return `collective.wrong`: every size was checked, and no value was wrong. Without a check "0 OK" means nothing."""
    wanted = "values checked, none wrong"
    test = outcome.test
    if test is None or not test.rows:
        return _finding(outcome, WRONG_CHECK, UNKNOWN, "no result rows", wanted, remedy=_look(outcome))
    wrong = {row.size_bytes: half.wrong for row in test.rows for half in row.halves if half.wrong}
    if wrong or test.out_of_bounds or test.out_of_bounds_ok is False:
        sizes = ", ".join(f"{count} at {size} bytes" for size, count in list(wrong.items())[:_NAMED])
        seen = f"wrong values: {sizes or f'{test.out_of_bounds} sizes out of bounds'}"
        remedy = (
            "Trust no result of these hosts. 1. Look for Xid and ECC errors of the GPUs: `dmesg`, `nvidia-smi -q`. "
            "2. Run halves of the hosts to find the bad one."
        )
        return _finding(outcome, WRONG_CHECK, ERROR, seen, wanted, remedy=remedy)
    unchecked = [row.size_bytes for row in test.rows if not any(_was_checked(half.wrong, half.deviation) for half in row.halves)]
    if unchecked or test.out_of_bounds is None:
        seen = (
            f"{len(unchecked)} of {len(test.rows)} sizes not checked" if unchecked else "the output ends before the count of wrong values"
        )
        return _finding(outcome, WRONG_CHECK, UNKNOWN, seen, wanted, remedy="Run it with -c 1.")
    return _finding(outcome, WRONG_CHECK, OK, f"{len(test.rows)} sizes checked, none wrong", wanted)


def _was_checked(wrong: int | None, deviation: float | None) -> bool:
    return wrong is not None or deviation is not None


def check_busbw(outcome: Outcome, expected: Expected) -> Finding:
    """Return `collective.busbw`: the median of the large sizes, both halves, against the expected rate. There is no upper limit."""
    limit = expected.gbytes_per_s
    wanted = f"at least {expected.warn_below:g} of {limit:.4g} GB/s" if limit else expected.no_limit or "a rate to compare with"
    test = outcome.test
    figures = large_busbw(test, expected.large_bytes) if test is not None and test.runs == 1 else []
    if not figures:
        seen = f"no figure at {expected.large_bytes} bytes or more"
        return _finding(
            outcome, BUSBW_CHECK, UNKNOWN, seen, wanted, remedy=f"Run it again on {outcome.host} with large sizes (-b 1G -e 8G)."
        )
    median = statistics.median(figures)
    seen = f"{median:.4g} GB/s at {expected.large_bytes} bytes and more"
    seen += f", lowest {min(figures):.4g}, highest {max(figures):.4g}" if len(figures) > 1 else ""
    if not limit:
        status = NOT_APPLICABLE if expected.no_limit else UNKNOWN
        remedy = "" if expected.no_limit else "Set rate_gbps for the compute rails, or rdma_collectives.min_busbw_gbps."
        return _finding(outcome, BUSBW_CHECK, status, seen, wanted, remedy=remedy)
    ratio = median / limit
    if median >= expected.warn_below * limit:
        return _finding(outcome, BUSBW_CHECK, OK, seen, wanted, ratio=ratio)
    if median >= expected.fail_below * limit:
        return _finding(outcome, BUSBW_CHECK, WARNING, seen, wanted, remedy=_slow(outcome), ratio=ratio)
    wanted = f"at least {expected.fail_below:g} of {limit:.4g} GB/s"
    return _finding(outcome, BUSBW_CHECK, ERROR, seen, wanted, remedy=_slow(outcome), ratio=ratio)


def large_busbw(test: NcclTestsResult, large_bytes: int) -> list[float]:
    """Return busbw of the large sizes in GB/s, both halves."""
    halves = [half for row in test.rows if row.size_bytes >= large_bytes for half in row.halves]
    return [half.busbw_gbytes_per_s for half in halves if half.busbw_gbytes_per_s is not None]


def _slow(outcome: Outcome) -> str:
    return (
        f"1. Check collective.transport and collective.hcas of {outcome.subject}. 2. Run the pairs stage for its hosts. "
        "3. Run halves of the hosts to find a slow one."
    )


def _finding(
    outcome: Outcome, check: str, status: str, observed: str, expected: str, *, remedy: str = "", ratio: float | None = None
) -> Finding:
    return Finding(STAGE, check, outcome.host, outcome.subject, status, observed, expected, remedy, rate_ratio=ratio)
