# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the words that people read: words that the project does not use, and how long the sentences of its documents are.

    python -m tests.tools.prose [--counts] [PATH ...]

Without a path: the places in CLEAN. In Markdown, code is not read; in Python, strings and comments are; of YAML, everything.
Exit code 1 if a word of WORDS is found, or if the sentences of a Markdown file are too long on the whole.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[2]
#: Words that are not used of machines or programs, and what to write.
WORDS = {
    **dict.fromkeys(("tell", "tells", "told", "telling"), "report, show, name"),
    "shall": "must",
    "anew": "again",
    **dict.fromkeys(("mend", "mends", "mended", "mending"), "fix"),
    **dict.fromkeys(("whoever", "whom"), "the host that, which"),
    **dict.fromkeys(("wish", "wishes", "wished"), "request"),
}
WORD = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
#: The longest median and 90th percentile of words a sentence that a document may have.
MEDIAN, PERCENTILE_90 = 18, 28
#: What has to be free of findings.
CLEAN = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "docs", "changelogs/fragments", "playbooks", "roles", "plugins", "lab", "molecule")

#: The tokens that begin and end an f-string; no such tokens before Python 3.12.
F_STRING = (getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "FSTRING_END", None))
FENCE = re.compile(r"^\s*(?:```|~~~)")
INLINE_CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
#: Lines of Markdown that belong to no sentence: headings, tables, rules, HTML, images.
NO_SENTENCE = re.compile(r"^\s*(?:#|\||---|<|!\[)")
ITEM = re.compile(r"^\s*(?:[*+-]|\d+\.)\s+")
SENTENCE_END = re.compile(r"(?<=[.!?])[)*_]*\s+(?=[^a-z])")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|no|approx)\.$", re.IGNORECASE)


def markdown_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines outside code blocks; inline code is replaced by the word CODE, links by their text."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, LINK.sub(r"\1", INLINE_CODE.sub("CODE", line))


def python_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of comments and of the lines of strings. From Python 3.12 on, an f-string is many tokens: it is read whole."""
    source = text.split("\n")
    starts: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start = token.start
        if token.type == F_STRING[0]:
            starts.append(start)
        elif token.type == F_STRING[1]:
            start = starts.pop()
        if starts or token.type not in (tokenize.COMMENT, tokenize.STRING, F_STRING[1]):
            continue
        lines = [*source[start[0] - 1 : token.end[0] - 1], source[token.end[0] - 1][: token.end[1]]]
        lines[0] = lines[0][start[1] :]
        for offset, line in enumerate(lines):
            yield start[0] + offset, INLINE_CODE.sub("CODE", line)


def lines_of(file: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of a file that people read."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return markdown_lines(text)
    if file.suffix == ".py":
        return python_lines(text)
    return ((number, INLINE_CODE.sub("CODE", line)) for number, line in enumerate(text.splitlines(), 1))


def words(file: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and word for each word of WORDS in a file."""
    for number, line in lines_of(file):
        for match in WORD.finditer(line):
            yield number, match[0].lower()


def sentences(markdown: str) -> list[str]:
    """Return the sentences of the paragraphs and list items of a document. A list item without a full stop is a sentence."""
    paragraphs, last = [[]], 0
    for number, line in markdown_lines(markdown):
        if not line.strip() or NO_SENTENCE.match(line) or ITEM.match(line) or number != last + 1:
            paragraphs.append([])
        if line.strip() and not NO_SENTENCE.match(line):
            paragraphs[-1].append(ITEM.sub("", line).strip())
        last = number
    found: list[str] = []
    for paragraph in paragraphs:
        whole = True
        for piece in SENTENCE_END.split(" ".join(paragraph)):
            if piece and whole:
                found.append(piece)
            elif piece:
                found[-1] += f" {piece}"
            whole = not ABBREVIATION.search(piece)
    return found


def lengths(markdown: str) -> list[int]:
    """Return how many words each sentence of a document has."""
    return [len(sentence.split()) for sentence in sentences(markdown)]


def spread(counts: list[int]) -> tuple[float, float]:
    """Return the median and the 90th percentile of a document's lengths; (0, 0) for fewer than two sentences."""
    return (median(counts), quantiles(counts, n=10)[-1]) if len(counts) > 1 else (0.0, 0.0)


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the Markdown, YAML and Python files of paths."""
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in files if file.suffix in (".md", ".yml", ".yaml", ".py"))


def findings(files: Iterable[Path]) -> Iterator[str]:
    """Yield a line for each word that is not used, and for each document with long sentences."""
    for file in files:
        for number, word in words(file):
            yield f"{file}:{number}: {word!r}: write {WORDS[word]}"
        if file.suffix == ".md":
            middle, long = spread(lengths(file.read_text(encoding="utf-8")))
            if middle > MEDIAN or long > PERCENTILE_90:
                limits = f"at most {MEDIAN} and {PERCENTILE_90} are wanted"
                yield f"{file}: sentences have {middle:g} words in the middle and {long:.0f} at the 90th percentile: {limits}"


def counted(files: Iterable[Path]) -> Iterator[str]:
    """Yield how often each word occurs, and the lengths of the sentences of all documents together."""
    files = list(files)
    counts = Counter(word for file in files for _number, word in words(file))
    yield from (f"{word}: {count}" for word, count in counts.most_common())
    middle, long = spread([length for file in files if file.suffix == ".md" for length in lengths(file.read_text(encoding="utf-8"))])
    yield f"words a sentence in documents: median {middle:g}, 90th percentile {long:.0f}"


def main() -> int:
    """Print the findings or the counts; return the exit code."""
    parser = argparse.ArgumentParser(description="Checks the words that people read, and the length of sentences in documents.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="what to read (what is clean already)")
    parser.add_argument("--counts", action="store_true", help="count the words and measure the sentences instead")
    arguments = parser.parse_args()
    files = list(files_below(arguments.paths or [ROOT / name for name in CLEAN]))
    lines = list((counted if arguments.counts else findings)(files))
    print("\n".join(lines) if lines else f"{len(files)} files: nothing found")
    return 1 if lines and not arguments.counts else 0


if __name__ == "__main__":
    sys.exit(main())
