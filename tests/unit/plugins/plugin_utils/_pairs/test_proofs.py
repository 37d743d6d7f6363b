# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proofs: what a measurement depends on, how long it holds, and what a sweep does to the records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import (
    Proof,
    Proofs,
    bases,
    is_young,
    read,
    renewed,
    standing,
    write,
)
from tests.unit.builders.hosts import lab_facts, lab_intent

MEASURED = 1_795_179_125.0
HOUR = 3600.0
#: (intent, comparable facts)
Host = tuple[dict[str, Any], dict[str, Any]]
Change = Callable[[Host], Any]
RAILS = ("rail0", "rail1")


def lab_host(node: int = 1, **sections: Any) -> Host:
    """A lab machine, with NICs whose facts have what Soft-RoCE has not."""
    facts = lab_facts(node)
    for rail, bus in enumerate(("21", "41")):
        address, hop = f"0000:{bus}:00.0", {"address": f"0000:{bus}:01.0", "speed_gtps": 32.0, "width": 16}
        pci = {"address": address, "speed_gtps": 32.0, "width": 16, "narrowest": hop, "hops": [], "mrrs_bytes": 4096}
        facts["devices"][f"rxe_rail{rail}"].update(firmware="28.41.1000", board_id="MT_0000000838", pci=pci, function="pf")
    return lab_intent(node, **{"roce": {}, **sections}), comparable(facts)


def bases_of(intent: dict[str, Any], facts: dict[str, Any]) -> Mapping[str, Mapping[str, str]]:
    return bases(intent, from_dict(facts))


def of_module(name: str, **to: Any) -> Change:
    return lambda host: host[1]["stack"]["modules"].setdefault(name, {"version": None, "srcversion": None}).update(to)


def of_device(**to: Any) -> Change:
    return lambda host: host[1]["devices"]["rxe_rail0"].update(to)


def of_port(**to: Any) -> Change:
    return lambda host: host[1]["devices"]["rxe_rail0"]["ports"]["1"].update(to)


def of_pci(**to: Any) -> Change:
    return lambda host: host[1]["devices"]["rxe_rail0"]["pci"].update(to)


def of_rail(**to: Any) -> Change:
    return lambda host: host[0]["rails"][0].update(to)


def of_pairs(**to: Any) -> Change:
    return lambda host: host[0]["pairs"].update(to)


NARROW = {"address": "0000:21:01.0", "speed_gtps": 16.0, "width": 16}
#: What changes on rail0, or on the host, and which parts of its proof that ends.
OF_RAIL0: dict[str, tuple[Change, set[str]]] = {
    "another firmware": (of_device(firmware="28.43.2566"), {"firmware"}),
    "another board": (of_device(board_id="MT_0000000839"), {"firmware"}),
    "another NIC": (of_device(node_guid="5054:00ff:fe1a:ffff"), {"port"}),
    "another slot": (of_pci(address="0000:22:00.0"), {"port"}),
    "another PCIe width": (of_pci(width=8), {"port"}),
    "another PCIe generation": (of_pci(speed_gtps=16.0), {"port"}),
    "a narrower hop": (of_pci(narrowest=NARROW), {"port"}),
    "no PCI function": (of_device(pci=None), {"port"}),
    "another rate": (of_port(rate_gbps=100.0), {"port"}),
    "another width": (of_port(width=2), {"port"}),
    "another link layer": (of_port(link_layer="InfiniBand"), {"port"}),
    "a tenant's partition": (of_port(pkeys={"0": 0x7FFF, "1": 0x8001}), {"port"}),
    "no partition": (of_port(pkeys={"0": 0x7FFF}), {"port"}),
    "another MTU": (lambda host: host[1]["netdevs"]["ens1"].update(mtu_bytes=1500), {"port"}),
    "another RDMA MTU": (of_port(active_mtu_bytes=1024), {"port"}),
    "another RDMA MTU on InfiniBand": (of_port(link_layer="InfiniBand", active_mtu_bytes=2048), {"port"}),
    "another NUMA node": (of_device(numa_node=1), {"port"}),
    "another MRRS": (lambda host: host[1]["devices"]["rxe_rail0"]["pci"].update(mrrs_bytes=512), {"port"}),
    "no device": (lambda host: host[1]["devices"].pop("rxe_rail0"), {"firmware", "port"}),
    "another plane": (of_rail(plane="other"), {"intent"}),
    "another address": (of_rail(address="192.168.100.9/24"), {"intent"}),
    "another planned MTU": (of_rail(mtu_bytes=1500), {"intent"}),
}
OF_BOTH: dict[str, tuple[Change, set[str]]] = {
    "another kernel": (lambda host: host[1]["stack"].update(kernel="6.1.0-57-amd64"), {"driver"}),
    "another version of a module": (of_module("rdma_rxe", version="24.10-1.1.4"), {"driver"}),
    "another build of a module": (of_module("ib_core", srcversion="0123"), {"driver"}),
    "another size of message": (of_pairs(size_bytes=1024), {"intent"}),
    "another program": (of_pairs(command="ib_read_bw"), {"intent"}),
    "no latency": (of_pairs(latency_command="none"), {"intent"}),
    "another traffic class": (lambda host: host[0]["roce"].update(dscp=34), {"intent"}),
}
#: These say nothing of what a port can carry.
OF_NOTHING: dict[str, Change] = {
    "a module that no rail needs": of_module("siw"),
    "the host has booted": lambda host: host[1]["boot"].update(boot_id="x"),
    "the port is down": of_port(state="DOWN"),
    "a file of ours": lambda host: host[1]["files"].clear(),
    "another policy": lambda host: host[0]["gate"].update(policy="report"),
    "rings that RDMA does not use": lambda host: host[1]["netdevs"]["ens1"].update(rings=[8192, 8192, 8192, 8192]),
    "somebody at work": lambda host: host[1]["load"]["jobs"].append({"pid": 1, "name": "slurmstepd"}),
    "another way to judge": of_pairs(fail_below=0.5, warn_below=0.6, floor_gbps=1.0),
    "another schedule": of_pairs(schedule="ring", partners=2, seed=1),
    "another deadline": of_pairs(deadline_seconds=600),
}


def changed(change: Change) -> dict[str, set[str]]:
    """Rail → the parts of its basis that a change of the host makes others."""
    before, host = bases_of(*lab_host()), lab_host()
    change(host)
    after = bases_of(*host)
    return {rail: {part for part in before[rail] if before[rail][part] != after[rail][part]} for rail in RAILS}


def test_a_basis_is_the_same_for_the_same_host_and_names_four_parts() -> None:
    assert bases_of(*lab_host()) == bases_of(*lab_host())
    assert {rail: list(of) for rail, of in bases_of(*lab_host()).items()} == {
        rail: ["driver", "firmware", "port", "intent"] for rail in RAILS
    }


@pytest.mark.parametrize(("change", "parts"), OF_RAIL0.values(), ids=OF_RAIL0)
def test_what_changes_on_a_rail_ends_the_proof_of_this_rail(change: Change, parts: set[str]) -> None:
    assert changed(change) == {"rail0": parts, "rail1": set()}


@pytest.mark.parametrize(("change", "parts"), OF_BOTH.values(), ids=OF_BOTH)
def test_what_changes_on_a_host_ends_the_proofs_of_all_its_rails(change: Change, parts: set[str]) -> None:
    assert changed(change) == {"rail0": parts, "rail1": parts}


@pytest.mark.parametrize("change", OF_NOTHING.values(), ids=OF_NOTHING)
def test_what_says_nothing_of_a_port_ends_no_proof(change: Change) -> None:
    assert changed(change) == {"rail0": set(), "rail1": set()}


def test_a_rail_more_ends_no_proof_of_the_others() -> None:
    intent, facts = lab_host()
    intent["rails"].append({**intent["rails"][1], "name": "rail2", "nic": {"pci": "0000:61:00.0"}, "address": "192.168.102.1/24"})
    after = bases_of(intent, facts)
    assert {rail: after[rail] for rail in RAILS} == bases_of(*lab_host())


def proof(rail: str = "rail0", node: int = 1, measured: float = MEASURED, run: str = "R0") -> Proof:
    endpoint = {"address": "192.168.100.1", "device": "rxe_rail0", "port": 1, "gid_index": 1, "numa_node": None, "gpu": None}
    return Proof(bases_of(*lab_host(node))[rail], measured, run, 3, {"bandwidth": 0.2, "latency": 180.5}, 0.98, endpoint)


NOW_BASIS = bases_of(*lab_host())["rail0"]


def test_a_fresh_proof_holds() -> None:
    found = standing(proof(), NOW_BASIS, MEASURED + HOUR, 168)
    assert found.valid
    assert found.proof == proof()


DAMAGE = [
    *([], "", {"schema": 2}, {"schema": 2, "endpoints": []}, {"schema": 2, "endpoints": {"node1": ["rail0"]}}),
    *({"measured": "now"}, {"measured": float("inf")}, {"measured": True}, {"medians": []}, {"medians": {"bandwidth": "0.2"}}),
    *({"basis": {"port": 7}}, {"basis": None}, {"partners": "3"}, {"ratio": None}, {"endpoint": []}, {"run": 7}, {"more": 1}),
    *({"met": "node2"}, {"met": [2]}, {"met": {}}),
    *({"ratio": 10**400}, {"endpoint": {"device": "mlx5_0"}}, {"endpoint": {"address": "node1"}}, {"endpoint": {"address": 7}}),
    {"endpoint": {"address": "192.168.100.1", "gid_address": "node1"}},
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_damaged_proof_does_not_count_and_the_others_do(damage: Any) -> None:
    whole = write({"node1": {"rail0": proof(), "rail1": proof("rail1")}})
    if not isinstance(damage, dict) or "schema" in damage:
        assert read(damage) == {}
        return
    whole["endpoints"]["node1"]["rail0"].update(damage)
    assert read(whole) == {"node1": {"rail1": proof("rail1")}}


def test_what_was_never_measured_is_not_proven() -> None:
    found = standing(None, NOW_BASIS, MEASURED, 168)
    assert (found.valid, found.proof, found.words, found.too_old) == (False, None, "never measured, or not proven good", False)


@pytest.mark.parametrize(
    ("hours", "young"),
    [(0.0, True), (168.0, True), (168.01, False), (100_000.0, False), (-0.5, False)],
    ids=["now", "of the last hour", "too old", "very old", "of the future"],
)
def test_a_proof_holds_for_so_long(hours: float, young: bool) -> None:
    now = MEASURED + hours * HOUR
    found = standing(proof(), NOW_BASIS, now, 168)
    assert (found.valid, found.too_old, found.changed) == (young, not young, "")
    assert is_young(proof(), now, 168) == young
    assert young or found.words == "its proof is older than rdma_proof_max_age_hours"


def test_a_proof_that_may_have_no_age_does_not_hold() -> None:
    assert not standing(proof(), NOW_BASIS, MEASURED + 1, 0).valid


@pytest.mark.parametrize("part", ["driver", "firmware", "port", "intent"])
def test_each_part_that_has_changed_ends_a_proof_and_is_named(part: str) -> None:
    found = standing(proof(), {**NOW_BASIS, part: "0123456789abcdef"}, MEASURED + HOUR, 168)
    assert (found.valid, found.too_old, found.words) == (False, False, f"changed since it was measured: {part}")


def test_all_that_has_changed_is_named_before_its_age() -> None:
    host = lab_host()
    of_module("rdma_rxe", version="1")(host)
    of_port(rate_gbps=100.0)(host)
    found = standing(proof(), bases_of(*host)["rail0"], MEASURED + 1000 * HOUR, 168)
    assert found.changed == "changed since it was measured: driver, port"
    assert not found.too_old


def test_a_proof_without_a_part_does_not_hold() -> None:
    old = replace(proof(), basis={part: value for part, value in NOW_BASIS.items() if part != "intent"})
    assert standing(old, NOW_BASIS, MEASURED, 168).changed == "changed since it was measured: intent"


def test_proofs_come_out_of_their_file_as_they_went_in() -> None:
    proofs = {"node1": {"rail0": proof(), "rail1": proof("rail1")}, "node2": {"rail0": proof(node=2)}}
    assert read(json.loads(json.dumps(write(proofs)))) == proofs


@pytest.mark.parametrize(
    "data",
    [None, {}, {"schema": 1, "records": {}}, {"schema": 3, "endpoints": {"node1": {}}}],
    ids=["no file", "nothing", "older", "newer"],
)
def test_what_another_version_has_written_does_not_count(data: dict[str, Any] | None) -> None:
    assert read(data) == {}


def test_a_proof_without_an_endpoint_can_be_read() -> None:
    data = write({"node1": {"rail0": proof()}})
    del data["endpoints"]["node1"]["rail0"]["endpoint"]
    assert read(data)["node1"]["rail0"].endpoint == {}


def test_a_proof_of_before_partners_were_recorded_does_not_count() -> None:
    data = write({"node1": {"rail0": proof(), "rail1": proof("rail1")}})
    del data["endpoints"]["node1"]["rail0"]["met"]
    assert list(read(data)["node1"]) == ["rail1"]


@pytest.mark.parametrize(
    ("met", "words"),
    [
        (None, ""),
        (["node2", "node3", "node4", "node5"], ""),
        (["node2", "node4"], "never measured with node3, as `rdma_pairs.schedule: full` requires"),
        ([], "never measured with node2, node3, node4, as `rdma_pairs.schedule: full` requires"),
    ],
)
def test_a_proof_holds_with_the_partners_that_are_required(met: list[str] | None, words: str) -> None:
    each = replace(proof(), met=met)
    assert standing(each, NOW_BASIS, MEASURED, 168).valid
    found = standing(each, NOW_BASIS, MEASURED, 168, ["node2", "node3", "node4"])
    assert (found.valid, found.changed, found.too_old) == (not words, words, False)
    assert read(json.loads(json.dumps(write({"node1": {"rail0": each}})))) == {"node1": {"rail0": each}}


BEFORE: Proofs = {"node1": {"rail0": proof(), "rail1": proof("rail1")}, "node2": {"rail0": proof(node=2)}}
LATER = proof(measured=MEASURED + HOUR, run="R1")


def test_a_good_measurement_is_recorded_beside_the_others() -> None:
    assert renewed({}, {"node1": {"rail0"}}, {"node1": {"rail0": LATER}}) == {"node1": {"rail0": LATER}}
    after = renewed(BEFORE, {"node1": {"rail0"}}, {"node1": {"rail0": LATER}})
    assert after == {"node1": {"rail0": LATER, "rail1": BEFORE["node1"]["rail1"]}, "node2": BEFORE["node2"]}


def test_a_bad_measurement_takes_the_earlier_proof_of_its_rail_away() -> None:
    assert renewed(BEFORE, {"node1": {"rail0"}}, {}) == {"node1": {"rail1": BEFORE["node1"]["rail1"]}, "node2": BEFORE["node2"]}


def test_a_host_without_a_proof_left_is_not_in_the_records() -> None:
    assert renewed(BEFORE, {"node2": {"rail0", "rail1"}}, {}) == {"node1": BEFORE["node1"]}


def test_what_was_not_measured_keeps_its_proof() -> None:
    assert renewed(BEFORE, {}, {}) == BEFORE
    assert renewed(BEFORE, {"node9": {"rail0"}}, {}) == BEFORE


def test_the_records_that_were_given_are_left_as_they_are() -> None:
    before = json.dumps(write(BEFORE))
    renewed(BEFORE, {"node1": {"rail0"}}, {"node1": {"rail1": LATER}})
    assert json.dumps(write(BEFORE)) == before


def test_another_place_in_the_table_ends_no_proof() -> None:
    one, other = lab_host(), lab_host()
    of_port(pkeys={"0": 0x7FFF, "1": 0x8001})(one)
    of_port(pkeys={"0": 0x7FFF, "1": 0x0002, "5": 0x8001})(other)
    assert bases_of(*one) == bases_of(*other)
    of_port(pkeys={"0": 0xFFFF})(one)
    assert bases_of(*one) == bases_of(*lab_host())
