# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pairs across rails are requested only where two rails reach each other."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize


def rail(number: int, **more: Any) -> dict[str, Any]:
    return {"name": f"rail{number}", "nic": {"pci": f"0000:{20 + number}:00.0"}, "address": f"192.168.{number}.1/24", **more}


def infiniband(number: int, **more: Any) -> dict[str, Any]:
    return {"name": f"rail{number}", "nic": {"pci": f"0000:{20 + number}:00.0"}, "link_layer": "infiniband", **more}


def problems(*rails: dict[str, Any], schedule: str = "full+cross", **fabric: Any) -> list[str]:
    try:
        normalize({"rdma_rails": list(rails), "rdma_fabric": fabric, "rdma_pairs": {"schedule": schedule}})
    except IntentError as error:
        return [str(each) for each in error.problems]
    return []


NO_ROUTER = "no router is planned between 192.168.0.0/24 and 192.168.1.0/24 (`gateway` of both rails)"
NOT = "rdma_pairs.schedule is full+cross, but no two rails reach each other: "


@pytest.mark.parametrize(
    ("rails", "words"),
    [
        ([rail(0)], "the host has one rail"),
        ([rail(0), rail(1)], NO_ROUTER),
        (
            [rail(0, gateway="192.168.0.254"), rail(1)],
            "no router is planned between 192.168.0.0/24 and 192.168.1.0/24 (`gateway` of both rails)",
        ),
        ([rail(0, plane="a"), rail(1, plane="b")], "they are in separate planes, a and b"),
        ([infiniband(0, plane="a"), infiniband(1, plane="b")], "they are in separate planes, a and b"),
    ],
)
def test_rails_that_do_not_reach_each_other(rails: list[dict[str, Any]], words: str) -> None:
    assert problems(*rails) == [NOT + words]
    assert problems(*rails, schedule="full") == []


@pytest.mark.parametrize(
    "rails",
    [
        [infiniband(0), infiniband(1)],
        [rail(0, gateway="192.168.0.254"), rail(1, gateway="192.168.1.254")],
        [infiniband(0, plane="a"), infiniband(1, plane="b"), infiniband(2, plane="b")],
    ],
)
def test_rails_that_reach_each_other(rails: list[dict[str, Any]]) -> None:
    assert problems(*rails) == []


def test_rails_of_one_subnet_reach_each_other() -> None:
    assert problems(rail(0), rail(1, address="192.168.0.2/24"), shared_subnet=True) == []


@pytest.mark.parametrize("address", [None, "", "soon", "192.168.1.1"])
def test_a_rail_without_a_valid_address_is_a_problem_and_no_crash(address: str | None) -> None:
    assert any(each.startswith("rdma_rails[1].address") for each in problems(rail(0), rail(1, address=address)))


def test_a_mesh_has_cables_only() -> None:
    (problem,) = problems(rail(0), rail(1), topology="mesh")
    assert problem == NOT + "the rails of a mesh are cables between two hosts"
