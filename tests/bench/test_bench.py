# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is pure in the benchmark, and that it counts what it says it counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate import FLEET_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent import normalise
from tests.bench import figures, fleet, watch

LOG = """<127.0.0.1> SSH: EXEC ssh -o ControlMaster=auto 127.0.0.1 '/bin/sh -c /usr/bin/python3'
<node1> EXEC /bin/sh -c '/usr/bin/python3 && sleep 0'
<node1> ESTABLISH LOCAL CONNECTION FOR USER: root
  "msg": "<node1> EXEC is no execution within a line"
"""


def test_lines_of_executions_are_counted() -> None:
    assert watch.executions(LOG) == 2


@pytest.mark.parametrize("modules", [1, 3])
def test_a_play_of_known_count(tmp_path: Path, modules: int) -> None:
    hosts = {name: {"ansible_connection": "local", "ansible_python_interpreter": sys.executable} for name in ("node1", "node2")}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    tasks = [*({"ansible.builtin.ping": {}} for number in range(modules)), {"ansible.builtin.debug": {"msg": "no execution"}}]
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    playbook = str(Path(sys.executable).parent / "ansible-playbook")
    done = watch.watch(["env", "ANSIBLE_PIPELINING=1", playbook, "-vvv", "-i", "hosts.yml", "play.yml"], tmp_path, tmp_path / "log")
    assert (done.status, watch.executions(done.output)) == (0, 2 * modules), done.output
    assert done.main_mib > 20 < done.worker_mib


def test_a_fleet_is_of_real_size_and_passes_the_gate() -> None:
    hosts = {fleet.name(number): fleet.facts(number) for number in (1, 2, 1000)}
    assert all(len(json.dumps(tree, indent=1)) >= 60_000 for tree in hosts.values())
    known = {
        host: {"intent": normalise({"rdma_rails": fleet.rails(number)}), "facts": comparable(hosts[host])}
        for number, host in zip((1, 2, 1000), hosts, strict=True)
    }
    findings = [finding for found in FLEET_CHECKS["preflight"](known).values() for finding in found]
    assert {finding.status for finding in findings} == {"ok"}, findings


@pytest.mark.parametrize(("value", "is_missed"), [(9.99, False), (10.0, False), (10.01, True), (None, True)])
def test_a_bar(value: float | None, is_missed: bool) -> None:
    line = figures.figure("gate_fleet_s_1000", value, ["make", "bench"])
    assert figures.missed(line) is is_missed
    assert ("MISSED" in figures.table([line])) is is_missed
    assert not figures.missed(figures.figure("rerun_wall_s_per_host", value, ["x"]))


@pytest.mark.parametrize(("status", "changes", "words"), [(0, 0, ""), (0, 3, "made 3 changes"), (2, 0, "exit status 2: no lab")])
def test_a_run_that_says_nothing_of_converged_hosts(tmp_path: Path, status: int, changes: int, words: str) -> None:
    (tmp_path / "summary.json").write_text(json.dumps({"changes": changes}))
    said = figures.unfit(watch.Watched(status, "no lab", 1.0, 1.0, 1.0), tmp_path / "summary.json")
    assert words in said
    assert bool(said) is bool(words)
