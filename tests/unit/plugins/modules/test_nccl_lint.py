# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, on the machine of the tests, with an environment file of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.builders.nccl_lint_call import nccl_lint


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return partial(nccl_lint, capsys, monkeypatch)


@pytest.mark.parametrize("check_mode", [False, True])
def test_problems_and_who_takes_what_from_where(call: Any, tmp_path: Path, check_mode: bool) -> None:
    path = tmp_path / "nccl.env"
    path.write_text("NCCL_DEBUG=WARNING\nNCCL_IB_TC=104\n")
    answer = call(files=[str(path)], users=[], plan={"traffic_class": 106}, version="2.27.7", _ansible_check_mode=check_mode)
    assert answer["changed"] is False
    where = f"the environment of programs started with {path}"
    ours = [problem for problem in answer["problems"] if problem["where"] == where]
    assert [(problem["severity"], problem["rule"], problem["variable"]) for problem in ours] == [
        ("error", "traffic_class_differs", "NCCL_IB_TC"),
        ("error", "value_choice", "NCCL_DEBUG"),
    ]
    (job,) = [job for job in answer["jobs"] if job["owner"] == str(path)]
    assert job["sources"][0] == where
    assert (job["variables"]["NCCL_DEBUG"]["value"], job["variables"]["NCCL_DEBUG"]["from"]) == ("WARNING", where)
    assert path.read_text() == "NCCL_DEBUG=WARNING\nNCCL_IB_TC=104\n"


def test_what_is_not_there_fails_with_its_name(call: Any) -> None:
    assert call(users=["no-such-user"])["msg"] == "there is no user 'no-such-user'"
    assert call(users=[], processes=[2**30])["msg"] == f"there is no process {2**30}"
