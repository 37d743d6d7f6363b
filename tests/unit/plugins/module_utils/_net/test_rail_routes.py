# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rail's own routing table. The answers are those of iproute2 6.1."""

from __future__ import annotations

import contextlib
import functools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice, netplan, networkd, nm_profiles
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import (
    ROUTES_COMMAND,
    RULES_COMMAND,
    PolicyRule,
    RailRouting,
    Recorded,
    Routing,
    TableRoute,
    left_over,
    missing_routes,
    parse_rules,
    parse_table_routes,
    rail_steps,
    read_routing,
    removal,
    routing_differences,
    tables_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session
from tests.unit.builders.fakes import FakeRunner, Without
from tests.unit.builders.garbled import garbled

RULES = """[{"priority":0,"src":"all","table":"local"},{"priority":7,"src":"10.0.0.0","srclen":8,"table":"5"},
{"priority":9,"src":"10.0.0.1","table":"site"},{"priority":10,"src":"10.0.0.2","iif":"eth0","table":"6"},
{"priority":11,"src":"10.0.0.2","action":"blackhole"},
{"priority":1000,"src":"192.168.100.1","table":"1000"},{"priority":32766,"src":"all","table":"main"},
{"priority":32767,"src":"all","table":"default"}]"""
ROUTES = """[{"dst":"default","gateway":"192.168.100.254","dev":"va0","table":"1000","protocol":"static","flags":[]},
{"dst":"192.168.100.0/24","dev":"va0","table":"1000","protocol":"static","scope":"link","prefsrc":"192.168.100.1","flags":[]},
{"dst":"192.168.0.0/16","gateway":"192.168.100.254","dev":"va0","protocol":"static","flags":[]},
{"dst":"10.1.0.0/24","protocol":"bgp","metric":20,"flags":[],"nexthops":[{"gateway":"10.0.0.1","dev":"eth2","weight":1,"flags":[]}]},
{"dst":"10.2.0.0/24","gateway":"10.0.0.1","dev":"eth2","protocol":"bgp","flags":[]},
{"type":"unreachable","dst":"10.3.0.0/24","dev":"lo","protocol":"static","flags":[]},
{"dst":"192.168.100.0/24","dev":"va0","protocol":"kernel","scope":"link","prefsrc":"192.168.100.1","flags":[]},
{"type":"local","dst":"192.168.100.1","dev":"va0","table":"local","protocol":"kernel","scope":"host","prefsrc":"192.168.100.1","flags":[]}]"""
OWN = RailRouting("va0", "192.168.100.1/24", 1000, "192.168.100.254", ("192.168.0.0/16",))
RULE = PolicyRule(1000, "192.168.100.1/32", 1000)
SUBNET = TableRoute("192.168.100.0/24", None, "va0", 1000, "192.168.100.1")
DEFAULT = TableRoute("0.0.0.0/0", "192.168.100.254", "va0", 1000)
BEHIND = TableRoute("192.168.0.0/16", "192.168.100.254", "va0", 254)
GOOD = Routing([RULE], [SUBNET, DEFAULT, BEHIND])
NOTHING = Routing([], [])


def test_the_rules_by_source() -> None:
    assert parse_rules(RULES) == [PolicyRule(7, "10.0.0.0/8", 5), PolicyRule(9, "10.0.0.1/32", -1), RULE]


def test_the_routes_of_rails() -> None:
    """Neither those of the kernel and of routing daemons, nor what drops packets."""
    assert parse_table_routes(ROUTES) == [DEFAULT, SUBNET, BEHIND]


@given(garbled(RULES))
def test_garbled_rules(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert all(isinstance(rule.priority, int) for rule in parse_rules(text))


@given(garbled(ROUTES))
def test_garbled_routes(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert all("/" in route.network for route in parse_table_routes(text))


def test_the_routes_are_read_only_where_a_rail_has_a_rule() -> None:
    assert read_routing(FakeRunner([(RULES_COMMAND, 0, RULES, ""), (ROUTES_COMMAND, 0, ROUTES, "")])) == Routing(
        parse_rules(RULES), [DEFAULT, SUBNET, BEHIND]
    )
    assert read_routing(FakeRunner([(RULES_COMMAND, 0, "[]", "")])) == NOTHING


def test_what_cannot_be_read_is_unknown() -> None:
    assert read_routing(Without(["ip"], [])) is None
    assert read_routing(FakeRunner([(RULES_COMMAND, 255, "", "unknown")])) is None
    assert read_routing(FakeRunner([(RULES_COMMAND, 0, "rubbish", "")])) is None
    assert read_routing(FakeRunner([(RULES_COMMAND, 0, RULES, ""), (ROUTES_COMMAND, 0, "rubbish", "")])) is None
    assert read_routing(FakeRunner([(RULES_COMMAND, 0, RULES, ""), (ROUTES_COMMAND, 2, "", "")])) is None


def test_what_a_rail_needs() -> None:
    assert OWN.rules == [RULE]
    assert OWN.planned == [SUBNET, DEFAULT, BEHIND]
    assert RailRouting("va0", "192.168.100.1/24").planned == []
    assert RailRouting("va0", "192.168.100.1/24", 1000).planned == [SUBNET]
    assert RailRouting("va0", None, 1000, "192.168.100.254", ("10.0.0.0/8",)).planned == []


def test_the_steps_on_a_host_without_them() -> None:
    assert [" ".join(step.argv) for step in rail_steps(OWN, NOTHING)] == [
        "ip route replace 192.168.100.0/24 scope link dev va0 src 192.168.100.1 table 1000 proto static",
        "ip route replace 0.0.0.0/0 via 192.168.100.254 dev va0 table 1000 proto static",
        "ip route add 192.168.0.0/16 via 192.168.100.254 dev va0 proto static",
        "ip rule add from 192.168.100.1/32 lookup 1000 priority 1000",
    ]
    assert not any(step.harm for step in rail_steps(OWN, NOTHING))
    assert all(step.harm for step in rail_steps(OWN, NOTHING, live=True))
    assert rail_steps(OWN, GOOD) == []


def test_a_route_of_the_main_table_replaces_only_one_by_the_same_interface() -> None:
    """The route of another interface may be the way to the user's session, or to a file server."""
    other = TableRoute("192.168.0.0/16", "10.9.9.9", "eth9", 254)
    verbs = [
        next(step.argv[2] for step in rail_steps(OWN, Routing([RULE], [SUBNET, DEFAULT, each])) if "192.168.0.0/16" in step.argv)
        for each in (other, TableRoute("192.168.0.0/16", "192.168.100.253", "va0", 254))
    ]
    assert verbs == ["add", "replace"]


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        pytest.param(PolicyRule(1000, "192.168.100.9/32", 1000), True, id="a former address"),
        pytest.param(PolicyRule(1007, "192.168.100.1/32", 1007), True, id="its address, another table of ours"),
        pytest.param(PolicyRule(1000, "10.0.0.7/32", 1000), False, id="somebody's, in the table of the rail"),
        pytest.param(PolicyRule(1001, "192.168.101.1/32", 1001), False, id="another rail"),
        pytest.param(PolicyRule(900, "192.168.100.1/32", 5), False, id="somebody's own"),
        pytest.param(PolicyRule(1007, "192.168.100.1/32", 254), False, id="somebody's, with a number of ours"),
    ],
)
def test_an_outdated_rule_goes_and_others_stay(rule: PolicyRule, gone: bool) -> None:
    steps = rail_steps(OWN, Routing([*GOOD.rules, rule], GOOD.routes), former=["192.168.100.9/24"])
    expected = [("ip", "rule", "del", "from", rule.source, "lookup", str(rule.table), "priority", str(rule.priority))]
    assert [step.argv for step in steps] == (expected if gone else [])
    assert all(step.harm for step in steps)


def test_a_rail_that_needs_no_table_any_more_loses_its_rule() -> None:
    bare = RailRouting("va0", "192.168.100.1/24")
    assert routing_differences([bare], GOOD) == {"va0": [("rule: from 192.168.100.1/32 by table 1000", "no such rule")]}


def test_what_is_missing_in_words() -> None:
    assert missing_routes(OWN, Routing([], [SUBNET])) == [
        "no rule from 192.168.100.1/32 to table 1000",
        "no route to 0.0.0.0/0 by 192.168.100.254 in table 1000",
        "no route to 192.168.0.0/16 by 192.168.100.254",
    ]
    assert missing_routes(OWN, GOOD) == []


@pytest.mark.parametrize(
    ("addressed", "gateways", "shared", "tables"),
    [
        ([True, True], [None, None], False, [None, None]),
        ([True, True], ["a", None], False, [1000, None]),
        ([True, True], [None, None], True, [1000, 1001]),
        ([True, False], [None, None], True, [None, None]),
        ([False, True, True], [None, None, None], True, [None, 1001, 1002]),
    ],
)
def test_which_rails_need_a_table(addressed: list[bool], gateways: list[str | None], shared: bool, tables: list[int | None]) -> None:
    assert tables_of(addressed, gateways, shared_subnet=shared) == tables


RAIL = NetworkRail(
    "rail0", {"mac": "02:00:00:00:09:01"}, "va0", "192.168.100.1/24", None,
    mac="02:00:00:00:09:01", table=1000, gateway="192.168.100.254", routes=("192.168.0.0/16",),
)  # fmt: skip


def test_systemd_networkds_sections() -> None:
    assert networkd.render(RAIL).partition("Address=192.168.100.1/24\n")[2] == (
        "\n[RoutingPolicyRule]\nFrom=192.168.100.1/32\nTable=1000\nPriority=1000\n"
        "\n[Route]\nDestination=192.168.100.0/24\nScope=link\nPreferredSource=192.168.100.1\nTable=1000\n"
        "\n[Route]\nDestination=0.0.0.0/0\nGateway=192.168.100.254\nTable=1000\n"
        "\n[Route]\nDestination=192.168.0.0/16\nGateway=192.168.100.254\n"
    )


def test_networkmanagers_lines() -> None:
    assert nm_profiles.render_profile(RAIL).partition("never-default=true\n")[2] == (
        "routing-rule1=priority 1000 from 192.168.100.1/32 table 1000\n"
        "route1=192.168.100.0/24\nroute1_options=scope=253,src=192.168.100.1,table=1000\n"
        "route2=0.0.0.0/0,192.168.100.254\nroute2_options=table=1000\n"
        "route3=192.168.0.0/16,192.168.100.254\n"
        "\n[ipv6]\nmethod=link-local\n"
    )


def test_netplans_lists() -> None:
    assert netplan.render(RAIL).partition("        - 192.168.100.1/24\n")[2] == (
        "      routing-policy:\n        - from: 192.168.100.1/32\n          table: 1000\n          priority: 1000\n"
        "      routes:\n        - to: 192.168.100.0/24\n          scope: link\n          from: 192.168.100.1\n          table: 1000\n"
        "        - to: 0.0.0.0/0\n          via: 192.168.100.254\n          table: 1000\n"
        "        - to: 192.168.0.0/16\n          via: 192.168.100.254\n"
    )


ensure = functools.partial(choice.ensure, "networkd")
UNITS = (
    ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", "systemd-networkd.service", "NetworkManager.service"],
    0,
    "Id=systemd-networkd.service\nActiveState=active\nUnitFileState=enabled\n\nId=NetworkManager.service\nActiveState=inactive\n",
    "",
)
SHOW = (
    ["ip", "-j", "address", "show", "dev", "va0"],
    0,
    json.dumps([{"mtu": 1500, "addr_info": [{"family": "inet", "local": "192.168.100.1", "prefixlen": 24}]}]),
    "",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("NETWORKD_FOLDER", "PROFILES", "CONF", "NETPLAN_FOLDER", "PENDING"):
        monkeypatch.setattr(rail_network, name, str(tmp_path / name.lower()))
    monkeypatch.setattr(networkd, "RENDERED", str(tmp_path / "rendered"))
    monkeypatch.setattr(networkd, "LOADED", str(tmp_path / "loaded"))
    monkeypatch.setattr(networkd, "LOAD_SECONDS", 0.0)
    (tmp_path / "networkd_folder").mkdir()
    return tmp_path


def install(folder: Path, rail: NetworkRail) -> None:
    path = folder / f"networkd_folder/60-rdma-{rail.name}.network"
    path.write_text(networkd.render(rail))
    path.chmod(0o644)


IDLE = (["rdma", "-j", "resource", "show", "qp"], 0, "[]", "")
LOST = [(RULES_COMMAND, 0, "[]", ""), (ROUTES_COMMAND, 0, "[]", "")]


def rdma_host(folder: Path) -> SysRoot:
    """A host with an RDMA device."""
    (folder / "host/sys/class/infiniband/rxe_rail0").mkdir(parents=True, exist_ok=True)
    (folder / "host/proc/1").mkdir(parents=True, exist_ok=True)
    return SysRoot(str(folder / "host"))


def test_a_lost_rule_comes_back_on_an_idle_host(folder: Path) -> None:
    install(folder, RAIL)
    add = [(list(step.argv), 0, "", "") for step in rail_steps(RAIL.routing, NOTHING)]
    back = [(RULES_COMMAND, 0, RULES, ""), (ROUTES_COMMAND, 0, ROUTES, "")]
    runner = FakeRunner([UNITS, SHOW, SHOW, *LOST, IDLE, SHOW, *LOST, *add, SHOW, *back])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=rdma_host(folder), check_mode=False)
    assert result.withheld == []
    assert ("no rule for 192.168.100.1/32", "rule: from 192.168.100.1/32 by table 1000") in result.live["va0"]


def test_on_a_rail_in_use_the_path_of_packets_stays(folder: Path) -> None:
    """A TCP connection of the job would leave by another interface from then on."""
    install(folder, RAIL)
    sys = rdma_host(folder)
    (folder / "host/proc/812").mkdir()
    (folder / "host/proc/812/comm").write_text("slurmstepd\n")
    runner = FakeRunner([UNITS, SHOW, SHOW, *LOST, IDLE])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert [each.users for each in result.withheld] == ["job process 812 (slurmstepd)"]


def test_a_route_that_takes_the_answers_to_our_session_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.168.7.7 50022 10.0.0.1 22")
    install(folder, RAIL)
    runner = FakeRunner([UNITS, SHOW])
    with pytest.raises(ApplyError, match=r"rail0: routes has 192\.168\.0\.0/16, which contains 192\.168\.7\.7, .* 1\. In rdma_rails"):
        ensure([RAIL], ["rail0"], runner=runner, sys=rdma_host(folder), check_mode=True, session=Session("10.0.0.1", "eth0"))


def test_the_rule_of_a_former_plan_is_found_by_the_file(folder: Path) -> None:
    install(folder, RAIL)
    bare = NetworkRail(**{**vars(RAIL), "table": None, "gateway": None, "routes": ()})
    known = [(RULES_COMMAND, 0, RULES, ""), (ROUTES_COMMAND, 0, ROUTES, "")]
    runner = FakeRunner([UNITS, SHOW, SHOW, *known, IDLE])
    result = ensure([bare], ["rail0"], runner=runner, sys=rdma_host(folder), check_mode=True)
    assert result.live["va0"][0] == ("rule: from 192.168.100.1/32 by table 1000", "no such rule")


def test_rules_that_cannot_be_read_are_an_error(folder: Path) -> None:
    install(folder, RAIL)
    runner = FakeRunner([UNITS, SHOW, SHOW, (RULES_COMMAND, 255, "", "")])
    with pytest.raises(ApplyError, match="the routes of the rails are not known"):
        ensure([RAIL], ["rail0"], runner=runner, sys=SysRoot(str(folder / "host")), check_mode=True)


RECORD = Recorded("rail0", [RULE], [replace(each, netdev="") for each in (SUBNET, DEFAULT, BEHIND)])
BARE = NetworkRail(**{**vars(RAIL), "table": None, "gateway": None, "routes": ()})
DELETE = [
    "ip rule del from 192.168.100.1/32 lookup 1000 priority 1000",
    "ip route del 0.0.0.0/0 via 192.168.100.254 dev va0 table 1000 proto static",
    "ip route del 192.168.100.0/24 dev va0 table 1000 proto static",
    "ip route del 192.168.0.0/16 via 192.168.100.254 dev va0 proto static",
]
KNOWN = [(RULES_COMMAND, 0, RULES, ""), (ROUTES_COMMAND, 0, ROUTES, "")]


def test_what_is_recorded_and_no_longer_planned_is_left_over() -> None:
    assert left_over(RECORD, GOOD, [OWN], "va0") == NOTHING
    left = left_over(RECORD, Routing(parse_rules(RULES), parse_table_routes(ROUTES)), [BARE.routing], "va0")
    assert left == Routing([RULE], [DEFAULT, SUBNET, BEHIND])
    assert [" ".join(step.argv) for step in removal("va0", left)] == DELETE
    assert all(step.harm for step in removal("va0", GOOD))
    fewer = replace(OWN, routes=())
    assert left_over(RECORD, GOOD, [fewer], "va0") == Routing([], [BEHIND])


@pytest.mark.parametrize(
    ("rule", "route"),
    [
        pytest.param(PolicyRule(1000, "192.168.100.7/32", 1000), TableRoute("192.168.0.0/16", "192.168.100.254", "va9", 254), id="others'"),
        pytest.param(
            PolicyRule(1001, "192.168.100.1/32", 1001), TableRoute("192.168.0.0/16", "192.168.100.9", "va0", 254), id="another router"
        ),
        pytest.param(
            PolicyRule(1001, "10.0.0.1/32", 1001), TableRoute("172.16.0.0/12", "192.168.100.254", "va0", 254), id="another network"
        ),
    ],
)
def test_rules_and_routes_that_no_file_of_ours_records_stay(rule: PolicyRule, route: TableRoute) -> None:
    assert left_over(RECORD, Routing([rule], [route]), [BARE.routing], "va0") == NOTHING
    assert left_over(RECORD, Routing([rule], [route]), [], None) == NOTHING


def test_of_a_rail_that_is_no_longer_planned_only_its_own_table_is_known() -> None:
    """Its interface is not known, and a route of the main table may by now be that of another interface."""
    assert left_over(RECORD, GOOD, [], None) == Routing([RULE], [SUBNET, DEFAULT])


def test_what_another_rail_has_taken_over_stays() -> None:
    """The rails of the host were named anew."""
    assert left_over(replace(RECORD, owner="old"), GOOD, [OWN], None) == NOTHING


def test_a_route_with_a_new_router_is_replaced_and_not_removed() -> None:
    moved = replace(OWN, gateway="192.168.100.253")
    left = left_over(RECORD, GOOD, [moved], "va0")
    assert left == NOTHING
    steps = [" ".join(step.argv) for step in rail_steps(moved, GOOD, left=left)]
    assert [step.split()[2] for step in steps] == ["replace", "replace"]


def test_recorded_routes_are_read_without_a_rule() -> None:
    seen = read_routing(FakeRunner([(RULES_COMMAND, 0, "[]", ""), KNOWN[1]]), (4,), [RECORD])
    assert seen == Routing([], [DEFAULT, SUBNET, BEHIND], recorded=[RECORD])


def test_routes_that_left_the_intent_go_on_an_idle_host(folder: Path) -> None:
    install(folder, RAIL)
    sys = rdma_host(folder)
    deleted = [(line.split(), 0, "", "") for line in DELETE]
    reload = [(["networkctl", "reload"], 0, "", "")]
    again = [SHOW, (RULES_COMMAND, 0, "[]", ""), (ROUTES_COMMAND, 0, "[]", "")]
    runner = FakeRunner([UNITS, SHOW, SHOW, *KNOWN, IDLE, *reload, SHOW, *KNOWN, *deleted, *again])
    result = ensure([BARE], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert result.withheld == []
    assert result.live == {
        "va0": [
            ("rule: from 192.168.100.1/32 by table 1000", "no such rule"),
            ("route to 0.0.0.0/0 by 192.168.100.254 in table 1000", "no such route"),
            ("route to 192.168.100.0/24 in table 1000", "no such route"),
            ("route to 192.168.0.0/16 by 192.168.100.254", "no such route"),
        ]
    }


def test_check_mode_shows_the_routes_that_would_go(folder: Path) -> None:
    install(folder, RAIL)
    runner = FakeRunner([UNITS, SHOW, SHOW, *KNOWN, IDLE])
    result = ensure([BARE], ["rail0"], runner=runner, sys=rdma_host(folder), check_mode=True)
    assert [words for words, _planned in result.live["va0"]][3] == "route to 192.168.0.0/16 by 192.168.100.254"
    assert any("route to 192.168.0.0/16 by 192.168.100.254" in each["before"] for each in result.diffs)


def test_on_a_rail_in_use_former_routes_stay_with_their_file(folder: Path) -> None:
    install(folder, RAIL)
    sys = rdma_host(folder)
    (folder / "host/proc/812").mkdir()
    (folder / "host/proc/812/comm").write_text("slurmstepd\n")
    runner = FakeRunner([UNITS, SHOW, SHOW, *KNOWN, IDLE])
    result = ensure([BARE], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert (result.live, result.files) == ({}, [])
    assert "route to 192.168.0.0/16 by 192.168.100.254 → no such route" in result.withheld[0].change


def test_a_former_route_to_our_own_client_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers to our session leave by it, whatever may be changed."""
    monkeypatch.setenv("SSH_CONNECTION", "192.168.7.7 50022 10.0.0.1 22")
    install(folder, RAIL)
    runner = FakeRunner([UNITS, SHOW, SHOW, *KNOWN])
    session = Session("10.0.0.1", "eth0")
    result = ensure([BARE], ["rail0"], runner=runner, sys=rdma_host(folder), check_mode=False, session=session, change_allowed=True)
    assert (result.live, result.files) == ({}, [])
    assert [each.users for each in result.withheld] == ["our SSH session"]


OTHER = NetworkRail("rail1", {"mac": "02:00:00:00:09:02"}, "vb0", None, None, mac="02:00:00:00:09:02")
SHOW_OTHER = (["ip", "-j", "address", "show", "dev", "vb0"], 0, json.dumps([{"mtu": 1500, "addr_info": []}]), "")


@pytest.mark.parametrize("check_mode", [True, False])
def test_the_rule_and_table_of_a_rail_that_left_the_intent_go(folder: Path, check_mode: bool) -> None:
    """rail0 was removed from the intent, and its file goes; rail1 is planned, and has nothing."""
    install(folder, RAIL)
    reload = [(["networkctl", "reload"], 0, "", "")]
    late = (DELETE[2].split(), 2, "", "RTNETLINK answers: No such process\n")
    changed = [*reload, *KNOWN, *((line.split(), 0, "", "") for line in DELETE[:2]), late]
    tail = [SHOW_OTHER, (RULES_COMMAND, 0, "[]", "")]
    runner = FakeRunner([UNITS, SHOW_OTHER, SHOW_OTHER, *KNOWN, IDLE, *KNOWN, *([] if check_mode else [*changed, *tail])])
    result = ensure([OTHER], ["rail1"], runner=runner, sys=rdma_host(folder), check_mode=check_mode)
    assert result.withheld == []
    assert result.live == {
        "rail0": [
            ("rule: from 192.168.100.1/32 by table 1000", "no such rule"),
            ("route to 0.0.0.0/0 by 192.168.100.254 in table 1000", "no such route"),
            ("route to 192.168.100.0/24 in table 1000", "no such route"),
        ]
    }


def test_on_a_host_in_use_a_former_rail_keeps_its_rule_and_its_file(folder: Path) -> None:
    install(folder, RAIL)
    sys = rdma_host(folder)
    (folder / "host/proc/812").mkdir()
    (folder / "host/proc/812/comm").write_text("slurmstepd\n")
    runner = FakeRunner([UNITS, SHOW_OTHER, SHOW_OTHER, *KNOWN, IDLE])
    result = ensure([OTHER], ["rail1"], runner=runner, sys=sys, check_mode=False)
    assert (result.live, result.files) == ({}, [])
    assert result.withheld[0].change.startswith("removal of ")


def test_a_route_that_moves_to_another_rail_leaves_its_rail_first(folder: Path) -> None:
    """The main table has one route to a network, so the second `ip route add` would fail; rail1 comes first in the intent."""
    taker = NetworkRail(
        "rail1", {"mac": "02:00:00:00:09:02"}, "vb0", "192.168.101.1/24", None,
        mac="02:00:00:00:09:02", table=1001, gateway="192.168.101.254", routes=("192.168.0.0/16",),
    )  # fmt: skip
    giver = NetworkRail(**{**vars(RAIL), "routes": ()})
    install(folder, RAIL)
    show = (SHOW_OTHER[0], 0, json.dumps([{"mtu": 1500, "addr_info": [{"family": "inet", "local": "192.168.101.1", "prefixlen": 24}]}]), "")
    missing = rail_steps(taker.routing, GOOD)
    without = json.dumps([each for each in json.loads(ROUTES) if each["dst"] != "192.168.0.0/16"])
    third = [(RULES_COMMAND, 0, RULES, ""), (ROUTES_COMMAND, 0, without, "")]
    own = json.loads(RULES)[-3] | {"src": "192.168.101.1", "priority": 1001, "table": "1001"}
    done_routes = [
        {"dst": "default", "gateway": "192.168.101.254", "dev": "vb0", "table": "1001", "protocol": "static"},
        {"dst": "192.168.101.0/24", "dev": "vb0", "table": "1001", "protocol": "static", "prefsrc": "192.168.101.1"},
        {"dst": "192.168.0.0/16", "gateway": "192.168.101.254", "dev": "vb0", "protocol": "static"},
    ]
    after = [(RULES_COMMAND, 0, json.dumps([own]), ""), (ROUTES_COMMAND, 0, json.dumps(done_routes), "")]
    planning = [UNITS, show, SHOW, show, *KNOWN, SHOW, *KNOWN, IDLE, (["networkctl", "reload"], 0, "", "")]
    first = [SHOW, *KNOWN, (DELETE[3].split(), 0, "", ""), SHOW, *third]
    second = [show, *third, *((list(step.argv), 0, "", "") for step in missing), show, *after]
    runner = FakeRunner([*planning, *first, *second])
    result = ensure([taker, giver], ["rail1", "rail0"], runner=runner, sys=rdma_host(folder), check_mode=False)
    assert result.live["va0"] == [("route to 192.168.0.0/16 by 192.168.100.254", "no such route")]
