# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of one pairwise measurement in one short line, and its conversion from the runner's raw record.

A line is a JSON array without blanks. Its cells are the fields of Result in their order (CELLS): the first nine for a measurement, all
eleven for a failure, whose value is null. The control node reads lines by the same positions.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.bandwidth import BandwidthResult
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.failure import (
    Failure,
    classify_failure,
    find_sign,
    parse_result,
    values_of,
)

ROLES = ("client", "server")
"""What the numbers 0 and 1 of a line's role mean."""
RUNNER_KINDS = ("dead", "refused", "token", "plan", "timeout", "listen", "start", "signal")
PERFTEST_KINDS = (
    "no_device",
    "port_down",
    "refused",
    "port_taken",
    "qp",
    "mtu",
    "retry_exceeded",
    "completion",
    "memory_registration",
    "gpu_memory",
    "version",
    "no_perftest",
    "timeout",
    "signal",
    "clock",
    "zero",
    "unknown",
)
KINDS = frozenset((*RUNNER_KINDS, *PERFTEST_KINDS))
"""Why a measurement failed: the runner's error classes and perftest's failures, one vocabulary."""
LINE_CHARACTERS = 200
SCHEMA = 2
VALUES = (1e-6, 1e9)
"""The smallest and largest value of a measurement, in 10^9 bit/s or µs: values outside are not real, or cannot be divided by."""
MOST_SECONDS = 1e9
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_REPORTED_BY_PERFTEST = frozenset(("timeout", "listen"))
"""The runner's error classes that perftest's own line explains better."""


@dataclass(frozen=True)
class Result:
    """One end's result of one measurement.

    rail, server, client and test are positions in the plan, role is "client" or "server". value is 10^9 bit/s for a
    bandwidth and µs for a latency; None: it failed, and only then kind (one of KINDS) and line are given. seconds is how
    long perftest ran, waited how long this end had waited for its partner, in seconds.
    """

    rail: int
    round: int
    server: int
    client: int
    test: int
    role: str
    value: float | None
    seconds: float
    waited: float
    kind: str | None = None
    line: str | None = None

    def to_line(self) -> str:
        """Return the array as text, without a newline. ASCII."""
        cells = [getattr(self, name) for name in CELLS]
        cells[ROLE] = ROLES.index(self.role)
        return _encode(cells[:KIND] if self.kind is None else cells)

    @classmethod
    def from_line(cls, text: str) -> Result:
        """Read what to_line wrote. Raises ParseError, quoting the line."""
        try:
            cells = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ParseError(f"not a result of a pair: {text!r}") from exc
        if not is_result(cells):
            raise ParseError(f"not a result of a pair: {text!r}")
        cells[ROLE] = ROLES[cells[ROLE]]
        return cls(*cells)


CELLS = tuple(field.name for field in fields(Result))
"""The cells of a line. RAIL and the others are the positions of some of them."""
RAIL, ROUND, SERVER, CLIENT, TEST, ROLE, VALUE, KIND, LINE = (
    CELLS.index(name) for name in ("rail", "round", "server", "client", "test", "role", "value", "kind", "line")
)
_LENGTHS = (KIND, len(CELLS))


def is_whole(value: object) -> bool:
    """Return whether a value of a JSON document is a whole number; true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_result(cells: object) -> bool:
    """Return whether a line's content has the form of a measurement or a failure. It is called for millions of lines."""
    if not isinstance(cells, list) or len(cells) not in _LENGTHS:
        return False
    rail, number, server, client, test, role, value, seconds, waited = cells[:KIND]
    if not (type(rail) is type(number) is type(server) is type(client) is type(test) is type(role) is int):
        return False
    if min(rail, number, server, client, test) < 0 or role not in (0, 1) or server == client:
        return False
    if not _is_duration(seconds) or not _is_duration(waited):
        return False
    if len(cells) == KIND:
        return is_value(value)
    kind, line = cells[KIND:]
    return value is None and isinstance(kind, str) and kind in KINDS and isinstance(line, str) and len(line) <= LINE_CHARACTERS


def are_measurements(rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether is_result is true for each of many rows, all of the length of a measurement. Columns are checked, not cells."""
    if not rows:
        return True
    columns = list(zip(*rows))
    numbers, (value, seconds, waited) = columns[:VALUE], columns[VALUE:]
    return (
        all(set(map(type, column)) == {int} and min(column) >= 0 for column in numbers)
        and max(columns[ROLE]) <= 1
        and not any(map(operator.eq, columns[SERVER], columns[CLIENT]))
        and _are_numbers(value)
        and VALUES[0] <= min(value)
        and max(value) <= VALUES[1]
        and all(_are_numbers(column) and min(column) >= 0 and max(column) < MOST_SECONDS for column in (seconds, waited))
    )


def _are_numbers(column: Sequence[Any]) -> bool:
    """Return whether all cells are numbers, none of them NaN, which hides from min and max."""
    return set(map(type, column)) <= {int, float} and not any(map(operator.ne, column, column))


def is_value(cell: Any) -> bool:
    """Return whether a cell is a number that a measurement can have."""
    return type(cell) in (int, float) and VALUES[0] <= cell <= VALUES[1]


def _is_duration(cell: Any) -> bool:
    return type(cell) in (int, float) and 0 <= cell < MOST_SECONDS


@dataclass(frozen=True)
class Positions:
    """The positions of the names in a plan (schema 2), built once for many records; commands in the order of the tests."""

    sweep: str
    hosts: Mapping[str, int]
    rails: Mapping[str, int]
    tests: Mapping[str, int]
    commands: tuple[str, ...]

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Positions:
        """Return the positions of a plan's names. Raises ParseError if it is not a plan."""
        try:
            names = [plan["hosts"], [rail["name"] for rail in plan["rails"]], [test["name"] for test in plan["tests"]]]
            hosts, rails, tests = (dict(zip(some, range(len(some)))) for some in names)
            return cls(str(plan["sweep"]), hosts, rails, tests, tuple(str(test["command"]) for test in plan["tests"]))
        except (KeyError, TypeError) as exc:
            raise ParseError(f"not a plan of a sweep: {type(exc).__name__} {exc}") from exc


def result_of(record: Mapping[str, Any], plan: Mapping[str, Any] | Positions) -> Result | None:
    """Return the result of one record of the runner; None for a server that ended well, which its client reports.

    For many records, pass Positions.of(plan). Raises ParseError if it is not a record, or if its sweep, rail, host or test is
    not in the plan.
    """
    positions = plan if isinstance(plan, Positions) else Positions.of(plan)
    try:
        return _result_of(record, positions)
    except (KeyError, TypeError, AttributeError) as exc:
        raise ParseError(f"not a record of the plan {positions.sweep}: {type(exc).__name__} {exc}") from exc


def _result_of(record: Mapping[str, Any], positions: Positions) -> Result | None:
    role = record["role"]
    test = positions.tests[record["test"]]
    server, client = positions.hosts[record["server"]], positions.hosts[record["client"]]
    _check(record, positions.sweep)
    failure = _failure(record)
    if failure is None and role == "server":
        return None
    value, failure = (None, failure) if failure else _measured(record, positions.commands[test])
    return Result(
        positions.rails[record["rail"]],
        record["round"],
        server,
        client,
        test,
        role,
        value,
        round(record["seconds"], 2),
        round(record["waited_seconds"], 2),
        None if failure is None else failure.kind,
        None if failure is None else _short(failure.line),
    )


def _check(record: Mapping[str, Any], sweep: str) -> None:
    """Raise ParseError if the fields of the record, apart from names, do not have the types that the runner writes."""
    problem = None
    if record.get("sweep", sweep) != sweep:
        problem = "another sweep's"
    elif record.get("schema", SCHEMA) != SCHEMA:
        problem = f"of schema {record['schema']!r}"
    elif record["role"] not in ROLES or record["server"] == record["client"]:
        problem = "neither a client's nor a server's"
    elif not is_whole(record["round"]) or record["round"] < 0:
        problem = f"of round {record['round']!r}"
    elif not _is_duration(record["seconds"]) or not _is_duration(record["waited_seconds"]):
        problem = "of a duration that no clock shows"
    elif not (record["exit_code"] is None or is_whole(record["exit_code"])):
        problem = f"of exit code {record['exit_code']!r}"
    elif not isinstance(record["stdout"], str) or not isinstance(record["stderr"], str):
        problem = "of an output that is no text"
    if problem is not None:
        raise ParseError(f"a record that is {problem}, in the sweep {sweep}: {record.get('rail')!r} {record['test']!r}")


def _failure(record: Mapping[str, Any]) -> Failure | None:
    """Return why the record is not a measurement, None if perftest ended well."""
    outputs = (record["stdout"], record["stderr"])
    argv = tuple(str(word) for word in record["argv"])
    error = record["error"]
    if error is None:
        code = record["exit_code"]
        return None if code == 0 else classify_failure(*outputs, code, argv=argv, stopped_by_caller=False)
    kind, detail = error["class"], error["detail"]
    if kind not in RUNNER_KINDS or not isinstance(detail, str):
        raise ParseError(f"an error that the runner does not know: {error!r}")
    if kind in _REPORTED_BY_PERFTEST:
        return find_sign(*outputs, argv=argv) or Failure(kind, detail)
    if kind == "start":
        sign = find_sign("", detail)
        return sign if sign and sign.kind == "no_perftest" else Failure(kind, detail)
    return Failure(kind, detail)


def _measured(record: Mapping[str, Any], command: str) -> tuple[float | None, Failure | None]:
    """Return the value of a test that ended well, or why it has none."""
    try:
        result = parse_result(record["stdout"], report_gbits=True)
    except ParseError as exc:
        return None, Failure("unknown", str(exc))
    if isinstance(result, BandwidthResult) != command.endswith("_bw"):
        return None, Failure("unknown", f"{command} printed the table of another test")
    values = values_of(result)
    value = round(values[-1], 6)
    if value == 0 or 0 in values:
        return None, classify_failure(record["stdout"], record["stderr"], 0)
    if not is_value(value):
        return None, Failure("unknown", f"{command} printed {value:g}")
    return value, None


def _short(line: str) -> str:
    """Return a text as one line without control characters, cut to LINE_CHARACTERS."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in line).split())
    return text if len(text) <= LINE_CHARACTERS else text[: LINE_CHARACTERS - 1] + "…"
