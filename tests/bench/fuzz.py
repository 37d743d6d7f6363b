# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged captures for every parser, found by its name: it reads them, or refuses them with a ParseError, and soon.

python -m tests.bench.fuzz --mutations 1000 --seed 1 [--captures FOLDER …] [PARSER …]; exit status 1 for an exception, or a slow call.
Without PARSER all of them; a parser's texts depend on the seed and its name alone. Its captures are first of all those that it reads.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.rdma.cluster.plugins import module_utils, plugin_utils
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from tests.unit.builders.endless import Parser, parsers
from tests.unit.builders.garbled import read_or_refused

FIXTURES = Path(__file__).parents[1] / "unit/fixtures"
SLOW_SECONDS = 1.0
LOST_SECONDS = 30
LONGEST_CAPTURE = 64 * 2**10
"""Of a longer one its beginning: what is quadratic shows here too."""
OWN_SHARE = 0.8
"""Of the mutations, how many start from a capture that the parser reads, where there is one."""
ODD = (
    *("", "0", "-1", "1e999", "nan", "inf", "9" * 5000, "-0", "0x", "٣", "²", "1_0", "1.2.3", "null", "None", "true", "\0", "\r", "\r\n"),
    *("\x0b", "\u2028", "\x85", "\ufeff", "\ud7ff", "\x1b[2K", '"', "'", "\\", "[", "]", "{", "}", "(", ")", ":", ",", "=", "/", "#", "%"),
    *("[" * 5000, " " * 20_000, "a" * 20_000, "\n" * 5000, "\t", "../..", "a:b:c", "N/A", "(null)"),
)


@dataclass
class Figures:
    """What calls came to. exceptions: what escaped, by parser and its first words, with a text that does it."""

    calls: int = 0
    read: int = 0
    refused: int = 0
    slowest_seconds: float = 0.0
    slowest: str = ""
    exceptions: Counter[str] = field(default_factory=Counter)
    texts: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.calls} calls: {self.read} read, {self.refused} refused, {self.exceptions.total()} exceptions; "
            f"slowest call {self.slowest_seconds:.3f} s of CPU time: {self.slowest}"
        )


def all_parsers() -> dict[str, Parser]:
    return {**parsers(module_utils), **parsers(plugin_utils)}


def captures(folders: Sequence[Path]) -> list[str]:
    """The texts below some folders, in the order of their names; what is no text is left out."""
    found = []
    for file in sorted(file for folder in folders for file in folder.rglob("*") if file.is_file()):
        with contextlib.suppress(UnicodeDecodeError):
            found.append(file.read_bytes().decode("utf-8"))
    return [text[:LONGEST_CAPTURE] for text in found if text and "\0" not in text]


class Mutations:
    """Texts for one parser, the same for the same seed."""

    def __init__(self, name: str, parser: Parser, texts: Sequence[str], seed: int) -> None:
        self._random = random.Random(f"{seed} {name}")
        self._words = [*ODD, *parser.own]
        self._texts = texts or ["\n".join(parser.own)]
        self._own = [text for text in self._texts if _reads(parser, text)]

    def __iter__(self) -> Iterator[str]:
        changes: tuple[Callable[[str], str], ...] = (
            *(self._cut, self._drop, self._double, self._exchange, self._replace, self._number, self._word, self._word),
            *(self._splice, self._letter, self._blanks, self._fields),
        )
        while True:
            own = self._own and self._random.random() < OWN_SHARE
            text = self._random.choice(self._own if own else self._texts)
            for _time in range(self._random.choice((1, 1, 1, 2, 3, 6))):
                text = self._random.choice(changes)(text)
            yield text

    def _span(self, text: str, most: int = 200) -> tuple[int, int]:
        start = self._random.randint(0, len(text))
        return start, min(len(text), start + self._random.randint(0, most))

    def _lines(self, text: str, change: Callable[[list[str], int], None]) -> str:
        lines = text.splitlines(keepends=True) or [""]
        change(lines, self._random.randrange(len(lines)))
        return "".join(lines)

    def _cut(self, text: str) -> str:
        at = self._random.randint(0, len(text))
        return text[:at] if self._random.random() < 0.8 else text[at:]

    def _drop(self, text: str) -> str:
        return self._lines(text, lambda lines, at: lines.pop(at) and None)

    def _double(self, text: str) -> str:
        return self._lines(text, lambda lines, at: lines.insert(self._random.randrange(len(lines)), lines[at]))

    def _exchange(self, text: str) -> str:
        def change(lines: list[str], at: int) -> None:
            other = self._random.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]

        return self._lines(text, change)

    def _replace(self, text: str) -> str:
        start, end = self._span(text)
        return text[:start] + self._random.choice(self._words) + text[end:]

    def _token(self, text: str, pattern: str, new: Callable[[str], str]) -> str:
        start = self._random.randint(0, len(text))
        found = re.compile(pattern).search(text, start) or re.compile(pattern).search(text)
        return text if found is None else text[: found.start()] + new(found.group()) + text[found.end() :]

    def _number(self, text: str) -> str:
        changed = (
            lambda old: f"-{old}",
            lambda old: old * 9,
            lambda old: f"{old}.5",
            lambda old: "0",
            lambda old: "9" * 5000,
            lambda old: "٣",
        )
        return self._token(text, r"\d+", self._random.choice(changed))

    def _word(self, text: str) -> str:
        return self._token(text, r"[^\s:=,\[\]{}()\"]+", lambda old: self._random.choice(self._words))

    def _splice(self, text: str) -> str:
        other = self._random.choice(self._texts)
        (start, end), (first, last) = self._span(text), self._span(other, 2000)
        return text[:start] + other[first:last] + text[end:]

    def _letter(self, text: str) -> str:
        at = self._random.randint(0, len(text))
        return text[:at] + chr(self._random.choice((self._random.randrange(128), self._random.randrange(0xD800)))) + text[at + 1 :]

    def _blanks(self, text: str) -> str:
        return self._token(text, r"[ \t]+", lambda old: self._random.choice(("", "\t", "  ", "\n", "\u00a0")))

    def _fields(self, text: str) -> str:
        def change(lines: list[str], at: int) -> None:
            cells = lines[at].split(" ")
            self._random.shuffle(cells)
            lines[at] = " ".join(cells[: self._random.randint(0, len(cells))]) + "\n"

        return self._lines(text, change)


def _reads(parser: Parser, text: str) -> bool:
    try:
        parser.read(text)
    except ParseError:
        return False
    except Exception:  # noqa: BLE001 # it will be counted when its mutations are read
        return True
    return True


@contextlib.contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """TimeoutError for what takes longer."""

    def ring(_number: int, _frame: object) -> None:
        raise TimeoutError(f"not ended after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(found: Mapping[str, Parser], texts: Sequence[str], mutations: int, seed: int) -> Figures:
    """Give each parser so many mutations."""
    figures = Figures()
    for name, parser in found.items():
        for _number, text in zip(range(mutations), Mutations(name, parser, texts, seed), strict=False):
            _call(name, parser, text, figures)
    return figures


def _call(name: str, parser: Parser, text: str, figures: Figures) -> None:
    refused = False

    def read(text: str) -> None:
        nonlocal refused
        try:
            parser.read(text)
        except ParseError:
            refused = True
            raise

    figures.calls += 1
    begun = time.process_time()
    try:
        with _at_most(LOST_SECONDS):
            read_or_refused(read, text)
    except Exception as error:  # noqa: BLE001 # this is what is counted
        what = f"{name}: {type(error).__name__}: {str(error)[:80]}"
        figures.exceptions[what] += 1
        figures.texts.setdefault(what, text)
    else:
        figures.read += not refused
        figures.refused += refused
    seconds = time.process_time() - begun
    if seconds > figures.slowest_seconds:
        figures.slowest_seconds, figures.slowest = seconds, f"{name}, {len(text)} characters"


def main(words: Sequence[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.bench.fuzz", description="Damaged captures for every parser.")
    asked.add_argument("parsers", nargs="*", metavar="PARSER", help="module.function, or a part of it; all of them unless named")
    asked.add_argument("--mutations", type=int, default=300, help="how many for each parser (300)")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--captures", type=Path, nargs="*", default=[], help=f"folders of more captures than {FIXTURES.name}")
    asked.add_argument("--keep", type=Path, help="a folder for a text of each exception")
    words_given = asked.parse_args(words)
    found = {name: parser for name, parser in all_parsers().items() if any(word in name for word in words_given.parsers or [""])}
    texts = captures([FIXTURES, *words_given.captures])
    if not found or not texts:
        asked.error("no such parser, or no capture")
    begun = time.monotonic()
    figures = fuzz(found, texts, words_given.mutations, words_given.seed)
    print(f"{len(found)} parsers, {len(texts)} captures, seed {words_given.seed}, {time.monotonic() - begun:.0f} s: {figures}")
    for number, (what, count) in enumerate(figures.exceptions.most_common()):
        print(f"{count:>6} {what}")
        if words_given.keep is not None:
            words_given.keep.mkdir(parents=True, exist_ok=True)
            (words_given.keep / f"{number}.txt").write_text(figures.texts[what], encoding="utf-8")
    return int(bool(figures.exceptions) or figures.slowest_seconds > SLOW_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
