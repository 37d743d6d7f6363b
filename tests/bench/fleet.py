# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet of recorded hosts: the facts of a lab machine, widened to eight mlx5 rails, each host with names and addresses of its own."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import digest
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import under_way
from tests.unit.builders.hosts import lab_facts

RECORDED = lab_facts()
#: PCI addresses of the NICs.
SLOTS = [f"0000:{bus}:00.0" for bus in ("1a", "3c", "4d", "5e", "9c", "bc", "cc", "dc")]
#: Interfaces of containers on each NIC: each adds link-local GIDs to the port's table.
CONTAINERS = 10
#: How many counters mlx5_ib of Linux 6.8 has for a port of a ConnectX-7.
COUNTERS, HW_COUNTERS = 21, 29


def name(number: int) -> str:
    """Hosts are numbered from 1."""
    return f"gpu{number:04d}"


def address(number: int, rail: int) -> str:
    return f"10.{rail}.{number >> 8}.{number & 255}"


def rails(number: int) -> list[dict[str, Any]]:
    """rdma_rails of a host, as an inventory has it."""
    each = {"link_layer": "roce", "rate_gbps": 400, "mtu_bytes": 9000}
    return [
        {"name": f"rail{rail}", "nic": {"pci": pci}, "plane": "ab"[rail % 2], "address": f"{address(number, rail)}/16", **each}
        for rail, pci in enumerate(SLOTS)
    ]


def facts(number: int) -> dict[str, Any]:
    """The whole tree of a host, as rdma_facts returns it."""
    modules = {**RECORDED["stack"]["modules"], "mlx5_ib": RECORDED["stack"]["modules"]["rdma_rxe"]}
    modules["mlx5_core"] = {**modules.pop("rdma_rxe"), "holders": ["mlx5_ib"]}
    return {
        **RECORDED,
        "boot": {**RECORDED["boot"], "hostname": name(number), "machine_id": f"{number:032x}"},
        "stack": {**RECORDED["stack"], "modules": modules},
        "devices": {f"mlx5_{rail}": _device(number, rail) for rail in range(len(SLOTS))},
        "netdevs": {"enp0s2": RECORDED["netdevs"]["enp0s2"]} | {f"ens{rail}np0": _netdev(number, rail) for rail in range(len(SLOTS))},
    }


def _netdev(number: int, rail: int) -> dict[str, Any]:
    own = {"driver": "mlx5_core", "mac": f"a0:88:c2:{rail:02x}:{number >> 8:02x}:{number & 255:02x}", "max_mtu_bytes": 9978}
    return {**RECORDED["netdevs"]["ens1"], **own, "pci": SLOTS[rail], "numa_node": rail // 4, "ipv4": [f"{address(number, rail)}/16"]}


def _device(number: int, rail: int) -> dict[str, Any]:
    recorded, guid, node = RECORDED["devices"]["rxe_rail0"], f"a088:c203:00{rail:02x}:{number:04x}", {"numa_node": rail // 4}
    link = {"address": SLOTS[rail], "speed_gtps": 32.0, "width": 16}
    most = {"max_speed_gtps": 32.0, "max_width": 16, "narrowest": link}
    counters = {f"of_mlx5_named_at_length_{each:02d}": number * 10**6 + each for each in range(COUNTERS)}
    hw_counters = {f"of_mlx5_hardware_{each:02d}": number + each for each in range(HW_COUNTERS)}
    own = {"netdev": f"ens{rail}np0", "gids": _gids(number, rail), "rate_gbps": 400.0, "width": 4}
    own |= {"counters": counters, "hw_counters": hw_counters}
    return {
        **recorded, **node, "driver": "mlx5_core", "software": False, "firmware": "28.41.1000", "board_id": "MT_0000000838",
        "hca_type": "MT4129", "node_guid": guid, "sys_image_guid": guid, "ports": {"1": {**recorded["ports"]["1"], **own}},
        "pci": {**link, **most, **node, "vendor_id": "0x15b3", "device_id": "0x1021"},
    }  # fmt: skip


def _gids(number: int, rail: int) -> list[dict[str, Any]]:
    """The NIC's own link-local and IPv4 GIDs and the link-local ones of its containers, each for RoCE v1 and v2."""
    tail, own = f":{rail:04x}:{number:04x}", address(number, rail)
    links = [(f"fe80:0000:0000:0000:a288:{each:04x}{tail}", None) for each in range(1 + CONTAINERS)]
    entries = [links[0], (f"0000:0000:0000:0000:0000:ffff:0a{rail:02x}:{number:04x}", own), *links[1:]]
    return [
        {"gid": gid, "index": 2 * place + version, "ipv4": ipv4, "netdev": f"ens{rail}np0", "type": ("IB/RoCE v1", "RoCE v2")[version]}
        for place, (gid, ipv4) in enumerate(entries)
        for version in (0, 1)
    ]


def write_run(folder: RunFolder, count: int) -> float:
    """What a run has when all hosts have begun the preflight stage, and digests/, what Ansible's memory keeps; KiB of a facts file."""
    for number in range(1, count + 1):
        host, tree = name(number), facts(number)
        folder.write_json(f"facts/{host}.json", tree)
        folder.write_json(f"digests/{host}.json", digest(tree))
        folder.write_json(f"intent/{host}.json", normalize({"rdma_rails": rails(number)}))
        folder.write_findings("preflight", host, [under_way("preflight", host)])
    return sum(file.stat().st_size for file in (folder.path / "facts").iterdir()) / count / 1024
