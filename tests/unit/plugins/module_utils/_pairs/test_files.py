# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans and records as they travel: packed, in pieces, garbled."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import (
    EVIDENCE_CHARACTERS,
    EVIDENCE_RECORDS,
    Harvest,
    harvest,
    parse_last_word,
    parse_piece,
    parse_plan,
    unpack_plan,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import Result
from tests.unit.plugins.module_utils._pairs.test_unit import LAST, PLAN, packed, record

TABLE = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536  200  0.5  0.25  0.000076\n-----\n"
GOOD = {"error": None, "exit_code": 0, "stdout": TABLE, "seconds": 6.2, "waited_seconds": 0.01}


def gathered(*records: dict[str, Any]) -> Harvest:
    return harvest(parse_piece("".join(json.dumps(each) + "\n" for each in records).encode()), PLAN)


def test_a_packed_plan_is_the_file_of_the_host() -> None:
    content = unpack_plan(packed())
    assert parse_plan(content) == parse_plan(json.dumps(PLAN).encode()) == PLAN


@pytest.mark.parametrize("text", ["", "{}", "%%%", base64.b64encode(b"{}").decode(), "ü"])
def test_what_is_no_packed_plan(text: str) -> None:
    with pytest.raises(ParseError, match="the plan is not"):
        unpack_plan(text)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema": 1}',
        gzip.compress(b"x", mtime=0),
        gzip.compress(b"{}" * 99, mtime=0)[:-9],
        b"\x1f\x8b\x08junk",
        b"[" * 20000,
    ],
)
def test_what_is_no_plan(content: bytes) -> None:
    with pytest.raises(ParseError, match="plan of"):
        parse_plan(content)


@pytest.mark.parametrize(
    ("tail", "finished"),
    [
        (b"", None),
        (b'{"finished": true}', None),
        (b'{"finished": true}\n', True),
        (b'cut": 1}\n{"finished": false}\n', False),
        (b'{"finished": true}\n{"round": 1}\n', None),
        (b'{"finished": true}\n{"ro', None),
        (b"7\n", None),
    ],
)
def test_the_last_word_is_the_last_whole_line(tail: bytes, finished: bool | None) -> None:
    found = parse_last_word(tail)
    assert (None if found is None else found["finished"]) is finished


def test_a_client_measures_and_a_server_keeps_its_good_end_to_itself() -> None:
    found = gathered(record(0, **GOOD), record(0, role="server", **GOOD), record(1))
    dead = "node1 at 192.168.0.1 port 18500: timed out"
    assert found.results == [[0, 0, 0, 1, 0, 0, 0.25, 6.2, 0.01], [0, 1, 0, 1, 0, 0, None, 0.0, 5.0, "dead", dead]]
    assert [(each["round"], each["kind"], each["argv"], each["exit_code"]) for each in found.failures] == [
        (1, "dead", ["ib_write_bw"], None)
    ]
    assert found.unreadable == 0


@pytest.mark.parametrize("changes", [{"stdout": None}, {"seconds": "x"}, {"exit_code": "0"}, {"error": 7}, {"argv": None}, {"sweep": "x"}])
def test_a_record_that_makes_no_sense_fails_in_its_own_place(changes: dict[str, Any]) -> None:
    found = gathered(record(0, **(GOOD | changes)))
    (cells,) = found.results
    assert cells[:10] == [0, 0, 0, 1, 0, 0, None, 0.0, 0.0, "unknown"]
    assert Result.from_line(json.dumps(cells)).line
    assert found.unreadable == 0
    assert found.failures[0]["kind"] == "unknown"


@pytest.mark.parametrize("changes", [{"rail": "rail9"}, {"server": 1}, {"client": "node1"}, {"test": []}, {"round": -1}, {"role": "both"}])
def test_a_record_without_a_place_in_the_plan_is_counted_and_kept_as_evidence(changes: dict[str, Any]) -> None:
    found = gathered(record(0, **(GOOD | changes)), record(1))
    assert [cells[1] for cells in found.results] == [1]
    assert found.unreadable == 1
    assert json.loads(found.failures[0]["record"]) == record(0, **(GOOD | changes))


@pytest.mark.parametrize("line", ["{", "[1]", "7", '"finished"', "", "\r", "[" * 20000, "\x00\xff"])
def test_a_line_that_is_no_record_is_counted(line: str) -> None:
    piece = parse_piece(line.encode("latin-1") + b"\n" + json.dumps(LAST).encode() + b"\n")
    assert (piece.records, len(piece.unreadable), piece.next_byte) == ([], 1, len(line) + 1)
    assert piece.last_word == LAST
    assert harvest(piece, PLAN).unreadable == 1


def test_evidence_is_bounded_in_number_and_size() -> None:
    failed = {"error": None, "exit_code": 1, "stderr": "Couldn't " + "x" * 20000 + " at the end"}
    found = gathered(*(record(number, **failed) for number in range(2 * EVIDENCE_RECORDS)))
    assert (len(found.results), len(found.failures)) == (2 * EVIDENCE_RECORDS, EVIDENCE_RECORDS)
    stderr = found.failures[0]["stderr"]
    assert len(stderr) == EVIDENCE_CHARACTERS
    assert stderr.startswith("Couldn't xxx")
    assert stderr.endswith(" at the end")
    assert f"[{20000 + 20} characters, the middle is left out]" in stderr


def test_strangers_are_counted_by_the_server_that_they_met() -> None:
    server = {"role": "server", **GOOD}
    found = gathered(
        record(0, strangers=1, **GOOD), record(0, strangers=1, **server), record(1, strangers=2, **server), record(2, **server)
    )
    assert found.strangers == 3
    assert gathered(record(0, strangers="x", **server), record(1, strangers=True, **server)).strangers == 0
