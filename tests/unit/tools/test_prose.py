# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words that are not used, and the length of sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools import prose

DOCUMENT = """\
# It shall not be read as a sentence

One sentence is here. Another one,
over two lines, names `it shall` and e.g. Debian. A third!

| a table | that tells |
|---|---|

* an item without a full stop
* [a link](docs/told.md) and more

```console
$ tell me anew
```
"""


def test_sentences_are_those_of_paragraphs_and_items() -> None:
    assert prose.sentences(DOCUMENT) == [
        "One sentence is here.",
        "Another one, over two lines, names CODE and e.g. Debian.",
        "A third!",
        "an item without a full stop",
        "a link and more",
    ]


def test_words_are_found_where_they_are_and_not_in_code(tmp_path: Path) -> None:
    file = tmp_path / "document.md"
    file.write_text(DOCUMENT)
    assert list(prose.words(file)) == [(1, "shall"), (6, "tells")]


def test_of_python_comments_and_strings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text('"""Returns it.\n\nWhat `told` was Told."""\ntold = shall  # anew\ntold_of = f"mends {told}"\n')
    assert list(prose.words(file)) == [(3, "told"), (4, "anew"), (5, "mends"), (5, "told")]


def test_a_document_with_long_sentences_is_found(tmp_path: Path) -> None:
    file = tmp_path / "long.md"
    file.write_text(f"{'word ' * 17}end. {'Word ' * 19}end. {'Word ' * 30}end.\n")
    (line,) = prose.findings([file])
    assert line.startswith(f"{file}: sentences have 20 words in the middle and")
    file.write_text("Short. Also short.\n")
    assert list(prose.findings([file])) == []


def test_what_is_clean_stays_so() -> None:
    assert list(prose.findings(prose.files_below(prose.ROOT / name for name in prose.CLEAN))) == []


def test_a_word_says_what_to_write_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tasks.yml"
    file.write_text("- name: Begin anew\n")
    monkeypatch.setattr("sys.argv", ["prose", str(tmp_path)])
    assert prose.main() == 1
    assert capsys.readouterr().out == f"{file}:1: 'anew': write again\n"
