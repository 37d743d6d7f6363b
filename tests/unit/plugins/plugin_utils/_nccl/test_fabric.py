# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The entry of the P_Key table that NCCL takes, and SHARP."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import check_pkey, nccl_variables
from tests.unit.builders.hosts import lab_intent

TENANT = {"tenant": {"key": 0x101, "members": ["node1", "node2"]}}
LIMITED, FULL, OURS = 0x7FFF, 0xFFFF, 0x8101


def infiniband(*tables: tuple[int, ...] | None, **sections: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Intent and facts of a host with an InfiniBand rail for each table of P_Keys; (): one not read; None: a port without device."""
    rails = [
        {"name": f"rail{number}", "nic": {"pci": f"0000:{number:02x}:00.0"}, "link_layer": "infiniband", "plane": f"p{number % 2}"}
        for number in range(len(tables))
    ]
    facts: dict[str, Any] = {"devices": {}, "netdevs": {}}
    for number, table in enumerate(tables):
        port = {
            "state": "ACTIVE",
            "netdev": None,
            "link_layer": "InfiniBand",
            "pkeys": {str(at): key for at, key in enumerate(table or ())} or None,
        }
        if table is not None:
            facts["devices"][f"mlx5_{number}"] = {"pci": {"address": f"0000:{number:02x}:00.0"}, "ports": {"1": port}}
    intent = lab_intent(**{"partitions": TENANT, "fabric": {"planes": {"p0": {}, "p1": {}}}, **sections, "rails": rails})
    return intent, facts


@pytest.mark.parametrize(
    ("tables", "value", "status", "observed"),
    [
        ([(FULL,), (FULL,)], None, "ok", "rail0: 0 (partition 0xffff), rail1: 0 (partition 0xffff)"),
        ([(OURS, LIMITED)] * 2, None, "ok", "rail0: 0 (partition 0x8101), rail1: 0 (partition 0x8101)"),
        ([(LIMITED, OURS)] * 2, "1", "ok", "rail0: 1 (partition 0x8101), rail1: 1 (partition 0x8101)"),
        ([(LIMITED, OURS), (OURS, LIMITED)], None, "error", "rail0: 1 (partition 0x8101), rail1: 0 (partition 0x8101)"),
        ([(LIMITED, OURS), (LIMITED,)], None, "error", "rail0: 1 (partition 0x8101), rail1: not a full member of any partition"),
        ([(LIMITED, OURS), ()], "1", "unknown", "P_Key tables read: rail0; planned: 2 rails"),
        ([(LIMITED, OURS), None], "1", "not_applicable", "rail1 has no RDMA device: see nccl.hca"),
        ([None, None], None, "not_applicable", "rail0, rail1 have no RDMA device: see nccl.hca"),
        ([(LIMITED,), None], None, "error", "rail0: not a full member of any partition"),
    ],
    ids=["default", "first", "second", "differ", "limited", "not read", "absent", "none", "limited beside absent"],
)
def test_the_index_is_reported_where_it_is_one_and_not_the_first(
    tables: list[tuple[int, ...] | None], value: str | None, status: str, observed: str
) -> None:
    intent, facts = infiniband(*tables)
    assert nccl_variables(intent, from_dict(facts)).get("NCCL_IB_PKEY") == value
    (finding,) = check_pkey("node1", intent, from_dict(facts))
    assert (finding.stage, finding.check, finding.subject) == ("nccl", "nccl.pkey", "NCCL_IB_PKEY")
    assert (finding.status, finding.observed) == (status, observed)
    assert ("node1" in finding.remedy) == bool(finding.remedy) == (status in ("error", "unknown"))


def test_the_storage_s_partition_is_its_own_affair() -> None:
    intent, facts = infiniband((LIMITED, OURS), (OURS,))
    intent["rails"][1]["role"] = "storage"
    assert nccl_variables(intent, from_dict(facts))["NCCL_IB_PKEY"] == "1"
    assert check_pkey("node1", intent, from_dict(facts))[0].status == "ok"


def test_the_user_s_index_is_left_alone() -> None:
    intent, facts = infiniband((LIMITED, OURS), (OURS,), nccl={"variables": {"NCCL_IB_PKEY": 1}})
    assert nccl_variables(intent, from_dict(facts))["NCCL_IB_PKEY"] == "1"
    assert check_pkey("node1", intent, from_dict(facts))[0].observed == "rdma_nccl.variables sets it"


def test_roce_has_no_partitions() -> None:
    (finding,) = check_pkey("node1", lab_intent(), from_dict({"devices": {}, "netdevs": {}}))
    assert (finding.status, finding.observed) == ("not_applicable", "no compute rail is InfiniBand")


@pytest.mark.parametrize(("sharp", "value"), [((True, True), "1"), ((True, False), None), ((False, False), None), ((True, None), None)])
def test_collnet_needs_sharp_on_every_plane(sharp: tuple[bool | None, ...], value: str | None) -> None:
    planes = {
        f"p{number}": {} if runs is None else {"subnet_manager": {"hosts": ["node1"], "sharp": runs}} for number, runs in enumerate(sharp)
    }
    intent, facts = infiniband((FULL,), (FULL,), fabric={"planes": planes}, partitions={}, driver=DOCA)
    assert nccl_variables(intent, from_dict(facts)).get("NCCL_COLLNET_ENABLE") == value
    intent["rails"][1]["role"] = "storage"
    assert nccl_variables(intent, from_dict(facts)).get("NCCL_COLLNET_ENABLE") == ("1" if sharp[0] else None)


DOCA = {"stack": "doca", "version": "3.2.0", "repository": {"key": {"file": "key"}, "key_checksum": "sha256:" + "0" * 64}}
