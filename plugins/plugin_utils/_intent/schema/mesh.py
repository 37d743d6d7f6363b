# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for the cables of a mesh, and the types of their values: a cable's end, and the pool of subnets."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    HOST,
    MAC,
    MIN_ROUTE_BITS,
    PCI,
    Form,
    Key,
    integer,
    is_form,
    keys,
    optional,
    text,
)

#: The value of `cables` that stands for those that the hosts discover.
DISCOVER = "discover"
#: Eight cards with two ports each. No host has more ports for a mesh.
MOST_NICS = 16


@dataclass(frozen=True)
class CableEnd:
    """One end of a cable. nic: the PCI address or the MAC address of the port, in lower case."""

    host: str
    nic: str

    def __str__(self) -> str:
        return f"{self.host}/{self.nic}"

    @property
    def key(self) -> str:
        """The key of rdma_rails[].nic: "pci" or "mac"."""
        return "pci" if is_form(PCI, self.nic) else "mac"


def split_end(value: Any) -> CableEnd:
    """Return the end of "spark1/0000:01:00.0". Raises ValueError for another form."""
    host, slash, nic = value.rpartition("/") if isinstance(value, str) else ("", "", "")
    if not slash:
        raise ValueError("no NIC")
    return CableEnd(HOST.parse(host), PCI.parse(nic) if is_form(PCI, nic) else MAC.parse(nic))


@dataclass(frozen=True)
class Pool:
    """The subnets of cables: those of `prefix_length` bits from `first` to the end of `network`, in order."""

    first: ipaddress.IPv4Address
    network: ipaddress.IPv4Network
    prefix_length: int

    @classmethod
    def of(cls, pool: str, prefix_length: int) -> Pool:
        """Return the pool of "192.168.100.0/16": the address is the first one, the prefix length that of the network."""
        parsed = ipaddress.IPv4Interface(pool)
        return cls(parsed.ip, parsed.network, prefix_length)

    def __str__(self) -> str:
        return f"{self.first}/{self.network.prefixlen}"

    @property
    def step(self) -> int:
        """The number of addresses in a subnet."""
        return 1 << (32 - self.prefix_length)

    @property
    def size(self) -> int:
        """The number of its subnets."""
        return (int(self.network.broadcast_address) + 1 - int(self.first)) // self.step

    def subnet(self, number: int) -> ipaddress.IPv4Network:
        """Return a subnet; 0 is the first one."""
        return ipaddress.IPv4Network((int(self.first) + number * self.step, self.prefix_length))

    def overlaps(self, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
        """Return whether a network has an address of the pool."""
        ends = int(network.network_address), int(network.broadcast_address)
        return network.version == 4 and ends[0] <= int(self.network.broadcast_address) and ends[1] >= int(self.first)

    @property
    def host_numbers(self) -> tuple[int, int]:
        """The numbers of both hosts in a subnet: .2 and .3, or the only two addresses of a /30 and a /31 (RFC 3021)."""
        return {30: (1, 2), 31: (0, 1)}.get(self.prefix_length, (2, 3))


def parse_pool(value: Any) -> str:
    """Return "192.168.100.0/16", the first address of the pool and the network that the pool is in. Raises ValueError."""
    if not isinstance(value, str) or "/" not in value:
        raise ValueError("no prefix length")
    pool = ipaddress.IPv4Interface(value)
    if pool.network.prefixlen < MIN_ROUTE_BITS or pool.ip.is_loopback or pool.ip.is_multicast or pool.ip.is_reserved:
        raise ValueError("not a network of hosts")
    return f"{pool.ip}/{pool.network.prefixlen}"


POOL = Form(
    "the first IPv4 address of the pool with the prefix length of its network (192.168.100.0/16), of at least 8",
    parse_pool,
    "intent.address",
)
CABLE_END = Form(
    "a host and the PCI or MAC address of its NIC (spark1/0000:01:00.0)",
    lambda value: str(split_end(value)),
)
MESH = optional(
    keys(
        "The cables of a mesh, from which `plan.yml` plans the rails of each host ([plan a mesh](guides/spark_mesh.md)). Without it, you "
        "write the rails yourself.",
        pool=text(
            "The subnets of cables begin at this address and end with its network: from 192.168.100.0/16, the first subnet of /24 is "
            "192.168.100.0, the last one 192.168.255.0.",
            POOL,
            required=True,
        ),
        prefix_length=integer(
            "Prefix length of each cable's subnet. NCCL supports one for all. The hosts of a cable have .2 and .3; in a /30 .1 and .2, in "
            "a /31 .0 and .1.",
            16,
            31,
            default=24,
        ),
        cables=Key(
            (str, list),
            "Cables, each with its two ends; or `discover`: those that the hosts see on their rails.",
            required=True,
            choices=(DISCOVER,),
            each=Key((list,), "A cable: its two ends.", each=text("An end of the cable.", CABLE_END)),
        ),
    )
)
