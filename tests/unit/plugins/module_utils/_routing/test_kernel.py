# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The routes of BGP in the kernel's table, as iproute2 printed them on a leaf, and damaged forms of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._routing.kernel import parse_ip_route_show
from tests.unit.builders.garbled import garbled, read_or_refused

FIXTURES = Path(__file__).parents[3] / "fixtures/frr"


def text(name: str) -> str:
    return str(json.loads((FIXTURES / f"8.4.4-{name}.json").read_text())["kernel"])


def test_a_leaf_with_two_paths() -> None:
    found = parse_ip_route_show(text("leaf1"))
    assert (sorted(found["10.1.1.66/31"]), found["10.0.0.1/32"]) == (["swp1", "swp2"], ["swp1"])
    assert found["10.1.0.66/31"] == [], "a route of the kernel itself"


def test_a_leaf_whose_kernel_lost_a_path_although_frr_shows_both() -> None:
    assert parse_ip_route_show(text("leaf1-lost-path"))["10.1.1.66/31"] == ["swp2"]


def route(**changes: object) -> str:
    return json.dumps([{"dst": "10.1.1.66/31", "protocol": "bgp", "metric": 20, "flags": [], "dev": "swp1", **changes}])


def test_a_next_hop_that_the_kernel_does_not_use_is_no_path() -> None:
    hops = [{"dev": "swp1", "flags": ["dead", "linkdown"]}, {"dev": "swp2", "flags": ["onlink"]}]
    assert parse_ip_route_show(route(nexthops=hops)) == {"10.1.1.66/31": ["swp2"]}


def test_the_route_with_the_smallest_metric_counts() -> None:
    both = [*json.loads(route()), *json.loads(route(protocol="static", metric=0, dev="eth0"))]
    assert parse_ip_route_show(json.dumps(both)) == {"10.1.1.66/31": []}
    assert parse_ip_route_show(json.dumps(list(reversed(both)))) == {"10.1.1.66/31": []}


def test_an_iproute2_without_the_name_of_bgp_prints_its_number() -> None:
    assert parse_ip_route_show(route(protocol="186")) == {"10.1.1.66/31": ["swp1"]}


def test_a_default_route_and_an_empty_table() -> None:
    assert parse_ip_route_show(route(dst="default")) == {"0.0.0.0/0": ["swp1"]}
    assert parse_ip_route_show("") == {}


@given(data=st.data())
def test_a_damaged_answer_is_read_or_refused(data: st.DataObject) -> None:
    assert read_or_refused(parse_ip_route_show, data.draw(garbled(text("leaf1"))))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("{}", "expected a list of objects"),
        ("[1]", "expected a list of objects"),
        (route(dst="10.1.1.66/40"), "expected an IPv4 prefix"),
        (route(metric="20"), "metric of 10.1.1.66/31: expected a number"),
        (route(dev=7), "expected dev and flags"),
        (route(nexthops={}), "expected a list of objects"),
        ('[{"dst": "10.1.1.66/31", "protocol": "bgp", "nhid": 17, "flags": []}]', "net.ipv4.nexthop_compat_mode must be 1"),
    ],
)
def test_another_form_is_refused(wrong: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        parse_ip_route_show(wrong)
