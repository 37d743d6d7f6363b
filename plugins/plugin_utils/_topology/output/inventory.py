# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory of a planned cluster: hosts, rails, planes, and the groups by rack and leaves.

What a plan cannot know has a placeholder that the intent refuses with its place: the PCI addresses of the NICs.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.discover.inventory_text import OneLine, inventory_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.routing import CORE_OFFSET, LEAF_OFFSET
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.places import Place, rack_order
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

#: The placeholder of a PCI address.
FILL_IN = "FILL-IN"
#: Address pools of routed planes: of hosts, divided between the planes, and of switches, 1024 addresses for each plane.
HOST_POOL = ipaddress.IPv4Network("10.0.0.0/9")
LOOPBACK_POOL = ipaddress.IPv4Network("10.128.0.0/16")
LOOPBACK_BITS = 22
#: Without routing, rail r of host number n has 10.r.(n / 256).(n modulo 256) in a network of this prefix length.
RAIL_BITS = 16
#: A leaf's subnet has a /31 for each port number from 0.
PORT_ADDRESSES = 2
LARGEST_SUBNET_BITS = 30
#: The tiers of a fabric that `--tags routing` plans. Spines of a dragonfly+ are cabled to each other, which it refuses.
ROUTED_TIERS = ({"leaf", "spine"}, {"leaf", "spine", "core"})
NEIGHBORS = ("mesh", "ring")
DRAGONFLY = "dragonfly_plus"


def inventory(design: Design, request: PlanRequest, at: Mapping[str, Place]) -> str:
    """Return the inventory as YAML. at: host → its place. The cable plans are expected in `cabling/` beside it."""
    hosts = _Hosts(design, request)
    groups = {f"rack_{rack.lower()}": {"hosts": dict.fromkeys(names)} for rack, names in _racks(design, at).items()}
    groups |= {f"leaves_{number}": {"hosts": dict.fromkeys(names)} for number, names in enumerate(hosts.by_leaves(), 1)}
    return inventory_text(
        {
            "all": {
                "vars": {"rdma_fabric": hosts.fabric(), "rdma_rails": [hosts.rail(rail) for rail in range(request.nics_per_host)]},
                "hosts": {host: OneLine(hosts.variables(number)) for number, host in enumerate(design.hosts, 1)},
                "children": groups,
            }
        },
        hosts.notes(),
    )


def _racks(design: Design, at: Mapping[str, Place]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for host in design.hosts:
        found[at[host].rack].append(host)
    return {rack: found[rack] for rack in sorted(found, key=rack_order)}


class _Hosts:
    """The parts of the inventory."""

    def __init__(self, design: Design, request: PlanRequest) -> None:
        self.design, self.request = design, request
        self.switches = {switch.name: switch for switch in design.switches}
        self.infiniband = request.fabric == "infiniband"
        self.tiers = {switch.tier for switch in design.switches}
        self.why_not_routed = "" if self.infiniband else self._why_not_routed()
        self.routed = not self.infiniband and not self.why_not_routed
        #: Host and rail → leaf and port.
        self.port = {(cable.a.node, cable.a.rail): (cable.b.node, cable.b.port) for cable in design.cables if cable.b.node in self.switches}
        highest = max((port for _leaf, port in self.port.values()), default=0)
        self.leaf_bits = min(LARGEST_SUBNET_BITS, 32 - math.ceil(math.log2(PORT_ADDRESSES * (highest + 1))))

    def _why_not_routed(self) -> str:
        """Return why routing is not planned, "" if it is: the tiers, or more switches than a plane has numbers for."""
        if self.design.family == DRAGONFLY:
            return "spines are cabled to each other"
        if self.tiers not in ROUTED_TIERS:
            return "it has no leaves and spines"
        has_cores = "core" in self.tiers
        most = {"spine": CORE_OFFSET if has_cores else LEAF_OFFSET, "core": LEAF_OFFSET - CORE_OFFSET}
        most["leaf"] = 2 ** (32 - LOOPBACK_BITS) - LEAF_OFFSET - 1
        counts = Counter((switch.plane, switch.tier) for switch in self.design.switches)
        over = [f"a plane has {count} {tier}s, at most {most[tier]}" for (_plane, tier), count in counts.items() if count > most[tier]]
        return over[0] if over else ""

    def notes(self) -> list[str]:
        """Return the comments at the beginning."""
        nics = self.request.nics_per_host
        found = [
            f"Proposed by rdma.cluster.plan for {self.design.family}, {len(self.design.hosts)} hosts. Before you use it:",
            f"1. Replace each {FILL_IN} in rdma_rails by the PCI address of that NIC (`lspci -D`): {nics} lines, the same for all hosts.",
            "   Hosts with other addresses need their own rdma_rails.",
            "2. Set ansible_host of each host if DNS does not know its name.",
        ]
        if self.infiniband:
            found.append(
                "3. Check subnet_manager: two hosts run opensm. If a managed switch does, write `kind: switch` instead of `hosts`."
            )
        elif self.routed:
            found.append("3. Check the pools in `routing`: no other network may overlap them. If you change one, change the addresses too.")
        elif self.design.family in NEIGHBORS:
            found.append("3. Plan the addresses of the cables: ansible-playbook rdma.cluster.plan --tags mesh -i THIS_FILE")
        else:
            found.append(
                f"3. Check the addresses of the rails. The switches bridge: routing of this fabric is not planned ({self.why_not_routed})."
            )
        return found

    def fabric(self) -> dict[str, Any]:
        """Return rdma_fabric."""
        if self.design.family in NEIGHBORS:
            return {"topology": "mesh", "planes": {"cables": {}}, "mesh": {"pool": "192.168.0.0/16", "cables": "discover"}}
        return {
            "topology": "single" if self.design.family == "single" else "switched",
            "planes": {name: self._plane(number, name) for number, name in enumerate(self.design.planes)},
        }

    def _plane(self, number: int, name: str) -> dict[str, Any]:
        plane: dict[str, Any] = {"plan": f"cabling/{name}.yml"}
        if "spine" in self.tiers:
            plane["ratio"] = self.request.oversubscription
        if self.infiniband:
            manager: dict[str, Any] = {"hosts": list(self.design.hosts[:2])}
            if len(self.design.planes) > 1:
                manager["subnet_prefix"] = f"0x{0xFEC0000000000000 + number:016x}"
            plane["subnet_manager"] = manager
        elif self.routed:
            loopbacks = ipaddress.IPv4Network((int(LOOPBACK_POOL[0]) + number * 2 ** (32 - LOOPBACK_BITS), LOOPBACK_BITS))
            plane["routing"] = {
                "loopbacks": str(loopbacks), "host_subnets": str(self._pool(number)), "leaf_prefix_length": self.leaf_bits,
            }  # fmt: skip
        return plane

    def _pool(self, plane: int) -> ipaddress.IPv4Network:
        """Return the addresses of the hosts of a routed plane."""
        bits = HOST_POOL.prefixlen + math.ceil(math.log2(len(self.design.planes)))
        return ipaddress.IPv4Network((int(HOST_POOL[0]) + plane * 2 ** (32 - bits), bits))

    def rail(self, rail: int) -> dict[str, Any]:
        """Return a rail, the same for all hosts."""
        plane = "cables" if self.design.family in NEIGHBORS else self.design.planes[rail if len(self.design.planes) > 1 else 0]
        found: dict[str, Any] = {
            "name": f"rail{rail}",
            "nic": OneLine({"pci": FILL_IN}),
            "link_layer": "infiniband" if self.infiniband else "roce",
            "rate_gbps": self.request.nic_gbps,
            "plane": plane,
        }
        if self.routed:
            found |= {"address": f"{{{{ rail_addresses[{rail}] }}}}", "gateway": f"{{{{ rail_gateways[{rail}] }}}}"}
            # The main table can have a route once only. What leaves from the address of another rail uses the table of that rail.
            if rail == 0 or len(self.design.planes) > 1:
                found["routes"] = [str(self._pool(self.design.planes.index(plane)))]
        elif not self.infiniband and self.design.family not in NEIGHBORS:
            found["address"] = f"10.{rail}.{{{{ unit // 256 }}}}.{{{{ unit % 256 }}}}/{RAIL_BITS}"
        return found

    def variables(self, number: int) -> dict[str, Any]:
        """Return what differs between hosts. number: from 1."""
        if not self.routed:
            return {"unit": number}
        host = self.design.hosts[number - 1]
        first = [self._first_address(host, rail) for rail in self.request.rails]
        return {"rail_addresses": [f"{each + 1}/31" for each in first], "rail_gateways": [str(each) for each in first]}

    def _first_address(self, host: str, rail: str) -> ipaddress.IPv4Address:
        """Return the lower address of a port's /31, that of the leaf, as `--tags routing` plans it."""
        leaf, port = self.port[host, rail]
        switch = self.switches[leaf]
        pool = self._pool(self.design.planes.index(switch.plane))
        return pool[(switch.number - 1) * 2 ** (32 - self.leaf_bits) + PORT_ADDRESSES * port]

    def by_leaves(self) -> list[list[str]]:
        """Return the hosts of each set of leaves."""
        leaves: dict[str, set[str]] = defaultdict(set)
        for (host, _rail), (leaf, _port) in self.port.items():
            leaves[host].add(leaf)
        found: dict[frozenset[str], list[str]] = defaultdict(list)
        for host in self.design.hosts:
            if host in leaves:
                found[frozenset(leaves[host])].append(host)
        return list(found.values())
