# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ways of a run's data, host by host, in generated logs of two hosts with two GPUs each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.judge_ways import check_hcas, check_transport
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import Expected, Outcome
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.log import parse_nccl_log
from tests.unit.builders.nccl_texts import Job

JOB = Job(hosts=2, gpus=2, hcas=2, per_peer=1, rings=2)
HCAS = frozenset({"mlx5_0", "mlx5_1"})
EXPECTED = Expected(4, {"node1": "gpu001.example.org", "node2": "gpu002"}, hcas={"node1": HCAS, "node2": HCAS}, gdr=True)


def outcome(job: Job = JOB, change: Callable[[str], str] = str) -> Outcome:
    return Outcome("node1", "all_reduce_perf on 2 hosts", 0, None, parse_nccl_log(map(change, job.lines())))


def on_second(before: str, after: str) -> Callable[[str], str]:
    return lambda line: line.replace(before, after) if "gpu002:" in line else line


def over_nvlink(line: str) -> str:
    return re.sub(r"NET/IB/\S+", "P2P/MNNVL", line) if "gpu002:" in line else line


def statuses(findings: list[Finding]) -> list[str]:
    return [finding.status for finding in findings]


def test_all_channels_over_infiniband_with_gpudirect() -> None:
    findings = check_transport(outcome(), EXPECTED)
    assert findings == [
        Finding(
            "collectives",
            "collective.transport",
            host,
            "all_reduce_perf on 2 hosts",
            "ok",
            "8 over NET/IB with GPUDirect RDMA, 2 over P2P/CUMEM",
            "NET/IB with GPUDirect RDMA between hosts, no sockets",
        )
        for host in ("node1", "node2")
    ]


@pytest.mark.parametrize(
    ("change", "status", "observed", "remedy"),
    [
        (
            on_second("NET/IB/1/GDRDMA", "NET/IB/1"),
            "error",
            "5 over NET/IB with GPUDirect RDMA, 3 over NET/IB without",
            "gpu stage for node2",
        ),
        (on_second("NET/IB/1/GDRDMA", "NET/Socket/0"), "error", "3 over NET/Socket", "no RDMA device on node2"),
        (on_second("NET/IB/", "NET/FastSocket/"), "error", "over NET/FastSocket", "no RDMA device on node2"),
        (on_second("NET/IB/", "NET/AWS Libfabric/"), "error", "8 over NET/AWS Libfabric with", "NCCL on node2 uses NET/AWS Libfabric"),
        (on_second("NET/IB/", "NET/IBext_v8/"), "ok", "8 over NET/IBext_v8 with", ""),
        (on_second("P2P/CUMEM", "SHM/direct"), "ok", "2 over SHM/direct", ""),
        (on_second("P2P/CUMEM", "CE/engine"), "unknown", "2 over CE/engine", "NCCL_DEBUG=INFO"),
        (on_second(" via ", " by "), "unknown", "no line on its channels", "NCCL_DEBUG=INFO"),
        (over_nvlink, "unknown", "2 over P2P/CUMEM, 8 over P2P/MNNVL", "NCCL_MNNVL_ENABLE=0"),
    ],
    ids=["no GPUDirect", "sockets", "other sockets", "another plugin", "SHARP's plugin", "memory", "unknown", "no log", "NVLink"],
)
def test_one_thing_wrong_on_one_host(change: Callable[[str], str], status: str, observed: str, remedy: str) -> None:
    first, second = check_transport(outcome(change=change), EXPECTED)
    assert (first.status, second.status) == ("ok", status)
    assert observed in second.observed
    assert remedy in second.remedy
    assert bool(second.remedy) == (status != "ok")


@pytest.mark.parametrize(("gdr", "status"), [(True, "error"), (None, "warning"), (False, "ok")], ids=str)
def test_without_gpudirect_it_depends_on_the_plan(gdr: bool | None, status: str) -> None:
    assert statuses(check_transport(outcome(replace(JOB, gdr=False)), replace(EXPECTED, gdr=gdr))) == [status, status]


def test_memory_of_the_host_where_gpus_should_reach_each_other() -> None:
    run = outcome(change=on_second("P2P/CUMEM", "SHM/direct"))
    assert statuses(check_transport(run, replace(EXPECTED, p2p=True))) == ["ok", "warning"]


def test_a_log_that_is_not_there_is_unknown() -> None:
    run = replace(outcome(), log=None)
    assert statuses(check_transport(run, EXPECTED)) == statuses(check_hcas(run, EXPECTED)) == ["unknown", "unknown"]


def test_on_one_host_the_network_is_a_detour() -> None:
    expected = Expected(2, {"node1": "gpu001"}, hcas={"node1": HCAS})
    assert statuses(check_transport(outcome(), expected)) == ["warning"]
    assert statuses(check_transport(outcome(Job(hosts=1, gpus=2)), expected)) == ["ok"]
    assert statuses(check_hcas(outcome(), expected)) == ["not_applicable"]


@pytest.mark.parametrize(
    ("change", "planned", "status", "observed", "remedy"),
    [
        (str, HCAS, "ok", "mlx5_0, mlx5_1", ""),
        (on_second("[1]mlx5_1:", "[1]mlx5_1_dma:"), HCAS, "ok", "mlx5_0, mlx5_1", ""),
        (on_second("[1]mlx5_1:", "[1]mlx5_0+mlx5_1:"), HCAS, "ok", "mlx5_0, mlx5_1", ""),
        (on_second("[1]mlx5_1:", "[1]mlx5_9:"), HCAS, "error", "mlx5_0, mlx5_9", "without mlx5_9"),
        (on_second("NET/IB/1", "NET/IB/0"), HCAS, "error", "mlx5_0", "mlx5_1 is ACTIVE"),
        (str, HCAS | {"mlx5_2"}, "error", "mlx5_0, mlx5_1", "mlx5_2 is ACTIVE"),
        (on_second("NET/IB : Using", "NET/IB : Taking"), HCAS, "unknown", "the log does not show", "NCCL_DEBUG=INFO"),
        (on_second(" via ", " by "), HCAS, "unknown", "no line on its network channels", "NCCL_DEBUG=INFO"),
    ],
    ids=["as planned", "data direct", "merged", "another", "idle", "one more planned", "no list", "no channels"],
)
def test_hcas(change: Callable[[str], str], planned: frozenset[str], status: str, observed: str, remedy: str) -> None:
    first, second = check_hcas(outcome(change=change), replace(EXPECTED, hcas={"node1": HCAS, "node2": planned}))
    assert (first.status, second.status) == ("ok", status)
    assert second.observed.startswith(observed)
    assert remedy in second.remedy


def by_nvidia_s_plugin(text: str) -> str:
    """HPC-X and NGC: the plugin lists devices under NCCL's own name, and channels have its own."""
    return text.replace("via NET/IB/", "via NET/IBext_v8/").replace("Using network IB", "Using network IBext_v8")


def test_the_devices_of_nvidia_s_plugin_are_those_that_it_lists() -> None:
    found = check_hcas(outcome(change=by_nvidia_s_plugin), EXPECTED)
    assert [(each.status, each.observed) for each in found] == [("ok", "mlx5_0, mlx5_1")] * 2


def test_a_device_of_a_collnet_is_one_of_them_too() -> None:
    def change(text: str) -> str:
        return by_nvidia_s_plugin(text).replace("via NET/IBext_v8/1", "via COLLNET/SHARP/1")

    assert statuses(check_hcas(outcome(change=change), EXPECTED)) == ["ok", "ok"]


def test_where_not_each_hca_has_to_be_used_only_others_are_an_error() -> None:
    some = replace(EXPECTED, all_hcas=False)
    assert statuses(check_hcas(outcome(change=on_second("NET/IB/1", "NET/IB/0")), some)) == ["ok", "ok"]
    assert statuses(check_hcas(outcome(change=on_second("[1]mlx5_1:", "[1]mlx5_9:")), some)) == ["ok", "error"]


def test_on_one_host_nvls_alone_connects_no_channel() -> None:
    alone = Expected(2, {"node1": "gpu001"})

    def change(text: str) -> str:
        return "".join(line for line in text.splitlines(keepends=True) if " via " not in line)

    job = Job(hosts=1, gpus=2)
    without = outcome(job, change=change)
    assert statuses(check_transport(without, alone)) == ["unknown"]
    assert without.log is not None
    [found] = check_transport(replace(without, log=replace(without.log, nvls=True)), alone)
    assert (found.status, found.observed) == ("ok", "only NVLS: the NVLink switches reduce")
    of_two = replace(outcome(change=change), log=replace(without.log, nvls=True))
    assert statuses(check_transport(of_two, EXPECTED)) == ["unknown", "unknown"]


def test_sockets_are_no_hcas_and_one_finding() -> None:
    run = outcome(change=lambda text: text.replace("NET/IB", "NET/Socket"))
    assert statuses(check_transport(run, EXPECTED)) == ["error", "error"]
    assert {(each.status, each.observed) for each in check_hcas(run, EXPECTED)} == {
        ("not_applicable", "not all channels used an HCA, see collective.transport")
    }


def test_rails_without_a_device_are_reported() -> None:
    _first, second = check_hcas(outcome(), replace(EXPECTED, hcas={"node1": HCAS, "node2": frozenset()}))
    assert (second.status, second.observed) == ("unknown", "no device of its compute rails is known")
    assert second.remedy == "Run the driver and link stages for node2: none of its compute rails has a device."


def test_a_host_without_planned_hcas_is_not_asked() -> None:
    assert statuses(check_hcas(outcome(), replace(EXPECTED, hcas={"node1": HCAS}))) == ["ok", "not_applicable"]
