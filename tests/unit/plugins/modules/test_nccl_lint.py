# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, on the machine of the tests, with an environment file of its own; and its documentation."""

from __future__ import annotations

import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils import basic

from ansible_collections.rdma.cluster.plugins.module_utils._nccl_problem import SEVERITIES

ROOT = Path(__file__).parents[4]
MODULE = ROOT / "plugins/modules/nccl_lint.py"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(**options: Any) -> dict[str, Any]:
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": options}).encode(), raising=False)
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit):
            runpy.run_path(str(MODULE), run_name="__main__")
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        return said

    return run


@pytest.mark.parametrize("check_mode", [False, True])
def test_problems_and_who_takes_what_from_where(call: Any, tmp_path: Path, check_mode: bool) -> None:
    path = tmp_path / "nccl.env"
    path.write_text("NCCL_DEBUG=WARNING\nNCCL_IB_TC=104\n")
    said = call(files=[str(path)], users=[], plan={"traffic_class": 106}, version="2.27.7", _ansible_check_mode=check_mode)
    assert said["changed"] is False
    where = f"the environment of what is started with {path}"
    ours = [problem for problem in said["problems"] if problem["where"] == where]
    assert [(problem["severity"], problem["rule"], problem["variable"]) for problem in ours] == [
        ("error", "traffic_class_differs", "NCCL_IB_TC"),
        ("error", "value_choice", "NCCL_DEBUG"),
    ]
    (job,) = [job for job in said["jobs"] if job["owner"] == str(path)]
    assert job["sources"][0] == where
    assert (job["variables"]["NCCL_DEBUG"]["value"], job["variables"]["NCCL_DEBUG"]["from"]) == ("WARNING", where)
    assert path.read_text() == "NCCL_DEBUG=WARNING\nNCCL_IB_TC=104\n"


def test_what_is_not_there_fails_with_its_name(call: Any) -> None:
    assert call(users=["no-such-user"])["msg"] == "there is no user 'no-such-user'"
    assert call(users=[], processes=[2**30])["msg"] == f"there is no process {2**30}"


def test_the_documentation_names_every_option_and_key(call: Any, tmp_path: Path) -> None:
    module = runpy.run_path(str(MODULE))
    options = yaml.safe_load(module["DOCUMENTATION"])["options"]
    assert set(options) == {*module["ASKED"], "version", "plan"}
    assert set(options["plan"]["suboptions"]) == set(module["PLAN"])
    returned = yaml.safe_load(module["RETURN"])
    path = tmp_path / "nccl.env"
    path.write_text("NCCL_DEBUG=WARNING\n")
    said = call(files=[str(path)], users=[])
    assert set(said["problems"][0]) == set(returned["problems"]["contains"]) == set(returned["problems"]["sample"][0])
    assert set(said["jobs"][0]) == set(returned["jobs"]["contains"])
    assert all(severity in returned["problems"]["contains"]["severity"]["description"] for severity in SEVERITIES)
