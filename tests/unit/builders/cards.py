# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails and facts of a host with real cards, written down by hand: two ConnectX-7 of one port behind PCIe switches of their own."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, Finding

HOST = "node1"
ADDRESSES = ("0000:3d:00.0", "0000:5e:00.0")


def card_rails(rate_gbps: float | None = 400, **changes: Any) -> list[dict[str, Any]]:
    """The normalized rails of the host; changes: to both of them."""
    return [
        {
            "name": f"rail{rail}",
            "nic": {"pci": address},
            "link_layer": "roce",
            "rate_gbps": rate_gbps,
            "plane": "blue",
            "role": "compute",
            "address": f"192.168.{rail}.1/24",
            "mtu_bytes": 9000,
            "soft": False,
            **changes,
        }
        for rail, address in enumerate(ADDRESSES)
    ]


def infiniband_rails(rate_gbps: float | None = None) -> list[dict[str, Any]]:
    return card_rails(rate_gbps, link_layer="infiniband", address=None, mtu_bytes=None)


def card_facts(link_layer: str = "Ethernet") -> dict[str, Any]:
    """The facts of the host: 400 Gb/s as 4X NDR over Gen5 x16, everything well."""
    return {
        "schema": 1,
        "devices": {f"mlx5_{rail}": _device(rail, address, link_layer) for rail, address in enumerate(ADDRESSES)},
        "netdevs": {f"ens{rail + 1}np0": _netdev(rail, address) for rail, address in enumerate(ADDRESSES)},
        "boot": {"boot_id": "b-1", "machine_id": "m-1", "hostname": HOST, "uptime_seconds": 7200.0},
    }


def _device(rail: int, address: str, link_layer: str) -> dict[str, Any]:
    return {
        "driver": "mlx5_core",
        "software": False,
        "node_guid": f"a088:c203:0000:000{rail}",
        "node_type": "CA",
        "function": "pf",
        "parent_pci": None,
        "pci": _pci(address),
        "ports": {"1": _port(rail, link_layer)},
    }


def _port(rail: int, link_layer: str) -> dict[str, Any]:
    return {
        "state": "ACTIVE",
        "physical_state": "LinkUp",
        "link_layer": link_layer,
        "rate_gbps": 400.0,
        "width": 4,
        "speed": "NDR",
        "netdev": f"ens{rail + 1}np0",
        "active_mtu_bytes": 4096,
        "gids": [],
        "counters": {"symbol_error": 0, "link_downed": 0, "port_rcv_errors": 0, "port_xmit_discards": 0, "port_xmit_data": 9},
        "hw_counters": {"out_of_sequence": 0},
    }


def _netdev(rail: int, address: str) -> dict[str, Any]:
    return {
        "mac": f"a0:88:c2:00:00:0{rail}",
        "pci": address,
        "dev_port": 0,
        "carrier": True,
        "admin_up": True,
        "mtu_bytes": 9000,
        "carrier_downs": 1,
        "ethtool": {
            "speed_mbps": 400000,
            "supported_speeds_mbps": [100000, 200000, 400000],
            "counters": {"rx_discards_phy": 0, "link_down_events_phy": 0, "rx_symbol_err_phy": 0, "tx_packets": 5},
            "optic": None,
        },
    }


def pci_link(address: str, speed_gtps: float | None = 32.0, width: int | None = 16) -> dict[str, Any]:
    """A function or a bridge, with a link that is as good as it can be."""
    return {
        "address": address,
        "speed_gtps": speed_gtps,
        "width": width,
        "max_speed_gtps": speed_gtps,
        "max_width": width,
        "mps_bytes": 256,
        "mps_max_bytes": 512,
    }


def _pci(address: str) -> dict[str, Any]:
    """A card below a PCIe switch: its function, the switch's downstream and upstream port, the root port."""
    bus = address[5:7]
    ports = [f"0000:{int(bus, 16) - below:02x}:{'01' if below == 3 else '00'}.0" for below in (1, 2, 3)]
    return {
        **pci_link(address),
        "vendor_id": "0x15b3",
        "device_id": "0x1021",
        "numa_node": 0,
        "mrrs_bytes": 4096,
        "narrowest": {"address": address, "speed_gtps": 32.0, "width": 16},
        "hops": [{**pci_link(port), "acs": [] if port == ports[0] else None} for port in ports],
    }


def first_port(facts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = facts["devices"]["mlx5_0"]["ports"]["1"]
    return found


def first_netdev(facts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = facts["netdevs"]["ens1np0"]
    return found


def first_pci(facts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = facts["devices"]["mlx5_0"]["pci"]
    return found


def of_first(findings: list[Finding]) -> dict[str, Finding]:
    """The findings on rail 0, by check."""
    return {finding.check: finding for finding in findings if finding.subject.startswith("rail 0 ")}


def bad(findings: list[Finding]) -> list[tuple[str, str]]:
    """What is neither well nor not applicable: check and status."""
    return [(finding.check, finding.status) for finding in findings if finding.status not in (OK, NOT_APPLICABLE)]
