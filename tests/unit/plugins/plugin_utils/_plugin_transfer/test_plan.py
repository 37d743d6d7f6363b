# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts move data through the network plugin, on which rails, and what is proven."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import (
    Meeting,
    parse_transfer_plan,
    parse_transfer_results,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import PluginUser, Transfers, read_proofs
from tests.unit.builders.transfer_runs import MESH, NOW, OTHER, transfers, users


def ways(of: Transfers) -> list[tuple[str, str, str]]:
    return [(each.sender, each.receiver, each.rail) for each in of.meetings]


def test_each_host_sends_to_the_next_one_and_the_mesh_plugin_selects_the_rail() -> None:
    of = transfers(users(3))
    assert ways(of) == [("node1", "node2", "rail0"), ("node2", "node3", "rail0"), ("node3", "node1", "rail0")]
    assert of.meetings[0] == Meeting("node1", "node2", "rail0", "rxe_rail0", "rxe_rail0", "192.168.100.2")
    user = of.users["node1"]
    assert (user.library, user.interface, user.variables) == (
        "/opt/rdma-cluster/nccl/mesh/libnccl-net-mesh.so", 9, {"NCCL_MESH_GID_INDEX": "1"},
    )  # fmt: skip


def test_another_plugin_is_tried_on_each_rail() -> None:
    assert ways(transfers(users(2, OTHER))) == [
        ("node1", "node2", "rail0"), ("node1", "node2", "rail1"), ("node2", "node1", "rail0"), ("node2", "node1", "rail1"),
    ]  # fmt: skip


def test_in_a_mesh_each_host_sends_to_all_neighbors() -> None:
    of = transfers(users(3, topology="mesh"))
    assert sorted((one, other) for one, other, _rail in ways(of)) == [
        (f"node{one}", f"node{other}") for one in (1, 2, 3) for other in (1, 2, 3) if one != other
    ]


def test_hosts_without_a_shared_subnet_do_not_meet() -> None:
    of = transfers(users(2))
    apart = replace(of.users["node2"], networks={"rail0": "10.0.0.0/24", "rail1": None})
    assert replace(of, users={**of.users, "node2": apart}).meetings == []
    assert transfers(users(1)).meetings == []


def test_a_host_takes_part_only_with_the_requested_plugin() -> None:
    known = users(2)
    other = users(2, {**MESH, "checksum": "sha256:" + "b" * 64})
    assert list(transfers({"node1": known["node1"], "node2": replace(known["node2"], intent=other["node2"].intent)}).users) == ["node1"]
    assert transfers(users(2, {"kind": "none"})).users == {}


def proof(of: Transfers, age_hours: float = 0.0) -> dict[str, Any]:
    """Proofs of the first transfer at both hosts."""
    meeting = of.meetings[0]
    record = {"basis": of.basis(meeting), "measured": NOW - age_hours * 3600, "words": "moved"}
    return {"node1: rail0 to node2": record, "node2: from rail0 of node1": record}


def test_a_proven_transfer_is_not_made_again() -> None:
    known = users(3)
    proofs = proof(transfers(known))
    of = transfers(known, proofs)
    assert [each.sender for each in of.chosen(None, [])] == ["node2", "node3"]
    assert len(of.chosen(True, [])) == 3
    assert of.chosen(False, []) == []
    assert [each.sender for each in of.chosen(True, ["node3"])] == ["node1"]


@pytest.mark.parametrize(("age_hours", "library", "valid"), [(167.0, "0", True), (169.0, "0", False), (1.0, "1", False)])
def test_a_proof_ends_with_its_age_and_with_another_library(age_hours: float, library: str, valid: bool) -> None:
    known = users(2)
    of = transfers(users(2, library=library * 64), proof(transfers(known), age_hours))
    assert of.is_proven(of.meetings[0]) is valid


def test_damaged_proofs_are_none() -> None:
    good = {"basis": "x", "measured": 1.0, "words": "y"}
    assert read_proofs({"a": good, "b": {"basis": "x"}, "c": 3}) == {"a": good}
    assert read_proofs(None) == read_proofs([1]) == {}


def test_the_plan_is_read_back_and_limits_the_time() -> None:
    of = transfers(users(3, topology="mesh"))
    plan = of.plan("run-1", of.meetings, forks=2)
    assert parse_transfer_plan(plan.to_text()) == plan
    # 30 s and 10 s for each of two batches of hosts, and 45 s for each of two transfers in one direction.
    assert (plan.start_seconds, plan.limit_seconds("node1")) == (50.0, 140.0)
    with pytest.raises(ParseError, match="the plan of transfers"):
        parse_transfer_plan('{"run": 1}')
    with pytest.raises(ParseError, match="expected a list"):
        parse_transfer_results('[{"partner": 3}]')


@given(st.integers(2, 9), st.integers(1, 4), st.booleans(), st.sampled_from(["mesh", "file"]), st.data())
def test_hosts_send_at_most_one_transfer_at_a_time_and_never_to_themselves(
    hosts: int, rails: int, is_mesh: bool, kind: str, data: st.DataObject
) -> None:
    """Any assignment of rails to subnets: each transfer is between two hosts and, for the mesh plugin, in a subnet of both."""
    networks = {host: {f"rail{rail}": data.draw(st.sampled_from(["a", "b", "c", None])) for rail in range(rails)} for host in range(hosts)}
    endpoint = {"device": "x", "address": "y"}
    made = {
        f"node{host}": PluginUser(kind, "l", "s", 9, {}, dict.fromkeys(of, endpoint), of, is_mesh)  # type: ignore[arg-type]
        for host, of in networks.items()
    }
    of = Transfers(made)
    assert len(set(ways(of))) == len(of.meetings)
    for meeting in of.meetings:
        assert meeting.sender != meeting.receiver
        if kind == "mesh":
            assert made[meeting.sender].networks[meeting.rail] in made[meeting.receiver].networks.values()
    if kind == "mesh" and not is_mesh:
        assert max((sum(each.sender == host for each in of.meetings) for host in made), default=0) <= 1
    if kind == "mesh" and is_mesh:
        assert {(each.sender, each.receiver) for each in of.meetings} == {(each.receiver, each.sender) for each in of.meetings}
