# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import command
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed, SubprocessRunner
from tests.unit.builders.fakes import FakeRunner


def run_python(code: str, *, timeout_seconds: float = 30.0) -> Completed:
    return SubprocessRunner().run([sys.executable, "-c", code], timeout_seconds=timeout_seconds)


def test_returns_everything_that_the_command_printed() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"

    assert run_python(code) == Completed((sys.executable, "-c", code), 3, "out\n", "err\n")


def test_the_command_speaks_no_users_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")

    assert run_python("import os; print(*(os.environ[name] for name in ('LC_ALL', 'LANG', 'LANGUAGE')))").stdout == "C C C\n"


def test_the_system_directories_come_after_the_users_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/opt/mine")

    path = run_python("import os; print(os.environ['PATH'])").stdout.strip().split(os.pathsep)

    assert path[0] == "/opt/mine"
    assert {"/usr/sbin", "/sbin"} <= set(path)


def test_no_shell_reads_the_arguments() -> None:
    assert SubprocessRunner().run(["echo", "$HOME; false", "*"]).stdout == "$HOME; false *\n"


def test_the_command_does_not_read_our_standard_input() -> None:
    ours = os.dup(0)
    reader, writer = os.pipe()
    try:
        os.write(writer, b"for us\n")
        os.close(writer)
        os.dup2(reader, 0)
        assert run_python("import sys; print(repr(sys.stdin.read()))").stdout == "''\n"
    finally:
        os.dup2(ours, 0)
        os.close(ours)
        os.close(reader)


def test_output_that_is_no_utf8_is_kept_readable() -> None:
    assert run_python(r"import os; os.write(1, b'ok \xff\n')").stdout == "ok \ufffd\n"


def test_a_signal_is_a_negative_exit_status() -> None:
    assert run_python("import os; os.kill(os.getpid(), 9)").rc == -9


def test_a_missing_command_is_named() -> None:
    with pytest.raises(CommandError, match=r"^command not found: no-such-tool \(wanted to run no-such-tool --all\)$"):
        SubprocessRunner().run(["no-such-tool", "--all"])


def test_a_file_that_is_no_program_is_named(tmp_path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("")

    with pytest.raises(CommandError, match=f"cannot run {tool} -x: .*Permission denied"):
        SubprocessRunner().run([str(tool), "-x"])


def test_a_timeout_names_the_command_and_the_seconds() -> None:
    with pytest.raises(CommandError, match=r"^sleep 60 did not end within 0.2 seconds$"):
        SubprocessRunner().run(["sleep", "60"], timeout_seconds=0.2)


def test_a_timeout_ends_what_the_command_started(tmp_path) -> None:
    mark = tmp_path / "mark"

    with pytest.raises(CommandError):
        SubprocessRunner().run(["sh", "-c", f"(sleep 1; touch {mark}) & wait"], timeout_seconds=0.2)

    time.sleep(1.2)
    assert not mark.exists()


@pytest.mark.parametrize("argv", [[], "ls -l"])
def test_a_command_is_a_list_of_arguments(argv) -> None:
    with pytest.raises(CommandError, match="non-empty list of arguments"):
        SubprocessRunner().run(argv)


def test_the_fake_plays_its_script() -> None:
    runner = FakeRunner([(["a"], 0, "one", ""), (["b", "-x"], 1, "", "two")])

    assert runner.run(["a"]).stdout == "one"
    assert runner.run(("b", "-x"), timeout_seconds=5) == Completed(("b", "-x"), 1, "", "two")
    assert runner.timeouts_seconds == [30.0, 5]


@pytest.mark.parametrize("argv", [["a"], ["b"], ["b", "-x", "-y"], "b -x"])
def test_the_fake_fails_on_another_command(argv) -> None:
    with pytest.raises(AssertionError):
        FakeRunner([(["b", "-x"], 0, "", "")]).run(argv)
    FakeRunner.made.clear()


def test_the_fake_fails_on_one_command_too_many() -> None:
    with pytest.raises(AssertionError, match="no further command"):
        FakeRunner([]).run(["a"])


def test_the_fake_fails_on_leftovers() -> None:
    with pytest.raises(AssertionError, match="not run"):
        FakeRunner([(["a"], 0, "", "")]).assert_done()
    FakeRunner.made.clear()


def test_output_goes_into_a_file_of_the_owners_alone_with_errors_in_their_place(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['HERE'], flush=True); print('err', file=sys.stderr); sys.exit(3)"
    path = tmp_path / "output"
    rc = SubprocessRunner().run_into([sys.executable, "-c", code], str(path), environment={"HERE": "it is"}, timeout_seconds=30)
    assert (rc, path.read_text(), path.stat().st_mode & 0o777) == (3, "it is\nerr\n", 0o600)


def test_a_launcher_that_takes_too_long_is_asked_to_end_and_what_it_leaves_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "GRACE_SECONDS", 2.0)
    pid, asked = tmp_path / "pid", tmp_path / "asked"
    # As Open MPI does, it puts its child into a process group of its own, which a signal to the launcher's group does not reach.
    child = f"import os, time; os.setpgid(0, 0); open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = f"""
import signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: (open({str(asked)!r}, 'w').close(), sys.exit(1)))
subprocess.Popen([sys.executable, '-c', {child!r}]).wait()
"""
    with pytest.raises(CommandError, match="did not end within 3 seconds"):
        SubprocessRunner().run_into([sys.executable, "-c", code], str(tmp_path / "output"), environment={}, timeout_seconds=3)
    assert asked.exists()
    stat = Path(f"/proc/{pid.read_text()}/stat")
    deadline = time.monotonic() + 10
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "the launcher's child still runs"
        time.sleep(0.05)


def test_a_command_that_is_not_there_has_no_output(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="command not found: no_such_command"):
        SubprocessRunner().run_into(["no_such_command"], str(tmp_path / "output"), environment={}, timeout_seconds=1)
