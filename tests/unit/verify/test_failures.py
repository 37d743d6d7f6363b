# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of a scenario's test that fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.child import environment
from tests.verify import failures
from tests.verify.patience import until
from tests.verify.site import Ended, Site

OUTPUT = "\n".join(f"line {number}" for number in range(500))
KEYS = ("host", "stage", "check", "status", "subject", "observed", "silenced_by")
FINDINGS = [
    ("node1", "link", "link.state", "ok", "rail 0", "ACTIVE", None),
    ("node3", "link", "link.state", "error", "rail 1", "DOWN", None),
    ("node4", "host", "host.numa", "error", "numa", "on", "OPS-1"),
    ("node4", "pairs", "pair.bandwidth", "unknown", "rail 0", "x" * 900, None),
]
#: As ansible-core 2.19 prints a task that fails, with the handler of another host before it.
FAILED = """TASK [rdma.cluster.limits : Set the limits] ************************************
ok: [node1]
[ERROR]: Task failed: Module failed: no space left on device
Origin: /clone/roles/limits/tasks/main.yml:5:7

fatal: [node2]: FAILED! =>
    changed: false
    msg: no space left on device

TASK [Gathering] ***************************************************************
fatal: [node3]: UNREACHABLE! => {"msg": "no route"}
"""


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    folder = tmp_path / "evidence"
    folder.mkdir()
    (folder / "findings.jsonl").write_text("".join(json.dumps(dict(zip(KEYS, line, strict=True))) + "\n" for line in FINDINGS))
    return folder


def test_host_stage_and_finding_come_first(tmp_path: Path, evidence: Path) -> None:
    file = tmp_path / "failed/whole.txt"
    message = f"{OUTPUT}\nassert 2 == 0"
    lines = failures.shortened(message, Ended("site", 2, OUTPUT, evidence), file).splitlines()
    assert lines[0] == "node3, link, link.state is error: rail 1: DOWN"
    assert lines[1].startswith("node4, pairs, pair.bandwidth is unknown: rail 0: xxx")
    assert len(lines[1]) < 250
    assert lines[2:4] == [f"The last run was site, with exit status 2. All of it: {file}", "The last 40 lines of 501:"]
    assert lines[4:] == [*(f"line {number}" for number in range(461, 500)), "assert 2 == 0"]
    whole = file.read_text()
    assert whole.startswith(message)
    assert whole.endswith(f"Output of site:\n{OUTPUT}")


def test_without_findings_the_task_that_failed_comes_first(tmp_path: Path) -> None:
    lines = failures.shortened("assert 2 == 0", Ended("driver", 2, FAILED, tmp_path), tmp_path / "whole.txt").splitlines()
    assert lines[:2] == [
        "node2, rdma.cluster.limits : Set the limits, Task failed: Module failed: no space left on device",
        'node3, Gathering, UNREACHABLE! => {"msg": "no route"}',
    ]
    assert lines[2:] == [f"The last run was driver, with exit status 2. All of it: {tmp_path / 'whole.txt'}", "assert 2 == 0"]


def test_a_run_that_left_no_evidence_is_not_judged_by_the_one_before(tmp_path: Path) -> None:
    assert failures.culprits(Ended("driver", 2, "ERROR! no such playbook", None)) == []


def test_many_hosts_are_counted(tmp_path: Path) -> None:
    output = "".join(f"fatal: [node{number}]: UNREACHABLE!\n" for number in range(50))
    lines = failures.culprits(Ended("site", 4, output, None))
    assert (lines[0], lines[-1], len(lines)) == ("node0, no task, UNREACHABLE!", "and 30 more", 21)


def test_a_short_message_without_a_run_stays(tmp_path: Path) -> None:
    assert failures.shortened("assert 1 == 2", None, tmp_path / "whole.txt") == "assert 1 == 2"
    assert not (tmp_path / "whole.txt").exists()


IN_A_TEST = "def test_it(run): assert run == 0, OUTPUT"
IN_A_FIXTURE = "@pytest.fixture\ndef built(run): assert run == 0, OUTPUT\ndef test_it(built): pass"


@pytest.mark.parametrize("body", [IN_A_TEST, IN_A_FIXTURE], ids=["test", "fixture"])
def test_pytest_shows_it(tmp_path: Path, body: str) -> None:
    """The hooks as molecule/conftest.py has them, in a pytest of its own."""
    (tmp_path / "conftest.py").write_text((Path(__file__).parents[3] / "molecule/conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_site.py").write_text(
        "import pytest\nfrom tests.verify.site import Ended, Site\n"
        f"OUTPUT = {FAILED!r} + {OUTPUT!r}\n"
        "@pytest.fixture\ndef run():\n    Site.last = Ended('site', 2, OUTPUT, None)\n    return 2\n"
        f"{body}\n"
    )
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path / "test_site.py")]
    done = subprocess.run(argv, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    answer = [line.removeprefix("E").strip() for line in done.stdout.splitlines() if line.startswith("E ")]
    assert answer[0].startswith("AssertionError: node2, rdma.cluster.limits : Set the limits, Task failed: ")
    assert "line 459" not in done.stdout
    assert "line 499" in done.stdout
    (file,) = (tmp_path / failures.FOLDER).iterdir()
    assert any(str(file) in line for line in answer)
    assert OUTPUT in file.read_text()


def alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


class TestSite:
    @pytest.fixture
    def site(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
        """A site whose ansible-playbook is a stand-in that leaves a folder of evidence if it is configured to."""
        (tmp_path / "ansible-playbook").write_text(
            '#!/bin/sh\necho "$3"\ncase $* in *evidence*) mkdir "$RUN/1"; ln -s 1 "$RUN/latest";; esac\nexit 4\n'
        )
        (tmp_path / "ansible-playbook").chmod(0o755)
        (tmp_path / "artifacts").mkdir()
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        return Site(tmp_path / "hosts.yml", tmp_path, environment={"RUN": str(tmp_path / "artifacts")})

    def test_the_last_run_is_kept(self, site: Site) -> None:
        site.run("driver", "evidence")
        assert Site.last == Ended("driver", 4, "playbooks/driver.yml\n", site.run_dir / "1")
        site.run("link")
        assert Site.last == Ended("link", 4, "playbooks/link.yml\n", None)

    @pytest.mark.parametrize("cause", [KeyboardInterrupt(), subprocess.TimeoutExpired("site", 900)], ids=["interrupted", "late"])
    def test_a_run_does_not_outlive_its_test(self, site: Site, monkeypatch: pytest.MonkeyPatch, cause: BaseException) -> None:
        program = site.run_dir.parent / "ansible-playbook"
        program.write_text('#!/bin/bash\necho $$ > "$RUN/pid.part"; mv "$RUN/pid.part" "$RUN/pid"; sleep 600\n')
        pid = site.run_dir / "pid"

        def communicate(*_words: object, **_options: object) -> None:
            until(pid.exists, 60, "a run that begins")
            raise cause

        monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
        with pytest.raises(type(cause)):
            site.run()
        until(lambda: not alive(int(pid.read_text())), 60, "the end of the run")
