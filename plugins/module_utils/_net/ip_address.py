# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `ip -json -details address show` of iproute2 reports beyond sysfs: addresses, and the largest MTU that a driver accepts."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

COMMAND = ("ip", "-json", "-details", "address", "show")


@dataclass(frozen=True)
class IpAddresses:
    """One interface. max_mtu_bytes: None if the driver sets no limit (0); ipv4: ["192.168.100.1/24"].

    ipv6: ["2001:db8:100::1/64"], the global addresses in use, without temporary ones. dad_failed: those that the kernel does not use,
    because duplicate address detection found them on another host.
    """

    max_mtu_bytes: int | None
    ipv4: list[str]
    ipv6: list[str] = field(default_factory=list)
    dad_failed: list[str] = field(default_factory=list)


def parse_ip_address(text: str) -> dict[str, IpAddresses]:
    """Return each interface by its name. Raises ParseError for anything but the JSON of iproute2 (seen: 6.1)."""
    try:
        return {
            item["ifname"]: IpAddresses(
                max_mtu_bytes=item.get("max_mtu") or None,
                ipv4=ipv4_of(item["addr_info"]),
                ipv6=ipv6_of(item["addr_info"]),
                dad_failed=ipv6_of(item["addr_info"], state="dadfailed"),
            )
            for item in json.loads(text)
            if item
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `{' '.join(COMMAND)}`: {exc!r} in {quoted(text)}") from exc


def ipv4_of(addr_info: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the IPv4 addresses in `addr_info` of iproute2's JSON, "192.168.100.1/24"."""
    return [f"{each['local']}/{each['prefixlen']}" for each in addr_info if each.get("family") == "inet"]


def ipv6_of(addr_info: Iterable[Mapping[str, Any]], state: str | None = None) -> list[str]:
    """Return the global IPv6 addresses without temporary ones (RFC 8981), "2001:db8:100::1/64".

    state: None for those in use; "dadfailed" for those that another host has; "static" for all that somebody has set, also those whose
    duplicate address detection runs or failed.
    """
    found = [each for each in addr_info if each.get("family") == "inet6" and each.get("scope") == "global" and not each.get("temporary")]
    if state == "static":
        found = [each for each in found if not each.get("dynamic")]
    else:
        found = [each for each in found if bool(each.get("dadfailed")) is (state == "dadfailed")]
        found = [each for each in found if state == "dadfailed" or not each.get("tentative")]
    return [f"{each['local']}/{each['prefixlen']}" for each in found]


def is_ipv6(address: str) -> bool:
    """Return whether an address or network is of IPv6."""
    return ":" in address


def ip_of(address: str) -> str:
    """Return an address without its prefix length."""
    return address.partition("/")[0]


def read_ip_addresses(runner: Runner) -> dict[str, IpAddresses] | None:
    """Query the running system; None without an iproute2 that answers."""
    try:
        done = runner.run(COMMAND)
    except CommandError:
        return None
    return parse_ip_address(done.stdout) if done.rc == 0 else None


def is_within(address: str, subnet: str) -> bool:
    """Return whether an address is in a subnet; one of IPv6 is in none of IPv4."""
    return ipaddress.ip_address(address.partition("%")[0]) in ipaddress.ip_network(subnet)
