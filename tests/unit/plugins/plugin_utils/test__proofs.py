# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proofs: what a measurement depends on, how long it holds, and what a sweep does to the records."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_checks import PairResult
from ansible_collections.rdma.cluster.plugins.plugin_utils._proofs import basis, key, renewed, standing
from tests.unit.hosts import lab_facts, lab_intent

MEASURED = 1_795_179_125.0
HOUR = 3600.0
RESULT = PairResult("rail0", "node1", "node2", 0.04, 65536, 200, MEASURED, 8.6)
Host = tuple[dict[str, Any], dict[str, Any]]


def lab_host(node: int) -> Host:
    return lab_intent(node), lab_facts(node)


def bases(**changed: Host) -> dict[str, dict[str, str]]:
    return {host: basis(*changed.get(host, lab_host(int(host[-1])))) for host in ("node1", "node2", "node3")}


def record(result: PairResult = RESULT) -> dict[str, Any]:
    """A record as it comes out of its file."""
    kept = renewed({}, [result], [result], bases(), "R0")
    loaded: dict[str, Any] = json.loads(json.dumps(kept))[key(result.rail, (result.server, result.client))]
    return loaded


def hard(host: Host) -> Host:
    """The host with a NIC whose facts have what Soft-RoCE has not."""
    facts = host[1]
    pci = {
        "address": "0000:21:00.0",
        "speed_gtps": 32.0,
        "width": 16,
        "narrowest": {"address": "0000:20:00.0", "speed_gtps": 32.0, "width": 16},
    }
    facts["devices"]["rxe_rail0"].update(firmware="28.41.1000", board_id="MT_0000000838", pci=pci)
    return host


def test_a_basis_is_the_same_for_the_same_host_and_names_four_parts() -> None:
    assert basis(*lab_host(1)) == basis(*lab_host(1))
    assert list(basis(*lab_host(1))) == ["driver", "firmware", "ports", "intent"]


def of_module(name: str, **to: str) -> Callable[[Host], None]:
    return lambda host: host[1]["stack"]["modules"][name].update(to)


def of_device(**to: Any) -> Callable[[Host], None]:
    return lambda host: host[1]["devices"]["rxe_rail0"].update(to)


def of_port(**to: Any) -> Callable[[Host], None]:
    return lambda host: host[1]["devices"]["rxe_rail0"]["ports"]["1"].update(to)


def of_pci(**to: Any) -> Callable[[Host], None]:
    return lambda host: host[1]["devices"]["rxe_rail0"]["pci"].update(to)


CHANGES = [
    ("another kernel", lambda host: host[1]["stack"].update(kernel="6.1.0-57-amd64"), {"driver"}),
    ("another version of a module", of_module("rdma_rxe", version="24.10-1.1.4"), {"driver"}),
    ("another build of a module", of_module("ib_core", srcversion="0123"), {"driver"}),
    ("a module that no rail needs", lambda host: host[1]["stack"]["modules"].update(siw={"version": None, "srcversion": None}), set()),
    ("another firmware", of_device(firmware="28.43.2566"), {"firmware"}),
    ("another board", of_device(board_id="MT_0000000839"), {"firmware"}),
    ("another NIC", of_device(node_guid="5054:00ff:fe1a:ffff"), {"ports"}),
    ("another PCIe width", of_pci(width=8), {"ports"}),
    ("a narrower hop", of_pci(narrowest={"address": "0000:20:00.0", "speed_gtps": 16.0, "width": 16}), {"ports"}),
    ("another rate", of_port(rate_gbps=100.0), {"ports"}),
    ("another width", of_port(width=2), {"ports"}),
    ("another link layer", of_port(link_layer="InfiniBand"), {"ports"}),
    ("another MTU", lambda host: host[1]["netdevs"]["ens1"].update(mtu_bytes=1500), {"ports"}),
    ("no device", lambda host: host[1]["devices"].pop("rxe_rail0"), {"firmware", "ports"}),
    ("another rail", lambda host: host[0]["rails"][0].update(plane="other"), {"intent"}),
    ("another way to measure", lambda host: host[0]["pairs"].update(size_bytes=1024), {"intent"}),
    # These say nothing of what a pair can carry.
    ("the host has booted", lambda host: host[1]["boot"].update(boot_id="x"), set()),
    ("counters have moved", of_port(hw_counters={"rcvd_pkts": 1}), set()),
    ("the port is down", of_port(state="DOWN"), set()),
    ("a holder of a module", lambda host: host[1]["stack"]["modules"]["ib_core"].update(holders=[]), set()),
    ("a PCIe link that could be wider", of_pci(max_width=32), set()),
    ("a file of ours", lambda host: host[1]["files"].clear(), set()),
    ("another policy", lambda host: host[0]["gate"].update(policy="report"), set()),
    ("somebody at work", lambda host: host[1]["load"]["jobs"].append({"pid": 1, "name": "slurmstepd"}), set()),
]


@pytest.mark.parametrize(("change", "parts"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_what_a_measurement_depends_on(change: Callable[[Host], None], parts: set[str]) -> None:
    before, host = basis(*hard(lab_host(1))), hard(lab_host(1))
    change(host)
    after = basis(*host)
    assert {part for part in before if before[part] != after[part]} == parts


def test_a_fresh_proof_holds() -> None:
    found = standing(record(), bases(), MEASURED + HOUR, 168)
    assert found.valid
    assert found.result == PairResult(**{**RESULT.to_dict(), "run": "R0"})


def test_what_was_never_measured_is_not_proven() -> None:
    found = standing(None, bases(), MEASURED, 168)
    assert (found.valid, found.result, found.changed, found.too_old) == (False, None, "never measured", False)


AGES = [(0.0, True), (168.0, True), (168.01, False), (100_000.0, False), (-0.5, False)]


@pytest.mark.parametrize(("hours", "valid"), AGES)
def test_a_proof_holds_for_so_long(hours: float, valid: bool) -> None:
    found = standing(record(), bases(), MEASURED + hours * HOUR, 168)
    assert (found.valid, found.too_old, found.changed) == (valid, not valid, "")


def test_a_proof_that_may_have_no_age_does_not_hold() -> None:
    assert not standing(record(), bases(), MEASURED + 1, 0).valid


def test_a_record_without_a_time_does_not_hold() -> None:
    timeless = PairResult("rail0", "node1", "node2", 0.04, 65536, 200, None, None)
    assert standing(record(timeless), bases(), MEASURED, 168).too_old


FOUR = [
    ("driver", of_module("rdma_rxe", version="24.10-1.1.4")),
    ("firmware", of_device(firmware="28.43.2566")),
    ("ports", of_port(rate_gbps=100.0)),
    ("intent", lambda host: host[0]["rails"][0].update(mtu_bytes=1500)),
]


@pytest.mark.parametrize("name", ["node1", "node2"])
@pytest.mark.parametrize(("part", "change"), FOUR)
def test_a_change_on_either_host_ends_a_proof_and_is_named(name: str, part: str, change: Callable[[Host], None]) -> None:
    host = lab_host(int(name[-1]))
    change(host)
    found = standing(record(), bases(**{name: host}), MEASURED + HOUR, 168)
    assert (found.valid, found.too_old) == (False, False)
    assert found.changed == f"changed since it was measured: {part} of {name}"


def test_all_that_has_changed_is_named_before_its_age() -> None:
    one, other = lab_host(1), lab_host(2)
    of_module("rdma_rxe", version="1")(one)
    of_port(rate_gbps=100.0)(other)
    found = standing(record(), bases(node1=one, node2=other), MEASURED + 1000 * HOUR, 168)
    assert found.changed == "changed since it was measured: driver of node1, ports of node2"
    assert not found.too_old


def test_a_change_on_a_third_host_is_none() -> None:
    third = lab_host(3)
    of_device(firmware="28.43.2566")(third)
    assert standing(record(), bases(node3=third), MEASURED + HOUR, 168).valid


def test_a_record_without_a_part_does_not_hold() -> None:
    old = record()
    del old["bases"]["node2"]["intent"]
    assert standing(old, bases(), MEASURED, 168).changed == "changed since it was measured: intent of node2"


def test_a_record_has_one_name_whoever_was_the_client() -> None:
    assert key("rail0", ("node2", "node1")) == key("rail0", ("node1", "node2")) == "rail0 node1 node2"
    assert key("rail1", ("node1", "node2")) != key("rail0", ("node1", "node2"))


def test_a_good_measurement_is_recorded_with_its_run_and_its_bases() -> None:
    before: dict[str, Any] = {}
    kept = renewed(before, [RESULT], [RESULT], bases(), "R1")
    assert kept == {
        "rail0 node1 node2": {
            "result": {**RESULT.to_dict(), "run": "R1"},
            "bases": {host: basis(*lab_host(int(host[-1]))) for host in ("node1", "node2")},
        }
    }
    assert before == {}


def test_a_bad_measurement_takes_the_earlier_proof_away() -> None:
    other = PairResult("rail1", "node1", "node2", 0.04, 65536, 200, MEASURED, 8.6)
    earlier = renewed({}, [RESULT, other], [RESULT, other], bases(), "R0")
    again = PairResult("rail0", "node2", "node1", None, None, None, MEASURED, 1.0, "dead: node2")
    assert list(renewed(earlier, [again], [], bases(), "R1")) == ["rail1 node1 node2"]
    assert list(earlier) == ["rail0 node1 node2", "rail1 node1 node2"]


def test_what_was_not_measured_keeps_its_proof() -> None:
    earlier = renewed({}, [RESULT], [RESULT], bases(), "R0")
    assert renewed(earlier, [], [], bases(), "R1") == earlier
