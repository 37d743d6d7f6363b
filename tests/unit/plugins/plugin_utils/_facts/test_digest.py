# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import gather, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable, digest
from tests.unit.builders.trees import mlx5_machine, write_tree

LIMITS = limits.LimitsRequest(memlock_unlimited=True, open_files=131072, keep_ipc=True)


def read(root: Path) -> dict[str, Any]:
    return to_dict(gather(SysRoot(str(root))))


def test_the_digest_has_what_playbooks_use_and_no_more(tmp_path: Path) -> None:
    facts = read(mlx5_machine(tmp_path))
    before = copy.deepcopy(facts)

    kept = digest(facts)

    assert facts == before
    assert (kept["boot"], kept["units"]) == (facts["boot"], facts["units"])
    assert kept["load"] == {key: facts["load"][key] for key in ("gpu_processes", "jobs")}
    assert set(kept) == {"schema", "boot", "units", "load", "devices", "netdevs", "stack"}
    assert kept["devices"]["mlx5_0"] == {
        "driver": "mlx5_core",
        "software": False,
        "firmware": "28.41.1000",
        "board_id": "MT_0000000838",
        "node_guid": "a088:c203:0000:0000",
        "node_type": "CA",
        "numa_node": 0,
        "function": "pf",
        "pci": {
            "address": "0000:3d:00.0",
            "speed_gtps": 32.0,
            "width": 16,
            "narrowest": {"address": "0000:3b:00.0", "speed_gtps": 32.0, "width": 8},
        },
        "ports": {
            "1": {
                "state": "ACTIVE",
                "physical_state": "LinkUp",
                "link_layer": "Ethernet",
                "rate_gbps": 200.0,
                "width": 2,
                "netdev": "ens1f0np0",
                "rocev2": {"10.10.1.2": 11},
            }
        },
    }
    assert kept["netdevs"]["ens1f0np0"] == {
        "driver": "mlx5_core",
        "mac": "a0:88:c2:00:00:00",
        "mtu_bytes": 9000,
        "carrier": True,
        "admin_up": True,
        "dev_port": 0,
        "pci": "0000:3d:00.0",
        "function": "pf",
        "ipv4": None,
        "ipv6": None,
    }
    assert kept["stack"]["modules"]["mlx5_core"] == {"version": "24.10-1.1.4", "srcversion": "MLX5_CORE0123"}
    assert sorted(kept["stack"]) == ["distribution", "kernel", "kind", "modules"]


def test_the_digest_keeps_the_lids_of_infiniband(tmp_path: Path) -> None:
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    guid = "fe80:0000:0000:0000:a088:c203:0000:0000"
    write_tree(tmp_path, f"{port}/link_layer: InfiniBand\n{port}/lid: 0x11\n{port}/sm_lid: 0x1\n{port}/gids/0: {guid}")

    kept = digest(read(tmp_path))["devices"]["mlx5_0"]["ports"]["1"]
    assert (kept["lid"], kept["sm_lid"], kept["gids"]) == (17, 1, [{"index": 0, "gid": guid}])


def test_hosts_are_compared_by_what_is_there_of_nccl_of_packages_and_of_p_keys(tmp_path: Path) -> None:
    """What is absent is not named: each word is kept for every host."""
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    facts = read(
        write_tree(tmp_path, f"{port}/link_layer: InfiniBand\n{port}/pkeys/0: 0x7fff\n{port}/pkeys/1: 0x8101\n{port}/pkeys/2: 0x0000")
    )
    facts["nccl"].update(library="/usr/lib64/libnccl.so.2.30.7", version="2.30.7")
    facts["iommu"]["virtual_machine"] = True
    facts["stack"]["distribution"]["asked"] = {"libnccl2": "2.30.7-1+cuda13.0", "openmpi": None}

    kept = comparable(facts)
    assert kept["nccl"] == {"library": "/usr/lib64/libnccl.so.2.30.7", "version": "2.30.7"}
    assert kept["iommu"] == {"virtual_machine": True}
    assert kept["stack"]["distribution"]["asked"] == {"libnccl2": "2.30.7-1+cuda13.0"}
    assert kept["devices"]["mlx5_0"]["ports"]["1"]["pkeys"] == {"0": 0x7FFF, "1": 0x8101}


def test_the_digest_of_a_host_with_eight_nics_is_small(tmp_path: Path) -> None:
    facts = read(mlx5_machine(tmp_path))
    ports = facts["devices"]["mlx5_0"]["ports"]
    assert ports["1"]["rocev2"] == {"10.10.1.2": 11}
    for netdev in facts["netdevs"].values():
        netdev.update(max_mtu_bytes=9978, ipv4=["192.168.100.100/24"])
    facts["load"]["gpu_processes"] = [{"pid": 1000000 + number, "name": "python3"} for number in range(8)]
    facts["devices"] = {f"mlx5_{number}": facts["devices"]["mlx5_0"] for number in range(8)}
    facts["netdevs"] = {f"enp{number}f0np0": facts["netdevs"]["ens1f0np0"] for number in range(10)}
    facts["stack"]["modules"] = {f"module_{number}": facts["stack"]["modules"]["mlx5_core"] for number in range(15)}

    assert len(json.dumps(digest(facts), separators=(",", ":"))) <= 10 * 1024


def test_hosts_are_compared_by_what_their_interfaces_can_do_as_well(tmp_path: Path) -> None:
    facts = read(mlx5_machine(tmp_path))
    facts["netdevs"]["ens1f0np0"]["ethtool"] = {
        "speed_mbps": 200_000,
        "supported_speeds_mbps": [100_000, 400_000],
        "counters": {"rx_bytes": 1},
    }

    seen = comparable(facts)

    assert seen["netdevs"]["ens1f0np0"].pop("ethtool") == {"speed_mbps": 200_000, "supported_speeds_mbps": [400_000]}
    assert seen["netdevs"]["ens1f1np1"].pop("ethtool") == {"supported_speeds_mbps": []}
    assert {netdev.pop("max_mtu_bytes") for netdev in seen["netdevs"].values()} == {None}
    assert {netdev.pop("numa_node") for netdev in seen["netdevs"].values()} == {0}
    assert seen["session"] == {"address": None, "netdev": None}
    assert (seen["interfaces"], seen["qos"], seen["gpus"]) == ({}, None, None)
    for device in seen["devices"].values():
        del device["ports"]["1"]["speed"], device["ports"]["1"]["active_mtu_bytes"], device["pci"]["hops"], device["pci"]["mrrs_bytes"]
    kept = digest(facts)
    assert {part: seen[part] for part in kept} == kept


def test_what_bounds_a_pair_is_known_of_each_port_and_device(tmp_path: Path) -> None:
    facts = read(mlx5_machine(tmp_path))
    facts["devices"]["mlx5_0"]["ports"]["1"].update(active_mtu_bytes=4096, speed="NDR")

    device = comparable(facts)["devices"]["mlx5_0"]

    assert (device["ports"]["1"]["active_mtu_bytes"], device["ports"]["1"]["speed"]) == (4096, "NDR")
    assert device["pci"]["hops"] == [
        {"address": "0000:3c:00.0", "speed_gtps": 32.0, "width": 16},
        {"address": "0000:3b:00.0", "speed_gtps": 32.0, "width": 8},
        {"address": "0000:3a:01.0", "speed_gtps": 32.0, "width": 16},
    ]


def test_bridges_that_one_device_has_alone_are_left_out(tmp_path: Path) -> None:
    facts = read(mlx5_machine(tmp_path))
    del facts["devices"]["mlx5_1"]

    assert "hops" not in comparable(facts)["devices"]["mlx5_0"]["pci"]


@pytest.mark.parametrize("ethtool", [None, {}])
def test_what_was_not_read_is_left_out_of_the_comparison(tmp_path: Path, ethtool: dict[str, Any] | None) -> None:
    facts = read(mlx5_machine(tmp_path))
    facts["iommu"] = None
    facts["devices"]["mlx5_1"]["pci"] = None
    facts["netdevs"]["ens1f0np0"]["ethtool"] = ethtool

    seen = comparable(facts)

    assert (seen["iommu"], seen["devices"]["mlx5_1"]["pci"]) == ({}, None)
    assert seen["netdevs"]["ens1f0np0"]["ethtool"] == {"supported_speeds_mbps": []}
