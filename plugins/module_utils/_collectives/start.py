# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start one run of nccl-tests on this host, wait for it, read it and judge it.

Its output goes through a file, because a large job writes much.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Spooler
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import (
    MPIRUN,
    TIMED_OUT,
    NcclRun,
    command,
    deadline_seconds,
    environment,
    untangled,
    whole_sentences,
)
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.judge import judge, large_busbw
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.parse import begins_row, parse_nccl_tests
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import Expected, NcclTestsResult, Outcome
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import before_log
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.log import parse_nccl_log
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import NcclLog

#: The maximum length of a message, in characters.
MOST = 400
_RULER = frozenset("-=*#")


def launcher_words(text: str) -> str:
    """Return the lines that are not from nccl-tests, rulers or blank, as one: Open MPI's messages have several, between rulers.

    text: no log.
    """
    lines = (" ".join(line.split()) for line in text.splitlines())
    return " ".join(line for line in lines if line and line[0] != "#" and not _RULER.issuperset(line) and not begins_row(line))[:MOST]


#: The number of returned warnings and errors of a log.
_NAMED = 20
#: The maximum size of output that is not a log: a run prints a few hundred such lines, and the rest does not explain a failure.
_MOST_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Ran:
    """A finished run, and its judgment."""

    outcome: Outcome
    seconds: float
    findings: tuple[Finding, ...]


def run_of(options: Mapping[str, Any]) -> NcclRun:
    """Return a run from the module's options, whose names are those of its fields; as_root is allow_root there."""
    names = {field.name for field in fields(NcclRun)}
    given = {name: value for name, value in options.items() if name in names and value is not None}
    given["environment"] = {name: str(value) for name, value in (options.get("environment") or {}).items()}
    lists = {name: tuple(options.get(name) or ()) for name in ("hosts", "launcher_arguments")}
    return NcclRun(**{**given, **lists, "as_root": bool(options.get("allow_root"))})


def expected_of(options: Mapping[str, Any], run: NcclRun, host: str) -> Expected:
    """Return the expectations of a run, from the module's option `expected`. host: the host of the run, if the option has none."""
    names = options.get("names") or {host: os.uname().nodename}
    return Expected(
        ranks=run.ranks,
        hosts=names,
        gbytes_per_s=options.get("gbytes_per_s"),
        no_limit=options.get("no_limit") or "",
        hcas={name: frozenset(devices) for name, devices in (options.get("hcas") or {}).items()},
        gdr=options.get("gdr"),
        **{name: options[name] for name in ("all_hcas", "fail_below", "warn_below", "large_bytes") if options.get(name) is not None},
    )


def described(ran: Ran, expected: Expected) -> dict[str, Any]:
    """Return a run for the module's result, without its findings."""
    test = ran.outcome.test
    figures = large_busbw(test, expected.large_bytes) if test is not None else []
    return {
        "passed": not stopping(ran.findings),
        "exit_status": ran.outcome.exit_status,
        "seconds": ran.seconds,
        "busbw_gbytes_per_s": statistics.median(figures) if figures else None,
        "result": None if test is None else asdict(test),
        "log": log_summary(ran.outcome.log),
    }


def run_nccl(run: NcclRun, expected: Expected, *, host: str, subject: str, spooler: Spooler, output_file: str | None = None) -> Ran:
    """Start a run, wait for it and judge it. output_file: the path of its raw output, None for no file.

    A command that is missing or does not end is a result as well. Raises ValueError for an invalid run, OSError for the file.
    """
    argv = command(run)
    with tempfile.TemporaryDirectory(prefix="rdma-nccl-") as folder:
        path = output_file or os.path.join(folder, "output")
        began = time.monotonic()
        status, problem = _start(run, argv, path, spooler)
        seconds = time.monotonic() - began
        if run.launcher == MPIRUN and status in TIMED_OUT and seconds >= run.timeout_seconds:
            # A run that its launcher has stopped after the time limit did not run to its end.
            status, problem = None, f"{argv[0]} has ended it after {run.timeout_seconds} seconds"
        outcome = read_output(path, host=host, subject=subject, exit_status=status, problem=problem)
    return Ran(outcome, seconds, tuple(judge(outcome, expected)))


def _start(run: NcclRun, argv: list[str], path: str, spooler: Spooler) -> tuple[int | None, str]:
    """Return the exit status and the problem."""
    try:
        return spooler.run_into(argv, path, environment=environment(run), timeout_seconds=deadline_seconds(run)), ""
    except CommandError as error:
        return None, str(error).replace(" ".join(argv), argv[0])


def read_output(path: str, *, host: str, subject: str, exit_status: int | None, problem: str = "") -> Outcome:
    """Return the parsed output of a run, which may be a gigabyte of log."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        log = parse_nccl_log(untangled(lines))
    with open(path, encoding="utf-8", errors="replace") as lines:
        text = "".join(_not_log(whole_sentences(untangled(lines))))
    try:
        test: NcclTestsResult | None = parse_nccl_tests(text)
    except ParseError as error:
        test, problem = None, problem or str(error)
    launcher = launcher_words(text) if exit_status != 0 else ""
    return Outcome(host, subject, exit_status, test, log if log.lines else None, problem, launcher)


def _not_log(lines: Iterator[str]) -> Iterator[str]:
    """Return the lines that are not NCCL's log, up to the size limit."""
    left = _MOST_BYTES
    for line in lines:
        head = before_log(line)
        if head is None or head.strip():
            left -= len(line)
            if left < 0:
                return
            yield line


def log_summary(log: NcclLog | None) -> dict[str, Any] | None:
    """Return the summary of a log for a person. Its size depends on the number of transports, not on the cluster."""
    if log is None:
        return None
    ways: Counter[str] = Counter()
    for channel in log.channels:
        ways[f"{channel.transport}/{channel.kind}{'/GDRDMA' if channel.gdr else ''}"] += channel.count
    return {
        "versions": list(log.versions),
        "networks_in_use": log.networks_in_use,
        "plugins": list(log.plugins),
        "nvls": log.nvls,
        "nnodes": log.nnodes,
        "channels": dict(sorted(ways.items())),
        "adapters": sorted({channel.adapter for channel in log.channels if channel.adapter}),
        "warnings": [asdict(line) for line in log.warnings[:_NAMED]],
        "errors": [asdict(line) for line in log.errors[:_NAMED]],
    }
