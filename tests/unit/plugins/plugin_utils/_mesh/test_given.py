# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the inventory gives for a mesh."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import CableEnd
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.given import read_given

CABLES = [["a/0000:01:00.0", "b/0000:01:00.0"]]


def host(pool: str = "10.1.0.0/16", cables: Any = None) -> dict[str, Any]:
    mesh = {"pool": pool, "prefix_length": 24, "cables": cables or CABLES}
    return {"rdma_fabric": {"topology": "mesh", "planes": {"ring": {}}, "mesh": mesh}}


def test_hosts_without_a_mesh_give_none() -> None:
    assert read_given({"a": {"rdma_fabric": {"topology": "switched"}}, "b": {}}, ["a", "b"]) is None


@pytest.mark.parametrize(
    ("cables", "seen"), [(CABLES, [(CableEnd("a", "0000:01:00.0"), CableEnd("b", "0000:01:00.0"))]), ("discover", None)]
)
def test_the_hosts_of_a_mesh(cables: Any, seen: Any) -> None:
    given = read_given({"a": host(cables=cables), "b": host(cables=cables), "c": {}}, ["a", "b", "c"])
    assert given is not None
    assert (sorted(given.rails), given.cables, given.plane, given.relays) == (["a", "b"], seen, "ring", False)


def test_a_mesh_that_differs_between_hosts_is_refused() -> None:
    with pytest.raises(IntentError, match=r"rdma_fabric\.mesh differs between a and b"):
        read_given({"a": host(), "b": host("10.2.0.0/16")}, ["a", "b"])
