# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, against the stand-in for all_reduce_perf: one host, what it says, and what is made of it."""

from __future__ import annotations

import io
import json
import os
import runpy
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.rdma.cluster.plugins.module_utils._base import sysroot
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from tests.unit.builders.trees import write_tree

ROOT = Path(__file__).parents[4]
MODULE = ROOT / "plugins/modules/nccl_test.py"
FOLDER = ROOT / "lab/standins"
HERE = os.uname().nodename.partition(".")[0]
#: mpirun as far as these tests need it: it starts one process, and says that it is not alone.
MPIRUN = """#!/bin/sh
while [ "$1" != all_reduce_perf ] && [ "${1##*/}" != all_reduce_perf ]; do shift; done
"$@"; exec "$@"
"""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("STANDIN_NCCL", str(tmp_path / "state.json"))

    def run(state: dict[str, Any], **options: Any) -> dict[str, Any]:
        (tmp_path / "state.json").write_text(json.dumps(state), encoding="utf-8")
        given = {
            "gpus": 2,
            "folder": str(FOLDER),
            "host": "node1",
            "load_allowed": True,
            "expected": {"names": {"node1": HERE}, "gbytes_per_s": 300.0},
            **options,
        }
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": given}).encode(), raising=False)
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit):
            runpy.run_path(str(MODULE), run_name="__main__")
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run


def statuses(answer: dict[str, Any]) -> dict[str, str]:
    return {each["check"].removeprefix("collective."): each["status"] for each in answer["findings"]}


def test_a_clean_run(call: Any, tmp_path: Path) -> None:
    answer = call({}, output_file=str(tmp_path / "kept"))
    assert statuses(answer) == {"exit": "ok", "ranks": "ok", "wrong": "ok", "busbw": "ok", "transport": "ok", "hcas": "not_applicable"}
    assert (answer["changed"], answer["ran"], answer["passed"], answer["exit_status"]) == (False, True, True, 0)
    assert answer["busbw_gbytes_per_s"] == pytest.approx(299, abs=1)
    assert [row["size_bytes"] for row in answer["result"]["rows"]] == [2**30, 2**31, 2**32, 2**33]
    assert [(rank["rank"], rank["host"], rank["bus_id"]) for rank in answer["result"]["ranks"]] == [
        (0, HERE, "0000:10:00"),
        (1, HERE, "0000:20:00"),
    ]
    assert answer["log"]["networks_in_use"] == {"IB": 2}
    assert answer["log"]["channels"] == {"P2P/CUMEM": 4}
    assert answer["variables"] == ["NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"]
    assert (tmp_path / "kept").read_text().startswith("# nccl-tests version 2.19.6")


JOB = "/proc/1/comm: systemd\n/proc/815/comm: slurmstepd\n/proc/815/cmdline: slurmstepd\n"
GPU = "/proc/1/comm: systemd\n/proc/driver/nvidia/version: x\n/proc/4711/comm: python3\n/proc/4711/fd/3 -> /dev/nvidia0\n"


@pytest.mark.parametrize(
    "use",
    [
        (JOB, True, "job process 815 (slurmstepd)"),
        (GPU, True, "GPU process 4711 (python3)"),
        ("", True, "GPU processes cannot be seen"),
        (JOB, False, "job process 815 (slurmstepd)"),
        ("", False, ""),
    ],
)
def test_nothing_is_run_on_a_host_in_use(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: tuple[str, bool, str]) -> None:
    """Another user than root does not see who has a GPU open, for which the role looks before."""
    text, is_root, words = use
    root = str(write_tree(tmp_path / "root", text))
    monkeypatch.setattr(sysroot, "SysRoot", lambda: SysRoot(root))
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    kept = tmp_path / "kept"
    answer = call({}, load_allowed=False, output_file=str(kept))
    assert (answer["in_use"], answer["ran"], "findings" in answer, kept.exists()) == (words, not words, not words, not words)
    answer = call({}, load_allowed=True, output_file=str(kept))
    assert (answer["in_use"], answer["ran"], kept.exists()) == ("", True, True)


def test_what_an_earlier_run_left_may_end(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_tree(tmp_path / "root", JOB)
    monkeypatch.setattr(sysroot, "SysRoot", lambda: SysRoot(str(root)))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(time, "sleep", lambda _seconds: shutil.rmtree(root / "proc/815", ignore_errors=True))
    assert call({}, load_allowed=False)["ran"] is True


def test_nothing_is_run_in_check_mode(call: Any, tmp_path: Path) -> None:
    answer = call({}, _ansible_check_mode=True, output_file=str(tmp_path / "kept"))
    assert (answer["ran"], answer["argv"][:1], "findings" in answer) == (False, [f"{FOLDER}/all_reduce_perf"], False)
    assert not (tmp_path / "kept").exists()


FAULTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "slow": ({"slow": 0.5}, {"busbw": "error"}),
    "wrong values": ({"wrong": 3}, {"exit": "error", "wrong": "error"}),
    "an error": ({"exit": 3}, {"exit": "error", "wrong": "unknown", "busbw": "unknown"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(call: Any, fault: str) -> None:
    state, expected = FAULTS[fault]
    answer = call(state)
    assert not answer["passed"]
    assert {check: status for check, status in statuses(answer).items() if status not in ("ok", "not_applicable")} == expected


def test_a_run_that_takes_too_long_is_ended(call: Any) -> None:
    answer = call({"sleep_seconds": 60}, timeout_seconds=2)
    assert statuses(answer)["exit"] == "unknown"
    assert (answer["exit_status"], answer["result"], answer["busbw_gbytes_per_s"]) == (None, None, None)
    assert "did not end within 2 seconds" in answer["findings"][0]["observed"]
    assert answer["seconds"] < 20


@pytest.mark.parametrize(
    ("script", "status", "observed"),
    [
        ("sleep 1; exit 110", None, "{folder}/mpirun has ended it after 1 seconds"),
        ("sleep 1; exit 241", None, "{folder}/mpirun has ended it after 1 seconds"),
        ("echo no; exit 110", 110, "exit status 110; no"),
    ],
    ids=["Open MPI 4", "Open MPI 5", "at once"],
)
def test_a_run_that_the_launcher_has_ended_for_its_time_was_not_run_to_its_end(
    call: Any, tmp_path: Path, script: str, status: int | None, observed: str
) -> None:
    (tmp_path / "mpirun").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "mpirun").chmod(0o755)
    answer = call({}, launcher="mpirun", program=str(tmp_path / "mpirun"), hosts=["node1", "node2"], timeout_seconds=1)
    assert (answer["exit_status"], answer["findings"][0]["observed"]) == (status, observed.format(folder=tmp_path))


def test_a_program_that_is_not_there_is_no_failure_of_the_task(call: Any) -> None:
    answer = call({}, folder="/nowhere")
    assert "failed" not in answer
    assert answer["findings"][0]["observed"].startswith("command not found: /nowhere/all_reduce_perf")


def test_a_build_without_mpi_is_no_run_of_two_ranks(call: Any, tmp_path: Path) -> None:
    (tmp_path / "mpirun").write_text(MPIRUN)
    (tmp_path / "mpirun").chmod(0o755)
    names = {"names": {"node1": HERE, "node2": "other"}, "gbytes_per_s": 300.0}
    answer = call({"no_mpi": True}, gpus=1, launcher="mpirun", program=str(tmp_path / "mpirun"), hosts=["node1", "node2"], expected=names)
    ranks = next(each for each in answer["findings"] if each["check"] == "collective.ranks")
    assert (ranks["status"], ranks["observed"]) == ("error", "2 separate runs, of 1 ranks each: nccl-tests was built without MPI")


def test_what_is_no_run_fails(call: Any) -> None:
    answer = call({}, hosts=["node1", "node2"])
    assert (answer["failed"], answer["msg"]) == (True, "2 hosts need a launcher: mpirun or srun")
