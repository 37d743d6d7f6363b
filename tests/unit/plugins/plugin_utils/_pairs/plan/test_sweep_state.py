# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sweep that has begun is gone on with until its results are here, or it is too old."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.sweep_state import KEPT_SECONDS, begun, collected

MARK, OTHER = "a" * 64, "b" * 64
NOW, LIMIT = 1_795_179_125.0, 440.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def files(home: Path) -> list[Path]:
    return sorted((home / "rdma.cluster" / "sweeps").iterdir())


def test_a_sweep_begins_with_its_name_and_a_secret_of_its_own(home: Path) -> None:
    one, other = begun(MARK, "s1", NOW, LIMIT), begun(OTHER, "s1", NOW, LIMIT)
    assert (one.sweep, one.at) == ("s1", NOW)
    assert len(bytes.fromhex(one.token)) == 32
    assert one.token != other.token
    assert one.seed != other.seed
    assert 0 <= one.seed < 2**32
    assert [file.name for file in files(home)] == [f"{MARK}.json", f"{OTHER}.json"]


def test_nobody_else_can_read_it(home: Path) -> None:
    begun(MARK, "s1", NOW, LIMIT)
    (file,) = files(home)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("seconds", [0.0, 1.0, LIMIT + KEPT_SECONDS])
def test_a_later_run_goes_on_with_it(seconds: float) -> None:
    assert begun(MARK, "s2", NOW + seconds, LIMIT) == begun(MARK, "s2", NOW + seconds, LIMIT)
    first = begun(OTHER, "s1", NOW, LIMIT)
    assert begun(OTHER, "s2", NOW + seconds, LIMIT) == first


@pytest.mark.parametrize("seconds", [LIMIT + KEPT_SECONDS + 1, -1.0], ids=["too old", "of the future"])
def test_what_cannot_be_running_any_more_is_begun_again_and_remembered(home: Path, seconds: float) -> None:
    first = begun(MARK, "s1", NOW, LIMIT)
    second = begun(MARK, "s2", NOW + seconds, LIMIT)
    assert (second.sweep, second.at) == ("s2", NOW + seconds)
    assert second.token != first.token
    assert begun(MARK, "s3", NOW + seconds, LIMIT) == second
    assert len(files(home)) == 1


def test_another_plan_is_another_sweep() -> None:
    assert begun(MARK, "s1", NOW, LIMIT).sweep == "s1"
    assert begun(OTHER, "s2", NOW, LIMIT).sweep == "s2"


def test_what_was_collected_is_forgotten(home: Path) -> None:
    begun(MARK, "s1", NOW, LIMIT)
    begun(OTHER, "s1", NOW, LIMIT)
    collected(MARK)
    collected(MARK)
    assert [file.name for file in files(home)] == [f"{OTHER}.json"]
    assert begun(MARK, "s2", NOW, LIMIT).sweep == "s2"


@pytest.mark.parametrize("mark", ["", "a" * 63, "../../../secret", f"../sweeps/{MARK}", MARK.upper(), MARK + "\n"])
def test_nothing_but_a_fingerprint_names_a_file(home: Path, mark: str) -> None:
    begun(MARK, "s1", NOW, LIMIT)
    (home / "secret.json").write_text("{}")
    collected(mark)
    assert len(files(home)) == 1
    assert (home / "secret.json").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"sweep": "s1"}', json.dumps({"sweep": "s1", "token": "x", "seed": 1, "at": NOW, "more": 1})]
)
def test_a_file_that_is_no_state_is_written_again(home: Path, content: str) -> None:
    begun(MARK, "s1", NOW, LIMIT)
    (file,) = files(home)
    file.write_text(content)
    again = begun(MARK, "s2", NOW, LIMIT)
    assert again.sweep == "s2"
    assert begun(MARK, "s3", NOW, LIMIT) == again


def test_what_a_killed_run_has_left_is_in_nobodys_way(home: Path) -> None:
    folder = home / "rdma.cluster" / "sweeps"
    folder.mkdir(parents=True)
    (folder / f".{MARK}.json.{os.getpid()}").write_text("half")
    assert begun(MARK, "s1", NOW, LIMIT).sweep == "s1"
    assert begun(MARK, "s2", NOW, LIMIT).sweep == "s1"


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 200_000, b'{"sweep": "s1", "token": "t", "seed": 1, "at": "now"}'])
def test_a_damaged_file_begins_a_new_sweep(home: Path, data: bytes) -> None:
    begun(MARK, "s1", NOW, LIMIT)
    (file,) = files(home)
    file.write_bytes(data)
    assert begun(MARK, "s2", NOW, LIMIT).sweep == "s2"
