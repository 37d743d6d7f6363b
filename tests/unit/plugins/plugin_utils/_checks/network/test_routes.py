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
RECORD = {"owner": "rail0", "rules": RULES, "routes": [{**each, "netdev": ""} for each in ROUTES]}


def found(routing: Any, *, shared_subnet: bool = False, gateway: bool = True) -> list[tuple[str, str, str, str]]:
    """Subject, status, what was seen and the remedy of each finding."""
    more = {"gateway": "192.168.100.254", "routes": ["192.168.0.0/16"]} if gateway else {}
    rails = normalize({"rdma_rails": [{**lab_rails()[0], **more}, *lab_rails()[1:]]})["rails"]
    facts = lab_facts()
    facts["routing"] = routing
    findings = check_routes("node1", rails, from_dict(facts), shared_subnet=shared_subnet)
    return [(each.subject.split(" (")[0], each.status, each.observed, each.remedy) for each in findings]


def test_a_rail_with_its_rule_and_routes() -> None:
    assert found({"rules": RULES, "routes": ROUTES, "recorded": [RECORD]}) == [("rail 0", "ok", "rule and 3 routes as planned", "")]


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


OLD_RULE = {"priority": 1000, "source": "192.168.100.9/32", "table": 1000}


def test_what_is_left_of_a_former_plan_is_named() -> None:
    """The rail was in use when its router left the intent: its file, its rule and its routes have stayed."""
    [(subject, status, seen, remedy)] = found({"rules": RULES, "routes": ROUTES, "recorded": [RECORD]}, gateway=False)
    assert (subject, status) == ("rail 0", "warning")
    assert seen == (
        "left of a former plan: rule: from 192.168.100.1/32 by table 1000; route to 192.168.100.0/24 in table 1000; "
        "route to 0.0.0.0/0 by 192.168.100.254 in table 1000; route to 192.168.0.0/16 by 192.168.100.254"
    )
    assert remedy.startswith("1. Wait until no job uses node1. 2. Run `ansible-playbook rdma.cluster.network --limit node1`")


def test_a_former_address_beside_the_planned_one() -> None:
    old = {**RECORD, "rules": [OLD_RULE]}
    [(_subject, status, seen, _remedy)] = found({"rules": [*RULES, OLD_RULE], "routes": ROUTES, "recorded": [old]})
    assert (status, seen) == ("warning", "left of a former plan: rule: from 192.168.100.9/32 by table 1000")
    [(_subject, status, _seen, _remedy)] = found({"rules": [OLD_RULE], "routes": ROUTES, "recorded": [old]})
    assert status == "error"


def test_a_rail_that_is_no_longer_planned() -> None:
    gone = {"owner": "rail9", "rules": [{**OLD_RULE, "priority": 1009, "table": 1009}], "routes": []}
    seen = found({"rules": [*RULES, *gone["rules"]], "routes": ROUTES, "recorded": [RECORD, gone]})
    assert [each[:2] for each in seen] == [("rail 0", "ok"), ("rail9, no longer planned", "warning")]


def test_rules_that_no_file_of_ours_records_are_not_judged() -> None:
    seen = found({"rules": [*RULES, OLD_RULE], "routes": ROUTES, "recorded": [RECORD]})
    assert [each[1] for each in seen] == ["ok"]


def test_files_that_were_not_read_are_unknown() -> None:
    [(_subject, status, _seen, remedy)] = found({"rules": RULES, "routes": ROUTES, "recorded": None})
    assert status == "unknown"
    assert "as root" in remedy


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

    assert of({"rules": [rule], "routes": [subnet, default], "ipv6": True, "recorded": []})[:2] == ("ok", "rule and 2 routes as planned")
    assert of({"rules": [], "routes": [], "ipv6": True})[:2] == (
        "error",
        "no rule from 2001:db8:100::1/128 to table 1000; no route to 2001:db8:100::/64 in table 1000; "
        "no route to ::/0 by fe80::1 in table 1000",
    )
    assert of({"rules": RULES, "routes": []})[0] == "unknown"
    assert "ip -6 route show table 1000" in of(None)[2]
