# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that diagnoses a job, with real Ansible on this machine: what it prints and leaves, and when alone it fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.child import environment
from tests.unit.builders.hosts import lab_rails

ROOT = Path(__file__).parents[4]
H200 = ROOT / "tests/unit/fixtures/h200/all_reduce_perf_no_ib_device_failed.txt"
LOCKED = "{}:100:200 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"


#: Causes that are looked for in the records of all hosts together.
PAST = {"past.port", "past.gid", "past.counters", "past.host", "past.journal"}


def diagnose(folder: Path, log: str, hosts: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {"all": {"hosts": {name: {**local, **variables} for name, variables in hosts.items()}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    known = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    playbook = str(ROOT / "playbooks/diagnose.yml")
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", playbook, "-e", f"rdma_job_log={log}", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=known)


def stored(folder: Path) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads((folder / "artifacts/latest/diagnosis.json").read_text(encoding="utf-8"))
    return reported


def test_a_job_is_diagnosed_without_an_intent(tmp_path: Path) -> None:
    done = diagnose(tmp_path, str(H200), {"here": {}}, "-e", json.dumps({"rdma_job_hosts": {"vm": "here"}}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=0" in done.stdout
    text = (tmp_path / "artifacts/latest/diagnosis.txt").read_text(encoding="utf-8")
    assert text.startswith(f"{H200}: why the job failed\n")
    assert f"\n{text}" in done.stdout
    reported = stored(tmp_path)
    assert (reported["schema"], reported["log"], reported["first_cause"], reported["unknown_hosts"]) == (1, str(H200), "ib.no_device", [])
    first = reported["findings"][0]
    assert (first["kind"], first["is"], first["first_cause"]) == ("ib.no_device", "remark", True)
    assert {cause["cause"] for cause in first["causes"] if list(cause["hosts"]) != ["here"]} == PAST


def test_with_an_intent_a_relative_log_and_a_host_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(LOCKED.format("node2"))
    away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    done = diagnose(tmp_path, "job.log", {"node1": {"rdma_rails": lab_rails()}, "node2": away})
    assert "job.log: why the job failed" in done.stdout, done.stdout + done.stderr
    reported = stored(tmp_path)
    assert reported["first_cause"] == "memory.locked"
    memlock = reported["findings"][0]["causes"][0]
    assert memlock["hosts"] == {"node2": {"verdict": "not checkable", "seen": "the limits were not read"}}
    assert memlock["remedy"].startswith("1. Run the host stage for node2.")


def test_a_log_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    done = diagnose(tmp_path, "nowhere.log", {"here": {}})
    assert done.returncode == 2
    assert "The log nowhere.log cannot be read on the control node: " in done.stdout + done.stderr


def test_a_name_for_no_host_of_the_play_is_a_failure(tmp_path: Path) -> None:
    done = diagnose(tmp_path, str(H200), {"here": {}}, "-e", json.dumps({"rdma_job_hosts": {"vm": "there"}}))
    assert done.returncode == 2
    assert "rdma_job_hosts maps names to hosts that are not in the play: vm: there" in done.stdout + done.stderr


def test_an_intent_is_used_with_the_playbooks_own_variables(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(LOCKED.format("trainer-0"))
    names = json.dumps({"rdma_job_hosts": {"trainer-0": "node1"}, "rdma_hosts": "node1"})
    done = diagnose(tmp_path, "job.log", {"node1": {"rdma_rails": lab_rails()}}, "-e", names)
    assert done.returncode == 0, done.stdout + done.stderr
    reported = stored(tmp_path)
    assert (reported["refused_intents"], reported["without_intent"], reported["unread_hosts"]) == ({}, [], [])
    assert "is refused" not in done.stdout
    assert (tmp_path / "artifacts/latest/intent/node1.json").exists()
    (tmp_path / "job.log").write_text("node1:1:2 [0] NCCL WARN NET/IB : Unable to query port_num 1 on dev mlx5_0\n")
    assert diagnose(tmp_path, "job.log", {"node1": {"rdma_rails": lab_rails()}}).returncode == 0
    planned = {cause["cause"]: cause["hosts"]["node1"]["seen"] for cause in stored(tmp_path)["findings"][0]["causes"]}
    assert "there is no intent to compare with" not in planned.values()


def test_a_refused_intent_is_an_error_and_the_facts_are_used_alone(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(LOCKED.format("node1"))
    rails = lab_rails()
    done = diagnose(tmp_path, "job.log", {"node1": {"rdma_rails": rails, "rdma_pears": {}}, "node2": {"rdma_rails": rails}})
    assert done.returncode == 2, done.stdout + done.stderr
    lines = (tmp_path / "artifacts/latest/diagnosis.txt").read_text(encoding="utf-8").splitlines()
    assert lines[2].startswith("! ERROR: the intent of node1 is refused.")
    assert "rdma_pears" in lines[3]
    assert lines[3].endswith("(node1)"), lines
    reported = stored(tmp_path)
    assert list(reported["refused_intents"]) == ["node1"]
    # The log is diagnosed all the same.
    assert reported["first_cause"] == "memory.locked"
    assert "limits were not read" not in json.dumps(reported["findings"])
    assert re.search(r"fatal: \[node1\]: FAILED! .*The intent of node1 is refused", done.stdout), done.stdout
    assert not re.search(r"fatal: \[node2\]", done.stdout)


def test_an_inventory_of_names_has_no_intent_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(LOCKED.format("node1"))
    done = diagnose(tmp_path, "job.log", {"node1": {}})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No intent for node1: causes there are checked only against facts." in done.stdout
    assert (stored(tmp_path)["refused_intents"], stored(tmp_path)["without_intent"]) == ({}, ["node1"])


RECORD = """
from pathlib import Path
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import FOLDER, Ring, moment_now

Path(FOLDER).mkdir(parents=True)
now = moment_now(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
ring = Ring(FOLDER)

def event(seconds, kind, was, value):
    mono = now.mono - 100 + seconds
    times = {"at": mono + now.offset, "mono": mono, "boot": now.boot, "after": mono - 2}
    return {"kind": kind, "of": "eth7", "was": was, "now": value, **times}

ring.append([event(-3000, "mtu", "1500", "9000"), event(-38.2, "carrier", "up", "no carrier"), event(-34.2, "carrier", "no carrier", "up")])
ring.touch(now)
"""


@pytest.mark.skipif(subprocess.run(["unshare", "-rm", "true"], check=False).returncode != 0, reason="no namespaces here")
def test_a_port_that_was_down_38_s_before_the_error_is_the_cause(tmp_path: Path) -> None:
    """A real record and the real clock of this machine, in a namespace of mounts with an empty /var/lib."""
    begun = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begun - 100))
    line = f"[{stamp}] node1:100:200 [0] ib.cc:1 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0"
    (tmp_path / "job.log").write_text(line + " vendor err 129 (Send)\n")
    (tmp_path / "record.py").write_text(RECORD)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"node1": local}}}))
    ansible = str(Path(sys.executable).parent / "ansible-playbook")
    words = 'mount -t tmpfs none /var/lib && "$1" record.py && exec "$2" -i hosts.yml "$3" -e rdma_job_log=job.log'
    argv = ["unshare", "-rm", "bash", "-c", words, "past", sys.executable, ansible, str(ROOT / "playbooks/diagnose.yml")]
    known = {**environment(), "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False, env=known)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "artifacts/latest/diagnosis.txt").read_text(encoding="utf-8")
    seen = re.search(r"eth7 of node1 was down ([0-9.]+) s before the first error, and up again 4\.0 s later", " ".join(text.split()))
    assert seen is not None, text
    # The record was written a moment after the log's time was taken, and a log has whole seconds.
    assert 30 < float(seen[1]) < 41
    first = stored(tmp_path)["findings"][0]["causes"][0]
    assert (first["cause"], first["verdict"]) == ("past.port", "confirmed")
    assert [change["kind"] for change in stored(tmp_path)["records"]["node1"]["changes"]] == ["carrier", "carrier"]
    assert "the time of line 1 (ib.retry) in the log" in text


@pytest.mark.parametrize(
    ("given", "said"),
    [("2026-11-23 14:05", "has no time zone. Add one"), ("2099-11-23 14:05 UTC", "in the future")],
)
def test_a_time_that_cannot_be_used_is_refused_before_a_host_is_read(tmp_path: Path, given: str, said: str) -> None:
    (tmp_path / "job.log").write_text("")
    done = diagnose(tmp_path, "job.log", {"node1": {}}, "-e", json.dumps({"rdma_job_time": given}))
    assert done.returncode == 2
    assert said in done.stdout
    assert "Read the host" not in done.stdout
