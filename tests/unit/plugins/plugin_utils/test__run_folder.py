# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run folder: one id for a run and its workers, whole files, the newest linked."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import NEEDED_BYTES, RunFolder, RunFolderError, process_of, run_id


def test_workers_and_their_parent_find_the_same_id() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        ids = set(pool.map(_id, range(4)))
    assert ids == {run_id()}
    assert re.fullmatch(rf"\d{{8}}T\d{{6}}Z-{os.getpid()}", run_id())


def _id(_number: int) -> str:
    return run_id()


def test_the_newest_run_is_linked(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("an-older-run")
    folder = RunFolder.current(str(tmp_path))
    assert folder.path == tmp_path / run_id()
    assert os.readlink(tmp_path / "latest") == "an-older-run"
    folder.link_latest()
    assert (tmp_path / "latest").resolve() == folder.path
    assert RunFolder.current(str(tmp_path)).path == folder.path


@pytest.mark.parametrize("name", ["c/d", "../x", "node1.example.com", "a%2Fb", "näme", " "])
def test_a_host_of_any_name_has_its_own_file_in_the_folder(tmp_path: Path, name: str) -> None:
    folder = RunFolder(tmp_path)
    finding = Finding("link", "link.state", name, "rail 0", "error", "DOWN", "ACTIVE", "Check the cable.")
    file = folder.write_findings("link", name, [finding])
    assert file.parent == tmp_path / "findings/link"
    assert folder.hosts_of("link") == [name]
    assert folder.read_findings("link", name) == [finding]


def test_files_are_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_json("facts/node1.json", {"a": 1})
    folder.write_json("facts/node1.json", {"a": 2})
    assert folder.read_json("facts/node1.json") == {"a": 2}
    assert [path.name for path in (tmp_path / "facts").iterdir()] == ["node1.json"]


def test_findings_come_back_as_they_were(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    finding = Finding("link", "link.state", "node1", "rail 0", "error", "DOWN", "ACTIVE", "Check the cable.")
    folder.write_findings("link", "node1", [finding])
    assert folder.read_findings("link", "node1") == [finding]
    assert folder.all_findings() == [finding]


def test_what_tells_a_process_stays_the_same_and_goes_with_it() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert process_of(process.pid) == process_of(process.pid) != process_of(os.getpid())
    finally:
        process.kill()
        process.wait()
    assert process_of(process.pid) is None


def test_the_folder_is_artifacts_here_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert RunFolder.current("").path == tmp_path / "artifacts" / run_id()
    assert RunFolder.current("evidence").path == tmp_path / "evidence" / run_id()


def test_what_hosts_compare_to_is_kept_apart(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    own, compared = (Finding("link", check, "node1", "rail 0", "ok", "a", "b") for check in ("link.state", "link.alike"))
    folder.write_findings("link", "node1", [own])
    folder.write_findings("link", "node1", [compared], of="fleet")
    assert folder.read_findings("link", "node1") == [own]
    assert folder.read_findings("link", "node1", of="fleet") == [compared]
    assert folder.all_findings() == [own]


def test_what_was_not_written_is_not_there(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_if_there("pairs/plan.json") is None
    assert folder.read_findings("link", "node1") == []
    assert folder.hosts_of("link") == []
    assert folder.all_findings() == []


def test_a_file_that_is_half_written_is_no_evidence(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_findings("link", "node1.example.com", [])
    (tmp_path / "findings/link/.node2.json.4711").write_text("[{")
    assert folder.hosts_of("link") == ["node1.example.com"]
    assert folder.all_findings() == []


def test_the_hosts_of_a_stage_are_sorted(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for host in ("b", "a", "c"):
        folder.write_findings("link", host, [])
    folder.write_findings("network", "d", [])
    assert folder.hosts_of("link") == ["a", "b", "c"]


def test_lines_are_added_one_by_one(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for number in (1, 2):
        folder.append("deep/changes.jsonl", {"number": number, "text": "ä\nb"})
    lines = (tmp_path / "deep/changes.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"number": 1, "text": "ä\nb"}, {"number": 2, "text": "ä\nb"}]


def test_lines_are_added_as_they_are(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for lines in (["[0,1]", "[0,2]"], [], ["[1,1]"]):
        folder.append_lines("pairs/node1.jsonl", lines)
    assert (tmp_path / "pairs/node1.jsonl").read_text() == "[0,1]\n[0,2]\n[1,1]\n"


def test_planes_are_no_hosts(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for name in ("node1", "plane default", "plane1"):
        folder.write_findings("fabric", name, [])
    assert (folder.hosts_of("fabric"), folder.planes_of("fabric")) == (["node1", "plane1"], ["plane default"])


def test_a_file_of_another_run(tmp_path: Path) -> None:
    RunFolder(tmp_path / "one").write_json("fabric/default/baseline.json", {"a": 1})
    assert RunFolder(tmp_path / "two").of_run("one", "fabric/default/baseline.json") == {"a": 1}
    assert RunFolder(tmp_path / "two").of_run("one", "fabric/default/history.json") is None


# A folder that cannot be written


def test_a_file_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(RunFolderError) as caught:
        RunFolder.current(str(tmp_path / "runs"))
    assert str(caught.value) == (
        f"rdma_run_dir is {tmp_path}/runs, and the control node cannot write the run folder there: {tmp_path}/runs is a file. "
        "Set rdma_run_dir to a folder, for example `-e rdma_run_dir=$HOME/rdma-runs`. Nothing was done on any host."
    )


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EROFS, "its file system is read-only"),
        (errno.EACCES, "has no permission to write in"),
        (errno.ENOSPC, "no space is left there"),
        (errno.EDQUOT, "quota"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_each_cause_names_the_variable_and_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RunFolderError) as caught:
        RunFolder.current(str(tmp_path / "runs"))
    assert f"rdma_run_dir is {tmp_path}/runs" in str(caught.value)
    assert words in str(caught.value)
    assert str(caught.value).endswith("Nothing was done on any host.")


def test_a_disk_that_is_nearly_full_is_refused_before_the_first_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=NEEDED_BYTES - 1))
    with pytest.raises(RunFolderError, match=r"no space is left there \(16\.0 MiB are free, and a run needs 16 MiB\)"):
        RunFolder.current(str(tmp_path))


def test_a_disk_that_fills_up_later_does_not_say_that_nothing_was_done(tmp_path: Path) -> None:
    (tmp_path / "facts").write_text("")
    with pytest.raises(RunFolderError) as caught:
        RunFolder(tmp_path).write_json("facts/node1.json", {})
    assert "is a file" in str(caught.value)
    assert "Nothing was done" not in str(caught.value)
