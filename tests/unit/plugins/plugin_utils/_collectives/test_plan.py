# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a set of hosts should reach, who of them is run, and with which arguments."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.expected import Expectations, Rate
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import CollectivePlan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof
from tests.unit.builders.collective_hosts import HOSTS, NOW, known, plan
from tests.unit.builders.known import known_of

#: Two NICs of 100 Gb/s, MTU 4096: 98.04 Gb/s of payload each.
NICS_GBPS = 2 * 100 * 4096 / (4096 + 82)


def proof(of: CollectivePlan, host: str, partners: int = 3) -> Proof:
    return Proof(of.basis(host), NOW - 3600, "R1", partners, {"busbw": 24.0}, 0.0)


def rate(operation: str = "all_reduce", count: int = 4, **settings: object) -> Rate:
    return Expectations(Fleet.of(known_of(known(**settings)))).rate(HOSTS[:count], operation, 2)


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"])
def test_between_hosts_the_nics_of_one_bound_it(operation: str) -> None:
    assert rate(operation).gbps == pytest.approx(NICS_GBPS)
    assert rate(operation).reason == "2 NICs of node1: 196.1 Gb/s"


def test_the_host_with_the_least_bounds_a_set() -> None:
    of = known()
    of["node3"]["facts"]["devices"]["rxe_rail1"]["ports"]["1"]["rate_gbps"] = 40.0
    expectations = Expectations(Fleet.of(known_of(of)))
    assert expectations.rate(HOSTS[:2], "all_reduce", 2).gbps == pytest.approx(NICS_GBPS)
    assert expectations.rate(HOSTS, "all_reduce", 2).gbps == pytest.approx(0.7 * NICS_GBPS)


def test_of_alltoall_each_gpu_has_its_share_of_the_nics_and_sends_most_of_its_data_out() -> None:
    assert rate("alltoall").gbps == pytest.approx(NICS_GBPS / 2 * 7 / 6)


def test_where_neighbors_decide_no_figure_is_invented() -> None:
    found = rate("sendrecv")
    assert found.gbps is None
    assert "no figure is derived" in found.no_limit


def test_one_host_has_only_the_figure_that_the_intent_gives() -> None:
    assert rate(count=1).gbps is None
    assert rate(count=1).no_limit == "no NVLink rate is given (rdma_collectives.nvlink_busbw_gbps)"
    assert rate(count=1, nvlink_busbw_gbps=2400) == Rate(2400, reason="rdma_collectives.nvlink_busbw_gbps", given=True)


def test_software_has_no_limit_and_a_card_whose_rate_is_not_known_has_none_either_but_should() -> None:
    assert rate(hard=False) == Rate(None, "Soft-RoCE has no line rate", "node1: Soft-RoCE has no line rate")
    of = known()
    of["node2"]["facts"]["devices"]["rxe_rail0"]["ports"]["1"]["rate_gbps"] = None
    found = Expectations(Fleet.of(known_of(of))).rate(HOSTS, "all_reduce", 2)
    assert (found.gbps, found.no_limit) == (None, "")


def test_the_option_expected_is_whole() -> None:
    assert Expectations(Fleet.of(known_of(known()))).expected(HOSTS[:2], "all_reduce", 2) == {
        "names": {"node1": "node1", "node2": "node2"},
        "gbytes_per_s": pytest.approx(NICS_GBPS / 8),
        "no_limit": "",
        "hcas": {"node1": ["rxe_rail0", "rxe_rail1"], "node2": ["rxe_rail0", "rxe_rail1"]},
        "all_hcas": True,
        "gdr": None,
        "fail_below": 0.8,
        "warn_below": 0.9,
        "large_bytes": 2**30,
    }


def test_a_figure_of_the_intent_is_meant_as_it_is_given() -> None:
    found = Expectations(Fleet.of(known_of(known(min_busbw_gbps=160, max_bytes=2**20, min_bytes=2**10)))).expected(HOSTS, "all_reduce", 2)
    assert (found["gbytes_per_s"], found["fail_below"], found["warn_below"], found["large_bytes"]) == (20, 1.0, 1.0, 2**20)


def test_a_rate_counts_from_a_size_on_that_is_really_run() -> None:
    """From 1 MiB on by a factor of 2 no size of 100 MB is met."""
    found = Expectations(Fleet.of(known_of(known(min_bytes=2**20, max_bytes=100_000_000)))).expected(HOSTS[:2], "all_reduce", 2)
    assert found["large_bytes"] == 2**26


@pytest.mark.parametrize(
    ("proven", "remeasure", "left_out", "expected"),
    [
        ((), None, (), HOSTS),
        (HOSTS, None, (), []),
        (HOSTS, True, (), HOSTS),
        ((), False, (), []),
        (("node1", "node2", "node4"), None, (), ["node1", "node2", "node3"]),
        (("node1", "node2", "node4"), None, ("node1",), ["node2", "node4", "node3"]),
        (("node1",), None, (), ["node1", "node2", "node3", "node4"]),
    ],
    ids=["nothing proven", "all proven", "asked for", "refused", "one is new", "one is busy", "one is proven"],
)
def test_who_is_run(proven: tuple[str, ...], remeasure: bool | None, left_out: tuple[str, ...], expected: list[str]) -> None:
    of = plan()
    with_proofs = plan(proofs={host: {"all_reduce": proof(of, host)} for host in proven})
    assert with_proofs.chosen(remeasure, left_out) == expected


def test_a_proof_of_a_host_alone_says_nothing_of_several() -> None:
    proofs = {host: {"all_reduce": proof(plan(), host, partners=0)} for host in HOSTS}
    assert plan(proofs=proofs).chosen(None) == HOSTS
    one = known(HOSTS[:1])
    assert plan(one, {"node1": {"all_reduce": proof(plan(one), "node1", partners=0)}}).chosen(None) == []


def test_what_nccl_is_set_to_ends_a_proof_and_how_often_it_is_repeated_does_not() -> None:
    proofs = {host: {"all_reduce": proof(plan(), host)} for host in HOSTS}
    assert plan(known(repeats=7, timeout_seconds=9), proofs).chosen(None) == []
    changed = known()
    changed["node2"]["intent"]["nccl"]["variables"] = {"NCCL_ALGO": "Ring"}
    changed["node3"]["intent"]["nccl"]["variables"] = {"NCCL_DEBUG": "WARN"}
    assert plan(changed, proofs).standings["node2"].changed == "changed since it was measured: nccl"
    assert plan(changed, proofs).chosen(None) == ["node1", "node3", "node2"]
    assert plan(known(operation="alltoall"), proofs).chosen(None) == HOSTS


def test_a_host_without_gpus_takes_no_part() -> None:
    of = known()
    of["node2"]["intent"]["collectives"]["gpus"] = None
    assert plan(of).chosen(None) == ["node1", "node3", "node4"]


def test_the_arguments_of_a_run_on_two_hosts() -> None:
    of = known(
        launcher_arguments=["--prefix", "/opt/ompi"], folder="/opt/nccl-tests", environment={"LD_LIBRARY_PATH": "/opt/lib"}, allow_root=True
    )
    of["node2"]["intent"]["collectives"]["gpus"] = 1
    of["node1"]["facts"]["session"] = {"address": "192.0.2.1", "netdev": "eth0"}
    of["node2"]["facts"]["session"] = {"address": "127.0.0.1", "netdev": "lo"}
    arguments = plan(of).arguments(("node1", "node2"), "node1", "all_reduce")
    expected = arguments.pop("expected")
    assert arguments == {
        "operation": "all_reduce", "gpus": 1, "launcher": "mpirun", "program": None, "launcher_arguments": ["--prefix", "/opt/ompi"],
        "interface": None, "allow_root": True, "hosts": ["192.0.2.1", "node2"], "folder": "/opt/nccl-tests",
        "environment": {"LD_LIBRARY_PATH": "/opt/lib"}, "min_bytes": 2**30, "max_bytes": 2**33, "iterations": 20, "timeout_seconds": 300,
        "host": "node1", "subject": "all_reduce_perf on 2 hosts",
    }  # fmt: skip
    assert expected["names"] == {"node1": "node1", "node2": "node2"}


@pytest.mark.parametrize(
    ("given", "tests", "folder"),
    [
        (None, None, None),
        (None, {"folder": "/opt/nccl-tests"}, "/opt/nccl-tests/build"),
        ("/srv/mine", {"folder": "/opt/nccl-tests"}, "/srv/mine"),
    ],
    ids=["on the path", "installed", "given"],
)
def test_where_the_programs_are(given: str | None, tests: dict[str, str] | None, folder: str | None) -> None:
    of = known(folder=given)
    of["node1"]["intent"]["nccl"]["install"] = {"tests": tests}
    assert plan(of).arguments(("node1",), "node1", "all_reduce")["folder"] == folder


def test_a_host_alone_needs_no_launcher() -> None:
    arguments = plan().arguments(("node3",), "node3", "all_gather")
    assert (arguments["launcher"], arguments["subject"], "hosts" in arguments) == ("none", "all_gather_perf on one host", False)
    assert arguments["expected"]["hcas"] == {}


def test_an_address_of_the_intent_wins() -> None:
    assert plan(known(address="gpu-1.example")).address("node1") == "gpu-1.example"
