# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What FRR 8.4.4 printed on the leaves and spines of a routed Clos network, and damaged forms of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._routing import read, vtysh
from ansible_collections.rdma.cluster.plugins.module_utils._routing.vtysh import (
    BgpNeighbor,
    BgpPeer,
    BgpRoute,
    BgpSummary,
    Interface,
    Route,
)
from tests.unit.builders.garbled import garbled, read_or_refused

FIXTURES = Path(__file__).parents[3] / "fixtures/frr"
PARSERS: dict[str, Callable[[str], Any]] = {
    read.SUMMARY: vtysh.parse_show_bgp_summary,
    read.NEIGHBORS: vtysh.parse_show_bgp_neighbors,
    read.TABLE: vtysh.parse_show_bgp_ipv4_unicast,
    read.ROUTES: vtysh.parse_show_ip_route,
    read.BFD: vtysh.parse_show_bfd_peers,
    read.INTERFACES: vtysh.parse_show_interface,
}


def text(command: str, switch: str = "leaf1") -> str:
    return str(json.loads((FIXTURES / f"8.4.4-{switch}.json").read_text())["texts"][command])


def test_a_leaf_as_frr_prints_it() -> None:
    assert vtysh.parse_show_bgp_summary(text(read.SUMMARY)) == BgpSummary(
        4200000101,
        "10.0.0.101",
        {"swp1": BgpPeer("Established", "OK", 4200000001, 3), "swp2": BgpPeer("Established", "OK", 4200000002, 3)},
        True,
    )
    neighbors = vtysh.parse_show_bgp_neighbors(text(read.NEIGHBORS))
    assert {port: (each.router_id, each.host_name) for port, each in neighbors.items()} == {
        "swp1": ("10.0.0.1", "spine1"),
        "swp2": ("10.0.0.2", "spine2"),
    }
    assert BgpRoute("10.1.1.66/31", False, 2) in vtysh.parse_show_bgp_ipv4_unicast(text(read.TABLE))
    assert BgpRoute("10.0.0.101/32", True, 0) in vtysh.parse_show_bgp_ipv4_unicast(text(read.TABLE))
    routes = vtysh.parse_show_ip_route(text(read.ROUTES))
    assert Route("10.1.1.66/31", "bgp", ["swp1", "swp2"]) in [Route(each.prefix, each.protocol, sorted(each.paths)) for each in routes]
    assert Route("10.1.0.66/31", "connected", ["swp33"]) in routes
    assert vtysh.parse_show_bfd_peers(text(read.BFD)) == {"swp1": "up", "swp2": "up"}
    interface = vtysh.parse_show_interface(text(read.INTERFACES))["swp33"]
    assert (interface.mtu_bytes, interface.up, interface.addresses[0]) == (9000, True, "10.1.0.66/31")


def test_a_router_without_bgp() -> None:
    assert vtysh.parse_show_bgp_summary("{\n}\n") == BgpSummary(None, None, {}, None)
    assert vtysh.parse_show_bgp_summary("% BGP instance not found\n") == BgpSummary(None, None, {}, None)
    assert vtysh.parse_show_bgp_neighbors("{}") == {}
    assert vtysh.parse_show_bgp_neighbors('{"swp1": {"remoteRouterId": "0.0.0.0"}}') == {"swp1": BgpNeighbor(None, None, None)}
    assert vtysh.parse_show_interface('{"swp1": {"administrativeStatus": "up", "operationalStatus": "down"}}') == {
        "swp1": Interface(None, False, [])
    }


def test_the_version() -> None:
    assert vtysh.parse_show_version("FRRouting 8.4.4 (leaf1) on Linux(6.18.44).\nCopyright") == (8, 4, 4)
    with pytest.raises(ParseError, match="not `show version` of FRR"):
        vtysh.parse_show_version("Quagga 1.2")


@pytest.mark.parametrize("command", PARSERS)
@given(data=st.data())
def test_a_damaged_answer_is_read_or_refused(command: str, data: st.DataObject) -> None:
    assert read_or_refused(PARSERS[command], data.draw(garbled(text(command))))


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        (read.SUMMARY, '{"ipv4Unicast": {"as": "65001"}}'),
        (read.SUMMARY, '{"ipv4Unicast": {"as": 4294967296}}'),
        (read.SUMMARY, '{"ipv4Unicast": {"peers": {"swp1": {}}}}'),
        (read.SUMMARY, '{"ipv4Unicast": {"routerId": "10.0.0.1\\nx"}}'),
        (read.TABLE, '{"routes": {"10.0.0.1/40": []}}'),
        (read.ROUTES, '{"10.0.0.0/24": [{"selected": true}]}'),
        (read.BFD, '{"swp1": "up"}'),
        (read.INTERFACES, '{"swp1": {"mtu": true}}'),
    ],
)
def test_a_wrong_type_is_refused(command: str, wrong: str) -> None:
    with pytest.raises(ParseError):
        PARSERS[command](wrong)
