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
import stat
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run import folder as run_folder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import NEEDED_BYTES, RunFolder, RunFolderError, process_of, run_id


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


def test_what_identifies_a_process_stays_the_same_and_goes_with_it() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert process_of(process.pid) == process_of(process.pid) != process_of(os.getpid())
    finally:
        process.kill()
        process.wait()
    assert process_of(process.pid) is None


def test_the_folder_is_artifacts_here_unless_requested_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert (folder.hosts_of("fabric"), folder.groups_of("fabric")) == (["node1", "plane1"], ["plane default"])


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
@pytest.mark.parametrize("method", ["mkdir", "is_dir"])
def test_each_cause_names_the_variable_and_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, number: int, words: str
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path))

    # "is_dir": what a user meets below a folder of another user that has mode 0700.
    monkeypatch.setattr(Path, method, refuse)
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


# Evidence of earlier runs

RUNS = ("20261120T120000Z-1", "20261121T120000Z-1", "20261122T120000Z-1")
DAMAGED = {
    "empty": b"",
    "a list": b"[]",
    "half": b'{"endpoints": {"node1": {"ra',
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "nested deeply": b"[" * 200_000,
    "a text": b'"facts"',
    "a number": b"7",
    "null": b"null",
}


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings of the run folder."""
    found: list[str] = []
    monkeypatch.setattr(run_folder.display, "warning", found.append)
    return found


def damage(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("data", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_file_of_an_earlier_run_counts_as_missing(tmp_path: Path, warned: list[str], data: bytes) -> None:
    oldest, damaged, now = (tmp_path / run for run in RUNS)
    RunFolder(oldest).write_json("facts/node1.json", {"a": 1})
    file = damage(damaged / "facts/node1.json", data)
    assert RunFolder(now).earlier("facts/node1.json") == (RUNS[0], {"a": 1})
    assert RunFolder(now).of_run(RUNS[1], "facts/node1.json") is None
    assert [text for text in warned if not text.startswith(f"{file} cannot be read and is ignored: ")] == []
    assert len(warned) == 2


@pytest.mark.parametrize("data", DAMAGED.values(), ids=list(DAMAGED))
def test_damaged_proofs_count_as_missing_and_the_next_run_replaces_them(tmp_path: Path, warned: list[str], data: bytes) -> None:
    file = damage(tmp_path / "proofs/pairs.json", data)
    (tmp_path / RUNS[2]).mkdir()
    folder = RunFolder(tmp_path / RUNS[2])
    assert folder.read_if_there("../proofs/pairs.json") is None
    assert str(file) in warned[0].replace(f"{RUNS[2]}/../", "")
    folder.write_json("../proofs/pairs.json", {"schema": 2})
    assert folder.read_if_there("../proofs/pairs.json") == {"schema": 2}
    assert len(warned) == 1


def test_a_folder_or_a_forbidden_file_in_the_place_of_evidence_counts_as_missing(tmp_path: Path, warned: list[str]) -> None:
    (tmp_path / RUNS[0] / "facts/node1.json").mkdir(parents=True)
    assert RunFolder(tmp_path / RUNS[2]).earlier("facts/node1.json") is None
    assert len(warned) == 1


def test_evidence_that_a_parser_refuses_counts_as_missing(tmp_path: Path, warned: list[str]) -> None:
    def parse(data: dict[str, int]) -> int:
        if data["a"] < 2:
            raise ParseError("too small")
        return data["a"]

    for run, number in zip(RUNS, (2, 1), strict=False):
        RunFolder(tmp_path / run).write_json("fabric/default/graph.json", {"a": number})
    assert RunFolder(tmp_path / RUNS[2]).earlier("fabric/default/graph.json", parse) == (RUNS[0], 2)
    assert "too small" in warned[0]


def test_a_warning_is_one_line_that_prints(tmp_path: Path, warned: list[str]) -> None:
    def refuse(_data: object) -> None:
        raise ParseError("evil \x1b]0;title\x07\nlink  3 hosts  1 s  3 ok" + "x" * 10_000)

    RunFolder(tmp_path / RUNS[0]).write_json("a.json", {})
    assert RunFolder(tmp_path / RUNS[2]).of_run(RUNS[0], "a.json", refuse) is None
    assert warned[0].isprintable()
    assert len(warned[0]) < 1000


@pytest.mark.parametrize("data", [*DAMAGED.values(), b'[{"stage": "link"}]', b"[1]"])
def test_damaged_findings_are_unknown_and_name_their_file(tmp_path: Path, data: bytes) -> None:
    file = damage(tmp_path / "findings/link/node1.json", data)
    folder = RunFolder(tmp_path)
    if data in (b"[]", b"null"):
        assert folder.all_findings() == []
        return
    (found,) = folder.all_findings()
    assert (found.stage, found.host, found.status) == ("link", "node1", "unknown")
    assert str(file) in found.observed
    with pytest.raises(ParseError, match=re.escape(str(file))):
        folder.read_findings("link", "node1")


@pytest.mark.parametrize("name", ["facts/node1.json", "../proofs/pairs.json", "fabric/default/graph.json", "summary.json", "summary.txt"])
def test_what_later_runs_read_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    done: list[str] = []
    replace, fsync = Path.replace, os.fsync

    def note_replace(path: Path, target: Path) -> Path:
        done.append("named")
        return replace(path, target)

    def note_fsync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else f"{os.fstat(descriptor).st_size} bytes")
        fsync(descriptor)

    monkeypatch.setattr(Path, "replace", note_replace)
    monkeypatch.setattr(os, "fsync", note_fsync)
    (tmp_path / RUNS[2]).mkdir()
    RunFolder(tmp_path / RUNS[2]).write(name, "x" * 100)
    assert done == ["100 bytes", "named", "folder"]


def test_what_no_later_run_reads_costs_no_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int) -> None:
        raise AssertionError("fsync")

    monkeypatch.setattr(os, "fsync", refuse)
    RunFolder(tmp_path).write_findings("link", "node1", [])
    RunFolder(tmp_path).write_json("intent/node1.json", {})
