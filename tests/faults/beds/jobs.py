# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beds of jobs: ladders of nccl-tests whose runs are made up, and outputs of nccl-tests and NCCL that are changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.judge import judge
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import Expected
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.start import read_output
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import LADDER
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.faults.beds.scene import Inject, Scene
from tests.unit.builders.collective_hosts import HOSTS, NOW
from tests.unit.builders.nccl_texts import Job, h200
from tests.unit.plugins.plugin_utils._collectives.test_gate import climbed, judged, run, slow


def _ladder(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """A ladder of four hosts. slow: hosts; bad_pair: two hosts; repeats_slow: the last repeat; perftest_gbps: of the first two hosts."""
    of_run = RunFolder(folder / "R1")
    of_run.path.mkdir()
    pair, names = set(inject.get("bad_pair", ())), inject.get("slow", ())

    def fault(hosts: Sequence[str]) -> dict[str, tuple[str, str, str]]:
        return slow(*hosts)(hosts) if pair and pair <= set(hosts) else slow(*names)(hosts)

    climbed(of_run, fault)
    if inject.get("repeat_slow"):
        data = of_run.read_json(LADDER)
        data["runs"].append(run(HOSTS, slow("node1")))
        of_run.write_json(LADDER, data)
    if "perftest_gbps" in inject:
        each = proofs.Proof({}, NOW, "R0", 3, {"bandwidth": inject["perftest_gbps"]}, 1.0)
        of_run.write_json(proofs.FILE, proofs.write({host: {"rail0": each, "rail1": each} for host in HOSTS}))
    return [each for of in judged(of_run).values() for each in of]


def _output(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """nccl-tests on two H200, as it was printed. output: {old: new}; exit_status: of the program; cut: how many bytes are left."""
    text = h200("all_reduce_perf_debug_info.txt")
    for old, new in (inject.get("output") or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    return _judged(
        folder,
        text[: inject.get("cut", len(text))],
        int(inject.get("exit_status", 0)),
        Expected(2, {"vm": "vm"}, gbytes_per_s=330.0, p2p=True),
    )


def _log(inject: Inject, _earlier: Inject, folder: Path) -> list[Finding]:
    """The log of a job on two hosts. job: fields of Job; output: {old: new}."""
    text = "".join(replace(Job(hosts=2, gpus=2, hcas=2, per_peer=1, rings=2), **(inject.get("job") or {})).lines())
    for old, new in (inject.get("output") or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    hcas = frozenset({"mlx5_0", "mlx5_1"})
    expected = Expected(4, {"node1": "gpu001", "node2": "gpu002"}, hcas={"node1": hcas, "node2": hcas}, gdr=True)
    found = _judged(folder, text, 0, expected)
    return [each for each in found if each.check in ("collective.transport", "collective.hcas")]


def _judged(folder: Path, text: str, exit_status: int, expected: Expected) -> list[Finding]:
    output = folder / "output"
    output.write_text(text, encoding="utf-8")
    outcome = read_output(str(output), host=next(iter(expected.hosts)), subject="all_reduce_perf", exit_status=exit_status)
    return judge(outcome, expected)


BEDS = {
    "ladder": Scene(_ladder, ("slow", "bad_pair", "repeat_slow", "perftest_gbps")),
    "nccl-tests": Scene(_output, ("output", "exit_status", "cut")),
    "NCCL log": Scene(_log, ("job", "output")),
}
