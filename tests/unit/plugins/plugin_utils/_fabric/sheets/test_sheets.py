# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sheets of switches: the port map of routed and bridged planes, VLANs, neighbors, QoS, and the same as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.sheets.sheet import NOT_KNOWN, Sheet, make_sheets
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.sheets.text import COLUMNS, ports_csv, sheet_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from lab.clos_plan import ClosShape, cabling

ROUTING = {"loopbacks": "10.0.0.0/24", "host_subnets": "10.1.0.0/16"}
BRIDGED = """
switches: {sw1: {tier: leaf}, sw2: }
links:
  - {from: host1 rail0, to: sw1/1}
  - {from: host1 mlx5_1, to: sw1/2}
  - {from: host2 rail0, to: sw1/3}
  - {from: host3 rail0, to: sw2/1}
  - {from: sw1/33, to: sw2/33}
"""


def reads(text: str) -> Callable[[str], str]:
    def read(name: str) -> str:
        assert name == "cabling.yml"
        return text

    return read


def rail(name: str, pci: str, **values: Any) -> dict[str, Any]:
    return {"name": name, "nic": {"pci": pci}, "plane": "fab", "link_layer": "roce", **values}


def intent(rails: list[dict[str, Any]], roce: dict[str, Any] | None = None, **plane: Any) -> Intent:
    sections: dict[str, Any] = {"rdma_rails": rails, "rdma_fabric": {"planes": {"fab": {"plan": "cabling.yml", **plane}}}}
    result: Intent = normalize({**sections, **({"rdma_roce": roce} if roce is not None else {})})
    return result


def routed_sheets(**routing: Any) -> dict[str, Sheet]:
    hosts = {
        f"host{n}": intent(
            [rail("rail0", "0000:21:00.0", address=f"10.1.{n - 1}.67/31", gateway=f"10.1.{n - 1}.66")],
            {"switches": {"leaf1": {"syntax": "nvue", "ports": ["swp1-33"], "cable_length_m": 5, "rate_gbps": 400}}},
            routing={**ROUTING, **routing},
        )
        for n in (1, 2)
    }
    return make_sheets(hosts, reads(cabling(ClosShape(2, 2, 1))))


def bridged_sheets() -> dict[str, Sheet]:
    hosts = {
        "host1": intent(
            [
                rail("rail0", "0000:21:00.0", address="192.168.1.1/24", vlan={"id": 100}),
                rail("rail1", "0000:41:00.0", address="192.168.2.1/24"),
            ]
        ),
        "host2": intent([rail("rail0", "0000:21:00.0", address="192.168.1.2/24", vlan={"id": 200})]),
    }
    return make_sheets(hosts, reads(BRIDGED))


def test_a_port_of_a_routed_switch_has_both_addresses_and_the_neighbor_s_asn() -> None:
    sheet = routed_sheets()["leaf1"]
    assert [(port.port, port.to, port.its_end, port.address, port.its_address, port.its_asn) for port in sheet.ports] == [
        ("swp1", "spine1", "swp1", "", "", 4200000000),
        ("swp2", "spine2", "swp1", "", "", 4200000000),
        ("swp33", "host1", "rail0", "10.1.0.66/31", "10.1.0.67/31", None),
    ]


def test_the_sheet_of_a_routed_switch() -> None:
    text = sheet_text(routed_sheets(switches={"leaf1": {"syntax": "nvue"}})["leaf1"])
    for line in (
        "plane     fab (leaf)", "ASN       4200000101", "loopback  10.0.0.101/32", "hosts     10.1.0.0/24",
        "  swp33  host1   rail0    10.1.0.66/31  10.1.0.67/31  -", "  swp1   spine1  swp1     unnumbered    unnumbered    -",
        "  swp2  spine2    swp1      4200000000", "  PFC                  on for priority 3, off for all others",
        "  switch-leaf1.routing.nv",
        "  switch-leaf1.nv", "  switch-leaf1.ports.csv",
    ):  # fmt: skip
        assert line in text.splitlines(), text


def test_a_switch_without_roce_settings_has_none() -> None:
    text = sheet_text(routed_sheets()["spine1"])
    assert "  not planned: rdma_roce.switches does not have the switch" in text.splitlines()
    assert "hosts     none" in text.splitlines()
    assert "  switch-spine1.daemons" in text.splitlines()


def test_the_vlan_of_a_host_port_is_that_of_its_rail() -> None:
    sheets = bridged_sheets()
    # mlx5_1 is not the name of a rail, and the host's rails have different VLANs. host3 is not in this run.
    assert [(port.port, port.vlan) for port in sheets["sw1"].ports] == [
        ("port 1", "100"), ("port 2", NOT_KNOWN), ("port 3", "200"), ("port 33", "100, 200"),
    ]  # fmt: skip
    assert [(port.to, port.vlan) for port in sheets["sw2"].ports] == [("host3", NOT_KNOWN), ("sw1", "100, 200")]
    text = sheet_text(sheets["sw1"]).splitlines()
    assert "routing   none: the switch bridges" in text
    assert "  port 33  sw2    port 33  -        -            100, 200 tagged" in text
    assert "  port 2   host1  mlx5_1   -        -            not known" in text


def test_the_ports_as_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(ports_csv(bridged_sheets()["sw1"]))))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["number"], row["kind"], row["to"], row["vlan"]) for row in rows] == [
        ("1", "host", "host1", "100"),
        ("2", "host", "host1", "not known"),
        ("3", "host", "host2", "200"),
        ("33", "switch", "sw2", "100, 200"),
    ]


def test_no_cell_is_a_formula() -> None:
    text = BRIDGED.replace("host1 rail0", "=SUM(A1) rail0")
    sheet = make_sheets({"host2": intent([rail("rail0", "0000:21:00.0", address="192.168.1.2/24")])}, reads(text))["sw1"]
    assert next(csv.DictReader(io.StringIO(ports_csv(sheet))))["to"] == "'=SUM(A1)"


def test_an_infiniband_plane_has_no_sheets() -> None:
    hosts = {"host1": intent([rail("rail0", "0000:21:00.0", link_layer="infiniband")])}
    assert make_sheets(hosts, reads(BRIDGED)) == {}


def test_a_switch_that_no_cable_names_has_its_qos() -> None:
    roce = {"switches": {"edge": {"syntax": "table", "ports": ["Ethernet1/1"]}}}
    host = intent([rail("rail0", "0000:21:00.0", address="192.168.1.1/24")], roce)
    text = sheet_text(make_sheets({"host1": host}, reads(BRIDGED))["edge"]).splitlines()
    assert "plane     none: no cabling plan names the switch" in text
    assert "  ports                Ethernet1/1" in text


def test_a_plane_that_cannot_be_routed_has_no_sheets() -> None:
    with pytest.raises(RoutingError, match="has no address for leaf1"):
        routed_sheets(loopbacks="10.0.0.0/30")


def test_a_rail_with_a_vlan_is_refused_in_a_routed_plane() -> None:
    host = intent([rail("rail0", "0000:21:00.0", address="10.1.0.67/31", gateway="10.1.0.66", vlan={"id": 100})], routing=ROUTING)
    with pytest.raises(
        RoutingError, match="host1 rail0 has VLAN 100, but leaf1 swp33 routes and expects no tag: remove `vlan` from the rail"
    ):
        make_sheets({"host1": host}, reads(cabling(ClosShape(2, 2, 1))))
