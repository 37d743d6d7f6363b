# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails with IPv6 and with several addresses: the files for each manager, the live steps, rules and routes. ip is that of iproute2 6.1."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice, netplan, networkd, nm_profiles
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.nm_boot import Profile, boot_profile
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.records import recorded_addresses, recorded_routing
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import Card, boot_network, parse_network_settings
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import NetworkFile as File
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, live_differences, make_rail
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import (
    DEFAULT_IPV6,
    IPV6_ROUTES_COMMAND,
    IPV6_RULES_COMMAND,
    RULES_COMMAND,
    PolicyRule,
    RailRouting,
    Recorded,
    Routing,
    TableRoute,
    missing_routes,
    parse_rules,
    parse_table_routes,
    rail_steps,
    read_routing,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import ADDRESS_GOES, Target, keeping, steps
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.hosts import FIXTURES

MAC = "02:00:00:00:09:01"
ONE, TWO, OLD = "2001:db8:100::1/64", "2001:db8:200::7/64", "192.168.100.1/24"
RAIL = NetworkRail("rail0", {"mac": MAC}, "v0", ONE, 9000, device="rxe_rail0", port=1, mac=MAC, addresses=(OLD, TWO))
ROUTED = NetworkRail(
    "rail0", {"mac": MAC}, "v0", ONE, None, mac=MAC, table=1000, gateway="2001:db8:100::ff", routes=("2001:db8::/32",), addresses=(OLD,)
)
IPV4 = NetworkRail("rail0", {"mac": MAC}, "v0", OLD, 9000, mac=MAC)
RULES = (FIXTURES / "ip/rule-ipv6.json").read_text(encoding="utf-8")
ROUTES = (FIXTURES / "ip/route-ipv6.json").read_text(encoding="utf-8")
RULE = PolicyRule(1000, "2001:db8:100::1/128", 1000)
SUBNET = TableRoute("2001:db8:100::/64", None, "v0", 1000, "2001:db8:100::1")
DEFAULT = TableRoute("::/0", "2001:db8:100::ff", "v0", 1000)


def test_networkd_adds_sections_without_duplicate_address_detection() -> None:
    assert networkd.render(RAIL) == (
        f"# Managed by rdma.cluster: rail0.\n[Match]\nMACAddress={MAC}\nType=ether\n\n[Link]\nMTUBytes=9000\nRequiredForOnline=no\n\n"
        "[Network]\nDHCP=no\nIPv6AcceptRA=no\nLinkLocalAddressing=ipv6\nConfigureWithoutCarrier=yes\nKeepConfiguration=static\n"
        f"Address={OLD}\n\n[Address]\nAddress={ONE}\nDuplicateAddressDetection=none\n\n"
        f"[Address]\nAddress={TWO}\nDuplicateAddressDetection=none\n"
    )


def test_networkd_has_no_scope_for_routes_of_ipv6() -> None:
    assert networkd.render(ROUTED).endswith(
        "\n[RoutingPolicyRule]\nFrom=2001:db8:100::1/128\nTable=1000\nPriority=1000\n"
        "\n[Route]\nDestination=2001:db8:100::/64\nPreferredSource=2001:db8:100::1\nTable=1000\n"
        "\n[Route]\nDestination=::/0\nGateway=2001:db8:100::ff\nTable=1000\n"
        "\n[Route]\nDestination=2001:db8::/32\nGateway=2001:db8:100::ff\n"
    )


def test_networkmanager_has_a_section_for_each_family() -> None:
    text = nm_profiles.render_profile(RAIL)
    assert text[text.index("[ipv4]") :] == (
        f"[ipv4]\nmethod=manual\naddress1={OLD}\nnever-default=true\n\n"
        f"[ipv6]\nmethod=manual\naddress1={ONE}\naddress2={TWO}\nnever-default=true\naddr-gen-mode=eui64\nip6-privacy=0\nmay-fail=true\n"
    )


def test_networkmanager_puts_rule_and_routes_beside_the_address_of_rdma() -> None:
    text = nm_profiles.render_profile(ROUTED)
    assert text[text.index("[ipv4]") : text.index("[ipv6]")] == f"[ipv4]\nmethod=manual\naddress1={OLD}\nnever-default=true\n\n"
    assert text.endswith(
        "may-fail=true\nrouting-rule1=priority 1000 from 2001:db8:100::1/128 table 1000\n"
        "route1=2001:db8:100::/64\nroute1_options=src=2001:db8:100::1,table=1000\n"
        "route2=::/0,2001:db8:100::ff\nroute2_options=table=1000\nroute3=2001:db8::/32,2001:db8:100::ff\n"
    )
    alone = nm_profiles.render_profile(NetworkRail("rail0", {"mac": MAC}, "v0", ONE, None, mac=MAC))
    assert "[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=manual\n" in alone


def test_netplan_quotes_addresses_with_colons() -> None:
    text = netplan.render(ROUTED)
    assert f'      addresses:\n        - "{ONE}"\n        - {OLD}\n' in text
    assert '      routing-policy:\n        - from: "2001:db8:100::1/128"\n          table: 1000\n' in text
    assert '        - to: "::/0"\n          via: "2001:db8:100::ff"\n          table: 1000\n' in text
    assert ("dhcp6: false" in text, "accept-ra: false" in text) == (True, True)


RENDERERS: list[Callable[[NetworkRail], str]] = [networkd.render, netplan.render, nm_profiles.render_profile]


@pytest.mark.parametrize("render", RENDERERS)
def test_the_addresses_in_our_files_are_known_again(render: Callable[[NetworkRail], str]) -> None:
    found = recorded_addresses(render(RAIL))
    assert sorted(found) == sorted(RAIL.planned)
    routed = NetworkRail("rail0", {"mac": MAC}, "v0", OLD, 9000, mac=MAC, table=1000, gateway="192.168.100.254", routes=("10.0.0.0/8",))
    assert recorded_addresses(render(routed)) == [OLD]


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("address", [OLD, ONE])
@pytest.mark.parametrize("table", [None, 1000, 1063])
def test_the_rules_and_routes_in_our_files_are_known_again(render: Callable[[NetworkRail], str], address: str, table: int | None) -> None:
    gateway, behind = ("2001:db8:100::ff", "2001:db8::/32") if address == ONE else ("192.168.100.254", "10.0.0.0/8")
    rail = NetworkRail("rail0", {"mac": MAC}, "v0", address, 9000, mac=MAC, table=table, gateway=gateway, routes=(behind,))
    routes = [replace(route, netdev="") for route in rail.routing.planned]
    assert len(routes) == (1 if table is None else 3)
    assert recorded_routing("rail0", f"{render(rail)}\n{render(RAIL)}") == Recorded("rail0", rail.routing.rules, routes)


@pytest.mark.parametrize(
    "text",
    [
        "[Route]\nDestination=10.0.0.0/8\nGateway=192.168.100.254\nMetric=7\nTable=1000\n",
        "[RoutingPolicyRule]\nFrom=192.168.100.1/32\nTable=1000\nPriority=1000\nIncomingInterface=eth0\n",
        "[RoutingPolicyRule]\nFrom=192.168.100.1/32\nTable=1000\nPriority=77\n",
        "[RoutingPolicyRule]\nFrom=192.168.100.1/32\nTable=77\nPriority=77\n",
        "[RoutingPolicyRule]\nFrom=nobody\nTable=1000\nPriority=1000\n",
        "route1=10.0.0.0/8,192.168.100.254\nroute1_options=metric=7,table=1000\n",
        "route1=10.0.0.0/8\n",
        "        - to: 10.0.0.0/8\n          via: 192.168.100.254\n          metric: 7\n          table: 1000\n",
        "        - from: 192.168.100.1/32\n          table: 1000\n          priority: 1000\n          mark: 7\n",
        "[Route]\nDestination=10.0.0.0/8\nGateway=192.168.100.254\nTable=254\n\n[Route]\nDestination=10.9.0.0/16\nTable=7\n",
    ],
)
def test_what_somebody_has_added_to_our_files_is_not_ours(text: str) -> None:
    assert recorded_routing("rail0", text).rules == []
    assert all(route.gateway and route.table == 254 and "Table=254" in text for route in recorded_routing("rail0", text).routes)


def test_the_files_for_the_next_boot_as_they_are_read_again() -> None:
    card = Card("v0", mac=MAC, type=1, driver="mlx5_core")
    text = networkd.render(RAIL)
    boot = boot_network([File("/f", parse_network_settings(text, "/f"))], card)
    assert ([each.value for each in boot.addresses], boot.advertisements) == ([OLD, ONE, TWO], None)
    more = parse_network_settings(f"{text}[Network]\nIPv6AcceptRA=yes\n", "/f")
    assert boot_network([File("/f", more)], card).advertisements is not None

    profile = nm_profiles.render_profile(RAIL)
    seen = boot_profile([Profile("/p", parse_network_settings(profile, "/p"))], card, None)
    assert ([each.value for each in seen.addresses], seen.advertisements) == ([OLD, ONE, TWO], None)
    auto = profile.replace("[ipv6]\nmethod=manual", "[ipv6]\nmethod=auto")
    found = boot_profile([Profile("/p", parse_network_settings(auto, "/p"))], card, None).advertisements
    assert found is not None
    assert found.value == "method=auto"


def argvs(target: Target, there: list[str]) -> list[str]:
    return [" ".join(step.argv) for step in steps(keeping(target, there), 9000, there)]


def test_the_live_steps() -> None:
    target = Target("v0", 9000, ONE, further=(OLD, TWO))
    assert argvs(target, []) == [
        f"ip address add {ONE} nodad dev v0",
        f"ip address add {OLD} brd + dev v0",
        f"ip address add {TWO} nodad dev v0",
    ]
    assert argvs(target, [OLD, TWO, ONE, "192.168.7.7/24"]) == []


def test_another_prefix_is_replaced_and_only_that_address_is_harmed() -> None:
    target = Target("v0", 9000, ONE, further=(TWO,))
    todo = steps(target, 9000, ["2001:db8:200::7/48"])
    assert [(" ".join(step.argv), step.harm) for step in todo] == [
        ("ip address del 2001:db8:200::7/48 dev v0", ADDRESS_GOES),
        (f"ip address add {ONE} nodad dev v0", ""),
        (f"ip address add {TWO} nodad dev v0", ADDRESS_GOES),
    ]


def test_a_former_address_goes_and_one_of_others_stays() -> None:
    target = Target("v0", 9000, ONE, former=frozenset({OLD, TWO}))
    assert argvs(target, [OLD, ONE, TWO, "2001:db8::9/64"]) == [f"ip address del {OLD} dev v0", f"ip address del {TWO} dev v0"]


def test_the_differences_of_an_interface_name_each_missing_address() -> None:
    assert live_differences(RAIL, 9000, [ONE, OLD]) == [(f"address {ONE}, {OLD}", f"address {TWO}")]
    assert live_differences(RAIL, 9000, [TWO, ONE, OLD]) == []


def test_rules_and_routes_as_iproute2_prints_them() -> None:
    assert parse_rules(RULES) == [RULE]
    behind = TableRoute("2001:db8::/32", "fe80::1", "v0", 254)
    assert parse_table_routes(ROUTES, DEFAULT_IPV6) == [SUBNET, DEFAULT, behind]
    own = RailRouting("v0", ONE, 1000, "2001:db8:100::ff")
    assert missing_routes(own, Routing([RULE], [SUBNET, DEFAULT, behind], ipv6=True)) == []


def test_both_families_are_read_only_where_ipv6_matters() -> None:
    calls = [(RULES_COMMAND, 0, "[]", ""), (IPV6_RULES_COMMAND, 0, RULES, ""), (IPV6_ROUTES_COMMAND, 0, ROUTES, "")]
    found = read_routing(FakeRunner(calls), (4, 6))
    assert found is not None
    assert (found.rules, found.ipv6, DEFAULT in found.routes) == ([RULE], True, True)
    assert read_routing(FakeRunner(calls[:1])) == Routing([], [], ipv6=False)
    assert read_routing(FakeRunner([calls[0], (IPV6_RULES_COMMAND, 255, "", "no IPv6")]), (4, 6)) is None


def test_the_commands_of_rule_and_routes() -> None:
    own = RailRouting("v0", ONE, 1000, "fe80::1", ("2001:db8::/32",))
    assert [" ".join(step.argv) for step in rail_steps(own, Routing([], [], ipv6=True))] == [
        "ip -6 route replace 2001:db8:100::/64 dev v0 src 2001:db8:100::1 table 1000 proto static",
        "ip -6 route replace ::/0 via fe80::1 dev v0 table 1000 proto static",
        "ip -6 route add 2001:db8::/32 via fe80::1 dev v0 proto static",
        "ip -6 rule add from 2001:db8:100::1/128 lookup 1000 priority 1000",
    ]
    former = PolicyRule(1000, "2001:db8:100::9/128", 1000)
    todo = rail_steps(own, Routing([former], []), former=["2001:db8:100::9/64"])
    assert todo[-1].argv[:4] == ("ip", "-6", "rule", "del")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "network").mkdir()
    monkeypatch.setattr(rail_network, "NETWORKD_FOLDER", str(tmp_path / "network"))
    for name in ("PROFILES", "CONF", "NETPLAN_FOLDER", "PENDING"):
        monkeypatch.setattr(rail_network, name, str(tmp_path / name.lower()))
    monkeypatch.setattr(networkd, "RENDERED", str(tmp_path / "rendered"))
    monkeypatch.setattr(networkd, "LOADED", str(tmp_path / "loaded"))
    monkeypatch.setattr(networkd, "LOAD_SECONDS", 0.0)
    return tmp_path


UNITS = (
    ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", "systemd-networkd.service", "NetworkManager.service"],
    0,
    "Id=systemd-networkd.service\nActiveState=active\nUnitFileState=enabled\n\n"
    "Id=NetworkManager.service\nActiveState=inactive\nUnitFileState=\n",
    "",
)


def shown(name: str, **changes: Any) -> tuple[list[str], int, str, str]:
    text = (FIXTURES / f"ip/{name}.json").read_text(encoding="utf-8")
    return ["ip", "-j", "address", "show", "dev", "v0"], 0, json.dumps([{**json.loads(text)[0], **changes}]), ""


def install(folder: Path, rail: NetworkRail) -> None:
    path = folder / "network/60-rdma-rail0.network"
    path.write_text(networkd.render(rail))
    path.chmod(0o644)


def test_a_rail_with_its_addresses_is_left_alone(folders: Path) -> None:
    """2001:db8:200::7 failed duplicate address detection: it is there, and the gate names it."""
    install(folders, RAIL)
    runner = FakeRunner([UNITS, *[shown("address-ipv6", mtu=9000)] * 2])
    done = choice.ensure("networkd", [RAIL], ["rail0"], runner=runner, sys=SysRoot(str(folders)), check_mode=False)
    assert not done.changed


def test_a_missing_address_is_added_alone(folders: Path) -> None:
    install(folders, RAIL)
    there = [each for each in json.loads(shown("address-ipv6")[2])[0]["addr_info"] if each["local"] != "2001:db8:100::1"]
    before, after = shown("address-ipv6", mtu=9000, addr_info=there), shown("address-ipv6", mtu=9000)
    add = (["ip", "address", "add", ONE, "nodad", "dev", "v0"], 0, "", "")
    runner = FakeRunner([UNITS, before, before, before, add, after])
    done = choice.ensure("networkd", [RAIL], ["rail0"], runner=runner, sys=SysRoot(str(folders)), check_mode=False)
    assert done.live == {"v0": [(f"address {OLD}, 2001:db8:300::9/64, {TWO}", f"address {ONE}")]}


def test_a_rail_of_ipv4_does_not_look_at_ipv6(folders: Path) -> None:
    install(folders, IPV4)
    runner = FakeRunner([UNITS, *[shown("address-ipv6", mtu=9000)] * 2])
    assert not choice.ensure("networkd", [IPV4], ["rail0"], runner=runner, sys=SysRoot(str(folders)), check_mode=False).changed


def test_a_foreign_ipv6_address_on_a_rail_of_ipv4_is_not_restored(folders: Path) -> None:
    """A router had announced it, or somebody had set it: it is not ours to add."""
    install(folders, IPV4)
    every = json.loads(shown("address-ipv6")[2])[0]["addr_info"]
    before = shown("address-ipv6", mtu=9000, addr_info=[each for each in every if each["family"] == "inet6"])
    after = shown("address-ipv6", mtu=9000, addr_info=[each for each in every if each["family"] == "inet"])
    add = (["ip", "address", "add", OLD, "brd", "+", "dev", "v0"], 0, "", "")
    runner = FakeRunner([UNITS, before, before, before, add, after])
    done = choice.ensure("networkd", [IPV4], ["rail0"], runner=runner, sys=SysRoot(str(folders)), check_mode=False)
    assert done.live == {"v0": [("address none", f"address {OLD}")]}


def test_options_of_the_module_make_the_same_rail() -> None:
    given = {key: value for key, value in vars(RAIL).items() if key != "ipoib"}
    assert make_rail({**given, "addresses": [OLD, TWO], "ipoib": None}) == RAIL
    assert make_rail({**{key: value for key, value in vars(IPV4).items() if key != "addresses"}, "ipoib": None}) == IPV4
