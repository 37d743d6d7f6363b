# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of a sweep on a host: the runner's input and output."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.counters import Place, ReadCounters, risen
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import Piece, parse_last_word, parse_piece, parse_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.main import main as pair_runner

#: How many bytes of records one answer reads, and the size of the tail with the last word, which is never longer.
PIECE_BYTES = 8 * 2**20
TAIL_BYTES = 4096
#: The name of the pair runner in the folder.
PROGRAM = "pair_runner.pyz"


class SweepFolder:
    """The files of one sweep, readable only by their owner."""

    def __init__(self, path: Path, read_counters: ReadCounters) -> None:
        self.path = path
        self._results = path / "results.jsonl"
        self._read_counters = read_counters

    @property
    def has_results(self) -> bool:
        """Return whether a runner has started to work here."""
        return self._results.exists()

    def has_plan(self, plan: bytes) -> bool:
        """Return whether the plan here is this one (gzip), byte for byte."""
        try:
            return gzip.decompress((self.path / "plan.json").read_bytes()) == gzip.decompress(plan)
        except (OSError, EOFError, zlib.error):
            return False

    @property
    def ended_well(self) -> bool:
        """Return whether the runner has finished, and every measurement that failed here succeeded in a later attempt."""
        last_word = self.last_word()
        if last_word is None or last_word["finished"] is not True:
            return False
        with self._results.open("rb") as file:
            return all_good(file)

    def remove(self) -> None:
        """Remove all files of this sweep."""
        if self.path.exists():
            shutil.rmtree(self.path)

    def remove_others(self) -> None:
        """Remove the files of earlier sweeps."""
        for path in self.path.parent.iterdir():
            if path != self.path and path.is_dir():
                shutil.rmtree(path)

    def write(self, plan: bytes, token: str, places: Sequence[Place], *, resume: bool) -> None:
        """Write the runner's input: the plan and the counters before the sweep. A resumed sweep has both already."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        files = {PROGRAM: program_of(pair_runner), "token": token.encode()}
        if not resume:
            files["plan.json"] = plan
            with contextlib.suppress(OSError, ParseError):  # a port without readable counters is measured anyway
                before = {"places": [vars(place) for place in places], "before": self._read_counters(places)}
                files["counters.json"] = json.dumps(before).encode()
        for name, content in files.items():
            (self.path / name).unlink(missing_ok=True)
            with open(os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)

    def plan(self) -> dict[str, Any]:
        """Return the plan that the runner works on."""
        return parse_plan((self.path / "plan.json").read_bytes())

    def last_word(self) -> dict[str, Any] | None:
        """Return the runner's last line, if it has written one."""
        try:
            with self._results.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                return parse_last_word(file.read())
        except FileNotFoundError:
            return None

    def piece(self, from_byte: int) -> tuple[int, Piece, bool]:
        """Return where a piece of the records begins, the piece, and whether there may be more. A file shorter than from_byte is new."""
        try:
            with self._results.open("rb") as file:
                start = from_byte if 0 <= from_byte <= file.seek(0, os.SEEK_END) else 0
                file.seek(start)
                data = file.read(PIECE_BYTES)
        except FileNotFoundError:
            return 0, parse_piece(b""), False
        more, piece = len(data) == PIECE_BYTES, parse_piece(data)
        if more and not piece.next_byte:
            piece = Piece([], [data.decode("utf-8", "replace")], len(data), None)
        return start, piece, more

    def counters(self) -> dict[str, dict[str, Any]] | None:
        """Return the increases since the start, by rail; None if either reading is missing."""
        try:
            kept = json.loads((self.path / "counters.json").read_bytes())
            places = [Place(**place) for place in kept["places"]]
            return risen(places, kept["before"], self._read_counters(places))
        except (OSError, ParseError, ValueError, KeyError, TypeError):
            return None


def all_good(lines: Iterable[bytes]) -> bool:
    """Return whether every line of a results file is readable, and every measurement in it has a good record, as the runner decides it."""
    good: set[tuple[str, int, str]] = set()
    seen: set[tuple[str, int, str]] = set()
    for line in lines:
        try:
            record = json.loads(line)
            if "finished" not in record:
                measurement = (record["rail"], record["round"], record["test"])
                seen.add(measurement)
                if record["exit_code"] == 0 and record["error"] is None:
                    good.add(measurement)
        except (ValueError, TypeError, KeyError, RecursionError):
            return False
    return good == seen
