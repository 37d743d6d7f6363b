# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is found of the rules and routes of rails."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.routes import check_routes
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.unit.builders.hosts import lab_facts, lab_rails

RULES = [{"priority": 1000, "source": "192.168.100.1/32", "table": 1000}]
ROUTES = [
    {"network": "192.168.100.0/24", "gateway": None, "netdev": "ens1", "table": 1000, "source": "192.168.100.1"},
    {"network": "0.0.0.0/0", "gateway": "192.168.100.254", "netdev": "ens1", "table": 1000, "source": None},
    {"network": "192.168.0.0/16", "gateway": "192.168.100.254", "netdev": "ens1", "table": 254, "source": None},
]


def found(routing: Any, *, shared_subnet: bool = False, gateway: bool = True) -> list[tuple[str, str, str, str]]:
    """Subject, status, what was seen and the remedy of each finding."""
    more = {"gateway": "192.168.100.254", "routes": ["192.168.0.0/16"]} if gateway else {}
    rails = normalize({"rdma_rails": [{**lab_rails()[0], **more}, *lab_rails()[1:]]})["rails"]
    facts = lab_facts()
    facts["routing"] = routing
    findings = check_routes("node1", rails, from_dict(facts), shared_subnet=shared_subnet)
    return [(each.subject.split(" (")[0], each.status, each.observed, each.remedy) for each in findings]


def test_a_rail_with_its_rule_and_routes() -> None:
    assert found({"rules": RULES, "routes": ROUTES}) == [("rail 0", "ok", "rule and 3 routes as planned", "")]


def test_rails_that_need_no_table_have_no_finding() -> None:
    assert found({"rules": [], "routes": []}, gateway=False) == []


def test_rails_in_one_subnet_each_need_a_table() -> None:
    assert [each[:2] for each in found({"rules": [], "routes": []}, gateway=False, shared_subnet=True)] == [
        ("rail 0", "error"),
        ("rail 1", "error"),
    ]


@pytest.mark.parametrize(
    ("rules", "routes", "observed"),
    [
        ([], ROUTES, "no rule from 192.168.100.1/32 to table 1000"),
        (RULES, ROUTES[:2], "no route to 192.168.0.0/16 by 192.168.100.254"),
        (
            RULES,
            [ROUTES[0], {**ROUTES[1], "gateway": "192.168.100.253"}, ROUTES[2]],
            "no route to 0.0.0.0/0 by 192.168.100.254 in table 1000",
        ),
        (RULES, [{**each, "netdev": "ens2"} for each in ROUTES], "no route to 192.168.100.0/24 in table 1000"),
    ],
)
def test_what_is_missing(rules: list[Any], routes: list[Any], observed: str) -> None:
    [(_subject, status, seen, remedy)] = found({"rules": rules, "routes": routes})
    assert (status, observed in seen) == ("error", True)
    assert remedy.startswith("1. Run `ansible-playbook rdma.cluster.network --limit node1`")


def test_what_was_not_read_is_unknown() -> None:
    [(_subject, status, _seen, remedy)] = found(None)
    assert status == "unknown"
    assert "ip -4 route show table 1000" in remedy


def test_a_rail_of_ipv6() -> None:
    rails = normalize({"rdma_rails": [{**lab_rails()[0], "address": "2001:db8:100::1/64", "gateway": "fe80::1"}]})["rails"]
    facts = lab_facts()
    rule = {"priority": 1000, "source": "2001:db8:100::1/128", "table": 1000}
    subnet = {"network": "2001:db8:100::/64", "gateway": None, "netdev": "ens1", "table": 1000, "source": "2001:db8:100::1"}
    default = {"network": "::/0", "gateway": "fe80::1", "netdev": "ens1", "table": 1000, "source": None}

    def of(routing: Any) -> tuple[str, str, str]:
        facts["routing"] = routing
        [found] = check_routes("node1", rails, from_dict(facts), shared_subnet=False)
        return found.status, found.observed, found.remedy

    assert of({"rules": [rule], "routes": [subnet, default], "ipv6": True})[:2] == ("ok", "rule and 2 routes as planned")
    assert of({"rules": [], "routes": [], "ipv6": True})[:2] == (
        "error",
        "no rule from 2001:db8:100::1/128 to table 1000; no route to 2001:db8:100::/64 in table 1000; "
        "no route to ::/0 by fe80::1 in table 1000",
    )
    assert of({"rules": RULES, "routes": []})[0] == "unknown"
    assert "ip -6 route show table 1000" in of(None)[2]
