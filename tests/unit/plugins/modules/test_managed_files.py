# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it: written, left alone, shown in check mode, removed."""

from __future__ import annotations

import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

MODULE = Path(__file__).parents[4] / "plugins/modules/managed_files.py"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(files: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": {"files": files, **more}}).encode(), raising=False)
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit):
            runpy.run_path(str(MODULE), run_name="__main__")
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run


def test_written_with_its_folder_and_then_left_alone(call: Any, tmp_path: Path) -> None:
    path = tmp_path / "new/nccl.conf"
    requested = [{"path": str(path), "content": "A=1\n", "mode": "0640"}]
    first = call(requested)
    assert (first["changed"], first["written"]) == (True, [str(path)])
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("A=1\n", 0o640)
    second = call(requested)
    assert (second["changed"], second["written"], second["diff"]) == (False, [], [])


def test_check_mode_shows_and_touches_nothing(call: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A=2\n")
    answer = call([{"path": str(tmp_path / "a"), "content": "A=1\n"}], _ansible_check_mode=True)
    assert [(diff["before"], diff["after"]) for diff in answer["diff"]] == [("A=2\n", "A=1\n")]
    assert (tmp_path / "a").read_text() == "A=2\n"


def test_a_file_without_content_goes(call: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert call([{"path": str(tmp_path / "a")}])["changed"]
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("mode", ["rw", "0899", ""])
def test_a_mode_that_is_none_is_an_error(call: Any, tmp_path: Path, mode: str) -> None:
    answer = call([{"path": str(tmp_path / "a"), "content": "x", "mode": mode}])
    assert answer["failed"]
    assert not (tmp_path / "a").exists()
