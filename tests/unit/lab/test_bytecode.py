# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bytecode that emulated machines keep of what Ansible sends: the same code, compiled once."""

from __future__ import annotations

import marshal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lab.image import RECIPE

PLACE = RECIPE / "files/usr/lib/python3/dist-packages"


def outcome(archive: Path, folder: Path) -> str:
    """What a Python says that imports the module `sent` from the archive and keeps bytecode in the folder."""
    program = (
        f"import sys; sys.path[:0] = [{str(PLACE)!r}, {str(archive)!r}]\n{(PLACE / 'lab.pth').read_text()}"
        f"lab_bytecode.FOLDER = {str(folder)!r}\nimport sent\nprint(sent.word)"
    )
    return subprocess.run([sys.executable, "-IB", "-c", program], check=True, capture_output=True, text=True, timeout=30).stdout.strip()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as made:
        made.writestr("sent.py", "word = 'compiled'\n")
    return tmp_path / "sent.zip"


def test_a_source_is_compiled_once(archive: Path, tmp_path: Path) -> None:
    assert outcome(archive, tmp_path / "kept") == "compiled"  # there is no such folder
    (tmp_path / "kept").mkdir()
    assert outcome(archive, tmp_path / "kept") == "compiled"
    (kept,) = (tmp_path / "kept").iterdir()
    kept.write_bytes(marshal.dumps(compile("word = 'kept'", "sent.py", "exec")))
    assert outcome(archive, tmp_path / "kept") == "kept"


def test_another_source_is_compiled_again(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    assert outcome(archive, tmp_path / "kept") == "compiled"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("sent.py", "word = 'changed'\n")
    assert outcome(archive, tmp_path / "kept") == "changed"
    assert len(list((tmp_path / "kept").iterdir())) == 2


@pytest.mark.parametrize("rest", [b"", b"no bytecode", marshal.dumps(compile("word = 'kept'", "sent.py", "exec"))[:40]])
def test_bytecode_that_cannot_be_read_is_made_again(archive: Path, tmp_path: Path, rest: bytes) -> None:
    (tmp_path / "kept").mkdir()
    assert outcome(archive, tmp_path / "kept") == "compiled"
    (kept,) = (tmp_path / "kept").iterdir()
    kept.write_bytes(rest)
    assert outcome(archive, tmp_path / "kept") == "compiled"
    assert kept.read_bytes() != rest
