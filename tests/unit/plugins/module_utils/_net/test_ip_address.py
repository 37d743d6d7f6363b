# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses and the bound of the MTU, as iproute2 prints them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import (
    IpAddresses,
    ipv6_of,
    parse_ip_address,
    read_ip_addresses,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.hosts import FIXTURES

SHOWN = (FIXTURES / "ip/details-address-6.1.json").read_text(encoding="utf-8")
ASK = ["ip", "-json", "-details", "address", "show"]


class NoIp:
    """A system without iproute2."""

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        raise CommandError(f"command not found: {argv[0]}")


def test_a_real_machine() -> None:
    assert parse_ip_address(SHOWN) == {
        "lo": IpAddresses(None, ["127.0.0.1/8"]),
        "ifb0": IpAddresses(None, []),
        "ifb1": IpAddresses(None, []),
        "eth0": IpAddresses(65535, ["192.0.2.2/24"], ["fd00::2/64"]),
    }


def test_older_output_says_nothing_of_a_bound() -> None:
    text = (FIXTURES / "ip/address-ens1.json").read_text(encoding="utf-8")
    assert parse_ip_address(text) == {"ens1": IpAddresses(None, ["192.168.100.1/24"])}


def test_global_ipv6_addresses_in_use_and_those_that_another_host_has() -> None:
    """iproute2 6.1 on one end of a veth, before and after duplicate address detection; the other end has 2001:db8:200::7."""
    texts = {name: (FIXTURES / f"ip/address-ipv6{name}.json").read_text(encoding="utf-8") for name in ("-tentative", "")}
    first, then = (parse_ip_address(texts[name])["v0"] for name in ("-tentative", ""))
    assert (first.ipv4, first.ipv6, first.dad_failed) == (["192.168.100.1/24"], ["2001:db8:100::1/64"], [])
    assert (then.ipv6, then.dad_failed) == (["2001:db8:300::9/64", "2001:db8:100::1/64"], ["2001:db8:200::7/64"])
    static = ipv6_of(json.loads(texts["-tentative"])[0]["addr_info"], state="static")
    assert static == ["2001:db8:300::9/64", "2001:db8:200::7/64", "2001:db8:100::1/64"]


@pytest.mark.parametrize(("flag", "static"), [("temporary", False), ("dynamic", False), ("deprecated", True)])
def test_temporary_addresses_do_not_count_and_dynamic_ones_are_not_static(flag: str, static: bool) -> None:
    address = {"family": "inet6", "local": "2001:db8::7", "prefixlen": 64, "scope": "global", flag: True}
    assert ipv6_of([address]) == ([] if flag == "temporary" else ["2001:db8::7/64"])
    assert ipv6_of([address], state="static") == (["2001:db8::7/64"] if static else [])


def test_every_address_of_an_interface_is_kept_in_order() -> None:
    shown = json.loads(SHOWN)
    shown[1]["addr_info"] = [{"family": "inet", "local": f"10.0.0.{number}", "prefixlen": 8} for number in (2, 1)]
    assert parse_ip_address(json.dumps(shown))["ifb0"].ipv4 == ["10.0.0.2/8", "10.0.0.1/8"]


@pytest.mark.parametrize("text", ["[]", "[{},{}]"])
def test_elements_that_iproute2_has_filtered_out_are_empty(text: str) -> None:
    assert parse_ip_address(text) == {}


NO_ADDRESSES = [
    "",
    'Object "addres" is unknown',
    "null",
    "[1]",
    '{"ifname": "eth0"}',
    '[{"ifname": "eth0"}]',
    '[{"addr_info": []}]',
    SHOWN[:-2],
]


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_anything_else_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not the JSON of `ip -json -details address show`") as caught:
        parse_ip_address(text)
    assert repr(text[:200]) in str(caught.value)


def test_the_running_system_is_asked_once() -> None:
    runner = FakeRunner([(ASK, 0, SHOWN, "")])
    assert read_ip_addresses(runner) == parse_ip_address(SHOWN)


def test_an_ip_that_fails_reports_nothing() -> None:
    assert read_ip_addresses(FakeRunner([(ASK, 255, "", 'Option "-json" is unknown, try "ip -help".')])) is None
    assert read_ip_addresses(NoIp()) is None
