# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `ip -json -details address show` of iproute2 reports beyond sysfs: addresses, and the largest MTU that a driver accepts."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError

COMMAND = ("ip", "-json", "-details", "address", "show")


@dataclass(frozen=True)
class IpAddresses:
    """One interface. max_mtu_bytes: None if the driver sets no limit (0); ipv4: ["192.168.100.1/24"]."""

    max_mtu_bytes: int | None
    ipv4: list[str]


def parse_ip_address(text: str) -> dict[str, IpAddresses]:
    """Return each interface by its name. Raises ParseError for anything but the JSON of iproute2 (seen: 6.1)."""
    try:
        return {
            item["ifname"]: IpAddresses(
                max_mtu_bytes=item.get("max_mtu") or None,
                ipv4=[f"{address['local']}/{address['prefixlen']}" for address in item["addr_info"] if address.get("family") == "inet"],
            )
            for item in json.loads(text)
            if item
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `{' '.join(COMMAND)}`: {exc!r} in {text[:200]!r}") from exc


def read_ip_addresses(runner: Runner) -> dict[str, IpAddresses] | None:
    """Query the running system; None without an iproute2 that answers."""
    try:
        done = runner.run(COMMAND)
    except CommandError:
        return None
    return parse_ip_address(done.stdout) if done.rc == 0 else None
