# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged captures: a few for every parser, the same in every run, and that what a parser does wrong is counted."""

from __future__ import annotations

import json
import time
from itertools import islice
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from tests.bench import fuzz
from tests.unit.builders.endless import Parser

TEXTS = ["name: 1\nother: 2\n", "something else\n"]


def only_names(text: str) -> None:
    if not text.startswith("name: "):
        raise ParseError("not that")
    int(text.splitlines()[0].removeprefix("name: "))


def test_a_few_for_every_parser() -> None:
    found = fuzz.all_parsers()
    figures = fuzz.fuzz(found, fuzz.captures([fuzz.FIXTURES]), mutations=3, seed=7)
    assert len(found) > 115
    assert not figures.exceptions, figures
    assert figures.calls == 3 * len(found) == figures.read + figures.refused
    assert figures.read > 30 < figures.refused


def test_what_escapes_is_counted_and_its_text_kept() -> None:
    figures = fuzz.fuzz({"x.parse_names": Parser(only_names, str, {}, ())}, TEXTS, mutations=200, seed=1)
    assert figures.calls == 200
    assert figures.read > 0 < figures.refused
    assert figures.exceptions.total() == 200 - figures.read - figures.refused > 0
    assert all(what.startswith("x.parse_names: ") for what in figures.exceptions)
    for what, text in figures.texts.items():
        with pytest.raises(ValueError, match=r"\w") as caught:
            only_names(text)
        assert type(caught.value).__name__ in what


def test_the_slowest_call_is_named() -> None:
    def slow(text: str) -> None:
        begun = time.process_time()
        while time.process_time() - begun < 0.05:
            pass

    parsers = {"x.parse_fast": Parser(only_names, str, {}, ()), "x.parse_slow": Parser(slow, str, {}, ())}
    figures = fuzz.fuzz(parsers, TEXTS, mutations=1, seed=1)
    assert figures.slowest_seconds >= 0.05
    assert figures.slowest.startswith("x.parse_slow, ")


def test_what_does_not_end_is_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "LOST_SECONDS", 1)
    waits = 0

    def waiting(text: str) -> None:
        nonlocal waits
        waits += 1
        if waits > len(TEXTS):
            time.sleep(20)

    figures = fuzz.fuzz({"x.parse_waiting": Parser(waiting, str, {}, ())}, TEXTS, mutations=1, seed=1)
    assert [what.split(":")[1].strip() for what in figures.exceptions] == ["TimeoutError"]


def test_a_seed_gives_the_same_texts() -> None:
    parser = Parser(only_names, str, {}, ("word",))

    def texts(seed: int) -> list[str]:
        return list(islice(fuzz.Mutations("x", parser, TEXTS, seed), 50))

    assert texts(1) == texts(1) != texts(2)
    assert len(set(texts(1))) > 25


def test_captures_are_texts(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b", encoding="utf-8")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/a.json").write_text("{}", encoding="utf-8")
    (tmp_path / "c.bin").write_bytes(b"\xff\xfe")
    (tmp_path / "d.bin").write_bytes(b"a\0")
    assert fuzz.captures([tmp_path]) == ["{}", "b"]


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
    assert fuzz.main(["_collectives.parse.", "--mutations", "2", "--captures", str(tmp_path)]) == 0
    assert "seed 1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        fuzz.main(["no_such_parser"])
