# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a sweep on a host: the received plan, and the runner's records, collected in pieces."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import LINE_CHARACTERS, Positions, Result, is_whole, result_of

#: One answer has the raw output of at most this many failed records, and at most this many characters of each output.
EVIDENCE_RECORDS = 32
EVIDENCE_CHARACTERS = 4096
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Piece:
    """The complete lines of a part of a results file.

    records: the lines that are records; unreadable: the lines that are not. next_byte: the position after the last of them, counted from
    the beginning of the part. It excludes the last word and a line that is still being written.
    last_word: the runner's, if nothing follows it.
    """

    records: list[dict[str, Any]]
    unreadable: list[str]
    next_byte: int
    last_word: dict[str, Any] | None


@dataclass(frozen=True)
class Harvest:
    """The evaluation of a piece. results: in the form of _pair_result; failures: raw evidence of at most EVIDENCE_RECORDS.

    unreadable: how many records are invalid or belong to no meeting of the plan. strangers: how often a process other than the client had
    connected to perftest's server, so that the measurement was repeated.
    """

    results: list[list[Any]]
    failures: list[dict[str, Any]]
    unreadable: int
    strangers: int = 0


def unpack_plan(packed: str) -> bytes:
    """Return the gzip file in a packed plan (base64). Raises ParseError."""
    try:
        content = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ParseError(f"the plan is not base64: {exc}") from exc
    if not content.startswith(_GZIP):
        raise ParseError(f"the plan is not packed by gzip: it begins with {quoted(content[:8])}")
    return content


def parse_plan(content: bytes) -> dict[str, Any]:
    """Parse plan.json, plain or packed by gzip. Raises ParseError."""
    try:
        plan = json.loads(gzip.decompress(content) if content.startswith(_GZIP) else content)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as exc:
        raise ParseError(f"not the plan of a sweep: {exc}") from exc
    if not isinstance(plan, dict) or plan.get("schema") != 2:
        raise ParseError(f"not a plan of schema 2: {str(plan)[:LINE_CHARACTERS]}")
    return plan


def parse_last_word(tail: bytes) -> dict[str, Any] | None:
    """Return the runner's last line {"finished": …}, if a results file ends with one."""
    *_before, last, rest = (b"\n" + tail).rsplit(b"\n", 2)
    return _last_word(last) if not rest else None


def parse_piece(data: bytes) -> Piece:
    """Parse a part of a results file. The part begins at the start of a line.

    A last word that is followed by records comes from an earlier run of a resumed sweep.
    """
    records: list[dict[str, Any]] = []
    unreadable: list[str] = []
    last_word, position, next_byte = None, 0, 0
    for line in data.split(b"\n")[:-1]:
        position += len(line) + 1
        last_word = _last_word(line)
        if last_word is None:
            next_byte = position
            found = _object(line)
            if found is None:
                unreadable.append(line.decode("utf-8", "replace"))
            else:
                records.append(found)
    return Piece(records, unreadable, next_byte, last_word)


def harvest(piece: Piece, plan: Mapping[str, Any]) -> Harvest:
    """Return the compact results of a piece. An invalid record fails as "unknown" at its own place, if it has one."""
    results: list[list[Any]] = []
    failures: list[dict[str, Any]] = [{"kind": "unknown", "record": line[:EVIDENCE_CHARACTERS]} for line in piece.unreadable]
    unreadable = len(piece.unreadable)
    positions = Positions.of(plan)
    for record in piece.records:
        try:
            result = result_of(record, positions)
        except ParseError as exc:
            result = _broken(record, positions, str(exc))
            if result is None:
                unreadable += 1
                failures.append({"kind": "unknown", "record": json.dumps(record)[:EVIDENCE_CHARACTERS]})
        if result is not None:
            results.append(json.loads(result.to_line()))
            if result.kind is not None and len(failures) < EVIDENCE_RECORDS:
                failures.append(_evidence(record, result))
    strangers = (record.get("strangers", 0) for record in piece.records if record.get("role") == "server")
    return Harvest(results, failures[:EVIDENCE_RECORDS], unreadable, sum(number for number in strangers if is_whole(number)))


def _broken(record: Mapping[str, Any], positions: Positions, why: str) -> Result | None:
    """Return an invalid record as a failure at its place; None if it has no place in the plan."""
    try:
        rail, test = positions.rails[record["rail"]], positions.tests[record["test"]]
        server, client = positions.hosts[record["server"]], positions.hosts[record["client"]]
        place = (rail, record["round"], server, client, test, record["role"])
        return Result.from_line(Result(*place, None, 0.0, 0.0, "unknown", why[:LINE_CHARACTERS]).to_line())
    except (KeyError, ValueError, TypeError):
        return None


def _evidence(record: Mapping[str, Any], result: Result) -> dict[str, Any]:
    kept = ("rail", "round", "server", "client", "test", "role", "argv", "exit_code", "error")
    outputs = {name: _cropped(str(record.get(name) or "")) for name in ("stdout", "stderr")}
    more = {name: record[name] for name in ("probe", "clock_source", "strangers") if record.get(name) is not None}
    return {"kind": result.kind, "line": result.line, **{name: record.get(name) for name in kept}, **outputs, **more}


def _cropped(text: str) -> str:
    """Return a text cut to length: a quarter from its beginning, the rest from its end, where programs report why they stop."""
    if len(text) <= EVIDENCE_CHARACTERS:
        return text
    gap = f"\n[{len(text)} characters, the middle is left out]\n"
    head = EVIDENCE_CHARACTERS // 4
    return text[:head] + gap + text[len(text) - (EVIDENCE_CHARACTERS - head - len(gap)) :]


def _last_word(line: bytes) -> dict[str, Any] | None:
    found = _object(line)
    return found if found is not None and "finished" in found else None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
