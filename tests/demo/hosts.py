# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of the demo's hosts: those of one lab machine, recorded, with the name and addresses of each host and HCAs of a stand-in."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from lab.fabric_plan import FabricPlan
from tests.unit.builders.hosts import lab_facts

RECORDED = lab_facts()
#: What an HDR card reads: PCIe Gen4 x16.
SPEED_GTPS, WIDTH = 16.0, 16
#: opensm gives the port that it runs at the first LID.
SM_LID = 1
DRIVERS = ("mlx5_core", "mlx5_ib", "ib_umad", "ib_ipoib")
COUNTERS = ("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors", "port_rcv_remote_physical_errors")


def facts_of(host: str, intent: Intent, plan: FabricPlan) -> dict[str, Any]:
    """The whole tree of a host ("node17"), as rdma_facts returns it. plan: has the GUIDs of its HCAs."""
    number = int(host.removeprefix("node"))
    address, netdev = (
        f"10.0.0.{number}",
        {**RECORDED["netdevs"]["enp0s2"], "ipv4": [f"10.0.0.{number}/24"], "mac": f"52:54:00:fe:00:{number:02x}"},
    )
    module = RECORDED["stack"]["modules"]["rdma_rxe"]
    return {
        **RECORDED,
        "boot": {**RECORDED["boot"], "hostname": host, "machine_id": f"{number:032x}"},
        "devices": {f"mlx5_{at}": _hca(rail, plan.guid(f"{host} mlx5_{at}"), at) for at, rail in enumerate(intent["rails"])},
        "interfaces": {"lo": RECORDED["interfaces"]["lo"], "enp0s2": {"admin_up": True, "ipv4": netdev["ipv4"]}},
        "netdevs": {"enp0s2": netdev},
        "reached_at": address,
        "session": {"address": address, "netdev": "enp0s2"},
        "since": None,
        "stack": {**RECORDED["stack"], "modules": {**RECORDED["stack"]["modules"], **dict.fromkeys(DRIVERS, module)}},
    }


def _hca(rail: Rail, node_guid: int, number: int) -> dict[str, Any]:
    recorded, digits = RECORDED["devices"]["rxe_rail0"], f"{node_guid:016x}"
    guid = ":".join(digits[at : at + 4] for at in range(0, 16, 4))
    link = {"address": rail["nic"]["pci"], "speed_gtps": SPEED_GTPS, "width": WIDTH}
    port: dict[str, Any] = {
        "link_layer": "InfiniBand", "netdev": None, "rate_gbps": rail["rate_gbps"], "speed": "HDR", "width": 4, "gids": [], "rocev2": {},
        "sm_lid": SM_LID, "pkeys": {"0": 0xFFFF}, "counters": dict.fromkeys(COUNTERS, 0), "hw_counters": {},
    }  # fmt: skip
    return {
        **recorded, "driver": "mlx5_core", "software": False, "firmware": "20.43.2026", "board_id": "MT_0000000223", "hca_type": "MT4123",
        "function": "pf", "node_guid": guid, "sys_image_guid": guid, "numa_node": number // 4, "uverbs": f"/dev/infiniband/uverbs{number}",
        "pci": {
            **link, "max_speed_gtps": SPEED_GTPS, "max_width": WIDTH, "narrowest": link, "numa_node": number // 4, "vendor_id": "0x15b3",
            "device_id": "0x101b", "mps_bytes": 256, "mps_max_bytes": 512, "mrrs_bytes": 4096, "hops": [],
        },
        "ports": {"1": {**recorded["ports"]["1"], **port}},
    }  # fmt: skip
