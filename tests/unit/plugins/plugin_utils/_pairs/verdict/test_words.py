# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts in words."""

from __future__ import annotations

import dataclasses
from array import array

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import KINDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Failure, Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict, localize
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.words import (
    FAILED,
    FAILED_INFINIBAND,
    SLOW,
    Places,
    describe,
    failure_remedy,
    subject,
)

HOSTS = ["node1", "node2", "node3", "node4"]
PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def lab(left: float | None, value: float = 0.11) -> Matrix:
    """Four hosts, two rails of software devices; node2's NIC of rail0 has that share left, or fails."""
    rows = [(rail, *pair, left if rail == 0 and 1 in pair else 1.0) for rail in (0, 1) for pair in PAIRS]
    matrix = Matrix.of(HOSTS, ["rail0", "rail1"], rows)
    return dataclasses.replace(matrix, value=array("d", [value * ratio for ratio in matrix.ratio]))


def test_a_slow_nic() -> None:
    matrix = lab(0.16)
    (verdict,) = localize(matrix)
    observed, expected, remedy = describe(verdict, matrix)
    assert observed == "node2, rail0: 3 of 3 partners at 0.0176 of 0.11 Gb/s, with node1, node3, node4"
    assert expected == "about 0.11 Gb/s, as healthy pairs reach in this sweep"
    assert remedy.startswith("1. On node1: `ping -c 3 -M do -s SIZE ")
    assert "PCI" in remedy or "lspci" in remedy


def test_software_is_as_fast_as_its_cpu_and_has_no_pcie() -> None:
    matrix = lab(0.16)
    (verdict,) = localize(matrix)
    for kind in SLOW:
        where = {"nic": verdict, "sends": dataclasses.replace(verdict, direction="sends")}.get(
            kind, dataclasses.replace(verdict, kind=kind)
        )
        remedy = describe(dataclasses.replace(where, element="leaf1" if kind == "path" else None), matrix, software=True)[2]
        assert not {word for word in ("lspci", "PCIe", "governor", "ethtool -m", "MRRS") if word in remedy}, kind
    assert describe(verdict, matrix, software=True)[2].startswith("1. On node2: `uptime`.")


def test_a_nic_that_fails_says_why() -> None:
    matrix = lab(None)
    failure = Failure("retry_exceeded", "Failed status 12: transport retry counter exceeded")
    matrix = dataclasses.replace(matrix, failures={at: failure for at in range(len(matrix)) if matrix.ratio[at] != matrix.ratio[at]})
    (verdict,) = localize(matrix)
    observed, expected, remedy = describe(verdict, matrix)
    assert observed == "node2, rail0: 3 of 3 partners failed (retry_exceeded), with node1, node3, node4"
    assert expected == "a measurement that succeeds, as others do"
    assert remedy.endswith(f' Output: "{failure.line}"')
    assert remedy.startswith("1. On node1: `ping -c 3 -M do ")
    assert (
        "2. If ping gets a reply, a firewall may drop the data. On node2 and node1: `nft list ruleset`. Allow inbound UDP port 4791"
        in remedy
    )
    assert describe(verdict, lab(None))[0].endswith("partners failed, with node1, node3, node4")


def test_a_slow_one_among_those_that_failed_is_not_reported_to_have_failed() -> None:
    matrix = lab(None)
    slow = next(at for at in range(len(matrix)) if matrix.ratio[at] != matrix.ratio[at])
    ratio = array("d", matrix.ratio)
    ratio[slow] = 0.1
    value = array("d", matrix.value)
    value[slow] = 0.011
    matrix = dataclasses.replace(matrix, ratio=ratio, value=value)
    (verdict,) = localize(matrix)
    assert describe(verdict, matrix)[0] == "node2, rail0: 3 of 3 partners failed or are slow, with node1, node3, node4"


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (Verdict("host", 1), "node2"),
        (Verdict("nic", 1, 0), "node2, rail0"),
        (Verdict("rail", rail=1), "rail1"),
        (Verdict("direction", 1, 0, "sends"), "node2, rail0, sends"),
        (Verdict("direction", 1, None, "receives"), "node2, all rails, receives"),
        (Verdict("pair", 1, 0, other=3), "node2 with node4, rail0"),
        (Verdict("pair", 1, other=3), "node2 with node4"),
        (Verdict("path", element="leaf7"), "leaf7"),
    ],
)
def test_subjects(verdict: Verdict, words: str) -> None:
    matrix = lab(0.5)
    assert subject(verdict, matrix) == words
    for failed in (True, False):
        answer = describe(dataclasses.replace(verdict, failed=failed, ratio=0.5, explained=1, measured=1, evidence=(0,)), matrix)
        assert answer[0].startswith(f"{words}: ")
        assert all(answer)


def test_of_latencies_more_is_worse() -> None:
    matrix = dataclasses.replace(lab(0.5), value=array("d", [4.0] * 12), is_latency=True)
    assert "at 4 of 2 µs" in describe(Verdict("nic", 1, 0, ratio=0.5, evidence=(0,)), matrix)[0]


PLAN = {
    "rendezvous_port": 18600,
    "perftest_port": 18515,
    "hosts": HOSTS,
    "profiles": [{"gid_index": 1}, {"gid_index": None}],
    "rails": [
        {"name": f"rail{rail}", "addresses": [f"192.168.{rail}.{host}" for host in range(1, 5)], "profiles": 4 * [profile]}
        for rail, profile in ((0, 0), (1, 1))
    ],
}


def failed(kind: str, rail: int = 0, line: str = "", answers: tuple[tuple[str, str], ...] = ()) -> str:
    """The remedy for node2's NIC of a rail, all measurements of which failed so; answers: as Places has it."""
    rows = [(on, *pair, None if on == rail and 1 in pair else 1.0) for on in (0, 1) for pair in PAIRS]
    matrix = Matrix.of(HOSTS, ["rail0", "rail1"], rows)
    lost = {at: Failure(kind, line) for at in range(len(matrix)) if matrix.ratio[at] != matrix.ratio[at]}
    (verdict,) = localize(dataclasses.replace(matrix, failures=lost))
    return describe(verdict, dataclasses.replace(matrix, failures=lost), Places.of(PLAN, answers))[2]


def test_a_dead_address_is_pinged_first_and_a_firewall_named_with_its_ports() -> None:
    ping, firewall, _log = failed("dead").split(". ", 1)[1].split(" 2. ")[0], failed("dead").split(" 2. ")[1].split(" 3. ")[0], ""
    assert ping.startswith("On node1: `ping -c 3 -I 192.168.0.1 192.168.0.2`.")
    assert "On node2: `nft list ruleset`" in firewall
    assert "TCP ports 18600 (pair runner) and 18515 (perftest)" in firewall
    assert "TCP ports 18601 (pair runner) and 18516 (perftest)" in failed("dead", rail=1)


@pytest.mark.parametrize(("kind", "port"), [("dead", "TCP ports 18600"), ("timeout", "UDP port 4791"), ("retry_exceeded", "UDP port 4791")])
def test_what_answers_ping_is_behind_a_firewall(kind: str, port: str) -> None:
    remedy = failed(kind, answers=(("rail0", "node2"),))
    assert remedy.startswith("1. The address answers ping, so a firewall is likely. On node2")
    assert port in remedy.split(" 2. ", maxsplit=1)[0]
    assert remedy.count("nft list ruleset") == 1


@pytest.mark.parametrize("kind", list(SLOW))
def test_slow_infiniband_has_no_pfc_and_no_optic_of_an_interface(kind: str) -> None:
    matrix = lab(0.16)
    (nic,) = localize(matrix)
    verdict = dataclasses.replace(nic, kind=kind) if kind not in ("sends", "receives") else dataclasses.replace(nic, direction=kind)
    remedy = describe(verdict, matrix, Places({}, {}, frozenset({"rail0"})))[2]
    assert remedy.startswith("1. On node2: ")
    assert not {word for word in ("PFC", "ethtool", "ping", "MTU", "pause") if word in remedy}
    assert describe(verdict, matrix, Places({}, {}, frozenset({"rail1"})))[2] != remedy or kind == "host"


def test_infiniband_has_no_udp_port() -> None:
    assert "4791" in failed("retry_exceeded")
    assert "4791" not in failed("retry_exceeded", rail=1)


@pytest.mark.parametrize("kind", list(FAILED))
def test_failed_infiniband_has_the_steps_of_infiniband_only(kind: str) -> None:
    remedy = failed(kind, rail=1, answers=(("rail1", "node2"),))
    assert not {word for word in ("PFC", "ethtool", "`ping", "GID", "ip link", "UDP") if word in remedy}
    assert (failure_remedy(kind, "", host="h", rail="r", infiniband=True) != failure_remedy(kind, "", host="h", rail="r")) is (
        kind in FAILED_INFINIBAND
    )


def test_there_are_three_steps_at_most() -> None:
    for kind in FAILED:
        assert " 4. " not in failed(kind)


def test_every_kind_of_failure_has_a_remedy() -> None:
    assert set(FAILED) == KINDS
