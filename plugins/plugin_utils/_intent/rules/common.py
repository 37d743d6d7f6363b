# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules for a whole intent: conflicts between the values of one host."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, PtpIntent, Rail, TimeIntent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import hint
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.roce_mtu import ROCE_HEADERS_BYTES, rdma_mtu_bytes
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import ADDRESS, KEY, RAILS, VALUE, IntentProblem, where_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.cross import cross_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.fabric import ipoib_problems, partition_problems, plane_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.links import ONE_RAIL, bond_problems, pcp_problems, vlan_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.mesh import mesh_problems, mesh_rail_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.nccl import nccl_rail_problems, nccl_section_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.roce import nccl_problems, rail_problems, roce_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.routing import routing_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import SECTIONS

#: By stack: its required keys, as paths.
NEEDED = {
    "keep": (),
    "inbox": (),
    "doca": ("version", "repository.key", "repository.key_checksum"),
    "mlnx_ofed": ("version", "source", "checksum"),
}
#: Keys that have no effect with any other stack.
OF_ONE = {"source": "mlnx_ofed", "checksum": "mlnx_ofed", "flags": "mlnx_ofed", "repository.url": "doca", "repository.key": "doca"}
WORDS = {
    "version": "a version like '24.10-1.1.4.0' for MLNX_OFED, or a release like '3.2.0' for DOCA",
    "source": "file, host_file or url",
    "checksum": "'sha256:…', as `sha256sum` prints it",
    "repository.key": "file or url",
    "repository.key_checksum": "'sha256:…' of the key's file",
}


def driver_problems(driver: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (key's path below rdma_driver, problem, expected) for a driver section that is valid by itself."""
    stack = driver["stack"]
    for path in NEEDED[stack]:
        if _at(driver, path) is None:
            yield path, f"is missing: {stack} requires it", WORDS[path]
    for path, only in OF_ONE.items():
        if stack != only and _at(driver, path):
            yield path, f"is given, but only the stack {only} reads it", f"nothing, or stack: {only}"
    yield from _version(stack, driver["version"])
    if driver["hold_kernel"] and stack == "inbox":
        yield "hold_kernel", "is true, but the inbox stack is not built for a kernel", "false, or another stack"


def _version(stack: str, version: str | None) -> Iterator[tuple[str, str, str]]:
    if version is None:
        return
    if stack == "keep":
        yield "version", "is given, but `stack: keep` uses the installed version", "nothing, or the stack of that version"
    elif stack == "inbox":
        yield "version", "is given, but the distribution determines the version of the inbox stack", "nothing, or another stack"
    elif (stack == "mlnx_ofed") != ("-" in version):
        yield "version", f"is {version}, which is not a version of {stack}", WORDS["version"]


def _at(driver: Mapping[str, Any], path: str) -> Any:
    value: Any = driver
    for key in path.split("."):
        value = value[key]
    return value


def _gateway_problems(rail: Rail) -> Iterator[tuple[str, str, str]]:
    """Yield (key, message, expected) for the router and the routes of one rail."""
    gateway, routes = rail["gateway"], rail["routes"]
    if gateway is None:
        if routes:
            yield "routes", "is given without a gateway", "a gateway"
        return
    if rail["address"] is None:
        yield "gateway", f"is {gateway}, but the rail has no address", "an address"
        return
    own, router = ipaddress.ip_interface(rail["address"]), ipaddress.ip_address(gateway)
    if router == own.ip:
        yield "gateway", f"is {gateway}, the rail's own address", f"a router in {own.network}"
    elif router.version != own.version:
        yield "gateway", f"is {gateway}, but the rail's address {own} is IPv{own.version}", f"a router in {own.network}"
    elif router not in own.network and not (router.version == 6 and router.is_link_local):
        yield "gateway", f"is {gateway}, which is not in the rail's subnet {own.network}", f"a router in {own.network}"
    for route in routes:
        network = ipaddress.ip_network(route)
        if network.version != own.version:
            yield "routes", f"has {route}, but the rail's address {own} is IPv{own.version}", f"subnets of IPv{own.version}"
        elif network.overlaps(own.network) and network.prefixlen >= own.network.prefixlen:
            yield "routes", f"has {route}, which is in the rail's own subnet {own.network}", "subnets behind the gateway"


def _ptp_problems(time: TimeIntent, ptp: PtpIntent, rails: Sequence[Rail] | None) -> Iterator[tuple[str, str, str]]:
    """Yield (key, message, expected) for rdma_host.time.ptp. rails: None if the rails have problems of their own."""
    if not time["manage"]:
        yield "", "is given, but `manage` is false: chrony takes the time from PTP", "rdma_host.time.manage: true"
    if ptp["rail"] is not None and ptp["interface"] is not None:
        yield "interface", f"is {ptp['interface']}, but a rail is given too", "a rail or an interface"
    elif ptp["rail"] is None and ptp["interface"] is None:
        yield "rail", "is missing, and so is `interface`", "a rail or an interface"
    if ptp["rail"] is not None and rails is not None:
        rail = next((each for each in rails if each["name"] == ptp["rail"]), None)
        if rail is None:
            words = hint(ptp["rail"], [each["name"] for each in rails], "rails")
            yield "rail", f"is {ptp['rail']}, which is not a rail of this host: {words}", words
        elif rail["link_layer"] != "roce":
            yield "rail", f"is {ptp['rail']}, which is InfiniBand: PTP needs Ethernet", "a RoCE rail, or an Ethernet interface"
    if ptp["grandmaster"] is not None and ptp["timestamping"] == "hardware":
        message = f"is {ptp['grandmaster']}, but with hardware time stamps it would give out its NIC's clock, which nothing sets"
        yield "grandmaster", message, "timestamping: software, or another device as the grandmaster"


def _keyed_addresses(rail: Rail) -> list[tuple[str, str]]:
    """Return all addresses of a rail, each with its key."""
    first = [("address", rail["address"])] if rail["address"] is not None else []
    return [*first, *(("addresses", text) for text in rail["addresses"])]


#: The sections with rules of their own, each in a method of Rules.
RULED = (
    "rdma_fabric", "rdma_driver", "rdma_roce", "rdma_partitions", "rdma_nccl", "rdma_gate", "rdma_checks", "rdma_pairs",
    "rdma_collectives", "rdma_host",
)  # fmt: skip


class Rules:
    """Conflicts between the values of one host. A section with other problems is skipped."""

    def __init__(self, intent: Intent, given: Mapping[str, Any], problems: list[IntentProblem]) -> None:
        self.intent, self.given, self.problems = intent, given, problems
        text = "\n".join(problem.where for problem in problems)
        self.sound = {name for name in SECTIONS if name not in text}

    def add(self, where: str, message: str, check: str, expected: str, place: Any = None) -> None:
        self.problems.append(IntentProblem(where, message, check, expected, message, where_of(place)))

    def check(self) -> None:
        if "rdma_rails" in self.sound:
            self.alike("name", RAILS)
            self.alike("nic", RAILS)
            self.rails()
            self.gateways()
            self.further_subnets()
            self.families()
            self.links()
            if "rdma_fabric" in self.sound:
                self.subnets()
                self.planes()
                self.management()
                for index, key, message, expected in mesh_rail_problems(self.intent):
                    self.add(f"rdma_rails[{index}].{key}", message, ADDRESS, expected, self.place(index, key))
        for name in RULED:
            if name in self.sound:
                getattr(self, name.removeprefix("rdma_"))()

    def place(self, index: int, key: str) -> Any:
        """Return a rail's value in the inventory, for its origin."""
        given = self.given["rdma_rails"][index]
        return given.get(key, given)

    def alike(self, key: str, check: str) -> None:
        """Report duplicate names and NICs."""
        seen: dict[str, int] = {}
        for index, rail in enumerate(self.intent["rails"]):
            value = next(iter(rail["nic"].values())) if key == "nic" else rail["name"]
            if value in seen:
                message, expected = f"is {value}, like that of rdma_rails[{seen[value]}]", "a unique value"
                if key == "nic" and (rail["vlan"] is not None or self.intent["rails"][seen[value]]["vlan"] is not None):
                    message, expected = f"{message}: {ONE_RAIL}", "a NIC of its own, or one rail with further `addresses`"
                self.add(f"rdma_rails[{index}].{key}", message, check, expected, self.place(index, key))
            seen.setdefault(value, index)

    def rails(self) -> None:
        """Report RoCE rails without an address, Soft-RoCE rails that are not RoCE, and duplicate addresses."""
        seen: dict[str, str] = {}
        for index, rail in enumerate(self.intent["rails"]):
            where = f"rdma_rails[{index}]"
            if rail["soft"] and rail["link_layer"] != "roce":
                self.add(f"{where}.soft", "is true, but Soft-RoCE is not InfiniBand", RAILS, "link_layer roce", self.place(index, "soft"))
            if "guid" in rail["nic"] and rail["link_layer"] != "infiniband":
                message = f"has a guid, but {rail['name']} is RoCE: name its NIC by pci or mac"
                self.add(f"{where}.nic", message, RAILS, "pci or mac", self.place(index, "nic"))
            if rail["address"] is None:
                if rail["link_layer"] == "roce":
                    self.add(f"{where}.address", f"is missing: {rail['name']} is RoCE", ADDRESS, "an address", self.place(index, "address"))
                elif rail["addresses"]:
                    message = "are given without an address, which comes first"
                    self.add(f"{where}.addresses", message, ADDRESS, "an address", self.place(index, "addresses"))
                continue
            for key, text in _keyed_addresses(rail):
                address = ip_of(text)
                if address in seen:
                    message = f"{'is' if key == 'address' else 'has'} {address}, like that of {seen[address]}"
                    self.add(f"{where}.{key}", message, ADDRESS, "a unique value", self.place(index, key))
                seen.setdefault(address, rail["name"])

    def subnets(self) -> None:
        """Report two rails of a host in one subnet: the kernel would answer and send through any of them (ARP flux)."""
        seen: dict[str, str] = {}
        for index, rail in enumerate(self.intent["rails"]):
            if rail["address"] is None or self.intent["fabric"]["shared_subnet"]:
                continue
            network = str(ipaddress.ip_interface(rail["address"]).network)
            if network in seen:
                message = f"is in {network}, like {seen[network]}; give each rail its own subnet, or set rdma_fabric.shared_subnet"
                self.add(f"rdma_rails[{index}].address", message, ADDRESS, "a subnet of its own", self.place(index, "address"))
            seen.setdefault(network, rail["name"])

    def further_subnets(self) -> None:
        """Report further addresses whose subnet overlaps one of another rail: the rails' tables and rules know only `address`."""
        known = [
            (rail["name"], key, ipaddress.ip_interface(text).network)
            for rail in self.intent["rails"]
            for key, text in _keyed_addresses(rail)
        ]
        for index, rail in enumerate(self.intent["rails"]):
            for text in rail["addresses"]:
                own = ipaddress.ip_interface(text).network
                other = next(((name, each) for name, _owner, each in known if name != rail["name"] and each.overlaps(own)), None)
                if other is not None:
                    message = f"has {text}, whose subnet overlaps {other[1]} of {other[0]}"
                    self.add(f"rdma_rails[{index}].addresses", message, ADDRESS, "a subnet of its own", self.place(index, "addresses"))

    def families(self) -> None:
        """Report RoCE rails of NCCL with IPv4 and others with IPv6: NCCL_IB_ADDR_FAMILY is one for all ports of a host."""
        first: Rail | None = None
        for index, rail in enumerate(self.intent["rails"]):
            if rail["role"] != "compute" or rail["link_layer"] != "roce" or rail["address"] is None:
                continue
            first = first or rail
            if (":" in rail["address"]) != (":" in str(first["address"])):
                message = f"is {rail['address']}, but {first['name']} has {first['address']}: NCCL uses one family for all rails of a host"
                expected = "one family on all compute rails, or role: storage"
                self.add(f"rdma_rails[{index}].address", message, ADDRESS, expected, self.place(index, "address"))

    def gateways(self) -> None:
        """Report routers outside their rail's subnet, routes without a router, and routes that two rails claim."""
        claimed: dict[str, str] = {}
        for index, rail in enumerate(self.intent["rails"]):
            for key, message, expected in _gateway_problems(rail):
                self.add(f"rdma_rails[{index}].{key}", message, ADDRESS, expected, self.place(index, key))
            for route in rail["routes"]:
                other = next((each for each in claimed if ipaddress.ip_network(each).overlaps(ipaddress.ip_network(route))), None)
                if other is not None:
                    message = f"has {route}, which overlaps {other} of {claimed[other]}: the main table cannot use both"
                    self.add(f"rdma_rails[{index}].routes", message, ADDRESS, "subnets of this rail alone", self.place(index, "routes"))
            claimed.update(dict.fromkeys(rail["routes"], rail["name"]))

    def links(self) -> None:
        """Report conflicts of rails on a VLAN or a bond."""
        for index, rail in enumerate(self.intent["rails"]):
            found = [*vlan_problems(rail), *bond_problems(rail, self.intent["rails"])]
            if "rdma_roce" in self.sound:
                found += pcp_problems(rail, self.intent["roce"])
            for path, message, expected in found:
                self.add(f"rdma_rails[{index}].{path}", message, VALUE, expected, self.place(index, path.partition(".")[0]))

    def planes(self) -> None:
        """Report rails on a plane that is not in the fabric, if planes are given."""
        known = self.intent["fabric"]["planes"]
        for index, rail in enumerate(self.intent["rails"]):
            if known and rail["plane"] not in known:
                words = hint(rail["plane"], known, "planes")
                message = f"is {rail['plane']}, which is not in rdma_fabric.planes: {words}"
                self.add(f"rdma_rails[{index}].plane", message, RAILS, words, self.place(index, "plane"))

    def management(self) -> None:
        """Report a management subnet that overlaps the subnet of a rail: the rail would be the management network."""
        given = self.intent["fabric"]["management"] or {}
        if "subnet" not in given:
            return
        subnet = ipaddress.ip_network(given["subnet"])
        for rail in self.intent["rails"]:
            network = ipaddress.ip_interface(rail["address"]).network if rail["address"] is not None else None
            if network is not None and network.version == subnet.version and network.overlaps(subnet):
                message = f"is {subnet}, which overlaps {network} of {rail['name']}: the management network is not a rail"
                place = self.given["rdma_fabric"]["management"]
                self.add("rdma_fabric.management.subnet", message, ADDRESS, "a subnet without rails", place)
                return

    def driver(self) -> None:
        for path, message, expected in driver_problems(self.intent["driver"]):
            self.add(f"rdma_driver.{path}", message, VALUE, expected, self.given.get("rdma_driver"))

    def roce(self) -> None:
        roce = self.intent["roce"]
        if roce is None:
            return
        found = list(roce_problems(roce, self.given["rdma_roce"]))
        if "rdma_rails" in self.sound:
            found += rail_problems(self.intent["rails"], roce)
        for path, message, expected in found:
            self.add(f"rdma_roce.{path}", message, VALUE, expected, self.given["rdma_roce"])
        if {"rdma_rails", "rdma_nccl"} <= self.sound:
            for name, message, expected in nccl_problems(self.intent):
                self.add(f"rdma_nccl.variables.{name}", message, VALUE, expected, _key(self.given["rdma_nccl"]["variables"], name))

    def fabric(self) -> None:
        stack = self.intent["driver"]["stack"] if "rdma_driver" in self.sound else None
        fabric, rails = self.intent["fabric"], self.intent["rails"] if "rdma_rails" in self.sound else []
        for path, message, expected in (*plane_problems(fabric["planes"], stack), *routing_problems(fabric, rails)):
            self.add(f"rdma_fabric.{path}", message, VALUE, expected, self.given.get("rdma_fabric"))
        for path, message, expected in mesh_problems(self.intent["fabric"]):
            self.add(f"rdma_fabric.{path}", message, VALUE, expected, value_at(self.given["rdma_fabric"], path))

    def partitions(self) -> None:
        planes = self.intent["fabric"]["planes"] if "rdma_fabric" in self.sound else None
        for path, message, expected in partition_problems(self.intent["partitions"], planes):
            self.add(f"rdma_partitions.{path}", message, VALUE, expected, _key(self.given["rdma_partitions"], path.split(".")[0]))
        if "rdma_rails" in self.sound:
            for path, message, expected in ipoib_problems(self.intent):
                self.add(f"rdma_rails{path}", message, VALUE, expected, self.given["rdma_rails"])

    def nccl(self) -> None:
        found = list(nccl_section_problems(self.intent["nccl"]))
        if {"rdma_rails", "rdma_fabric"} <= self.sound:
            found += nccl_rail_problems(self.intent)
        for path, message, expected in found:
            self.add(f"rdma_nccl.{path}", message, VALUE, expected, _key(self.given["rdma_nccl"], path.split(".")[0]))

    def host(self) -> None:
        time = self.intent["host"]["time"]
        if time["ptp"] is None:
            return
        given = self.given["rdma_host"]["time"]["ptp"]
        for key, message, expected in _ptp_problems(time, time["ptp"], self.intent["rails"] if "rdma_rails" in self.sound else None):
            where = ".".join(filter(None, ("rdma_host.time.ptp", key)))
            self.add(where, message, VALUE, expected, given.get(key, given))

    def gate(self) -> None:
        gate, where = self.intent["gate"], "rdma_gate.max_failed_percent"
        if gate["policy"] == "quarantine" and gate["max_failed_percent"] is None:
            self.add(where, "is missing: the policy quarantine needs a limit", KEY, "a percentage", self.given["rdma_gate"])
        if gate["policy"] == "stop" and gate["max_failed_percent"]:
            message = f"is {gate['max_failed_percent']:g}, but the policy stop means 0; only the policy quarantine has a limit"
            self.add(where, message, VALUE, "0, or the policy quarantine", self.given["rdma_gate"])

    def checks(self) -> None:
        known_checks = all_checks() if self.intent["checks"] else {}
        for name, rule in self.intent["checks"].items():
            place = _key(self.given["rdma_checks"], name)
            if name not in known_checks:
                words = hint(name, known_checks, "checks")
                self.add(f"rdma_checks.{name}", f"is not a check of this collection: {words}", KEY, words, place)
            elif known_checks[name].fixed:
                self.add(f"rdma_checks.{name}", "is a check that cannot be changed", VALUE, "another check", place)
            elif rule["threshold"] is not None and not known_checks[name].threshold:
                known = ", ".join(each for each, check in known_checks.items() if check.threshold)
                message = "is given, but this check has no threshold"
                self.add(f"rdma_checks.{name}.threshold", message, VALUE, f"a check with a threshold: {known}", place)
            for key in ("reason", "until"):
                if rule["silenced_by"] is not None and rule[key] is None:
                    where = f"rdma_checks.{name}.{key}"
                    message = "is missing: a silenced check needs a reason and an end date"
                    self.add(where, message, KEY, key, self.given["rdma_checks"][name])

    def pairs(self) -> None:
        pairs = self.intent["pairs"]
        if pairs["fail_below"] > pairs["warn_below"]:
            message = f"is {pairs['fail_below']:g}, which is more than warn_below, {pairs['warn_below']:g}"
            self.add("rdma_pairs.fail_below", message, VALUE, "at most warn_below", self.given.get("rdma_pairs"))
        if self.sound >= {"rdma_rails", "rdma_fabric"}:
            for path, message, expected in cross_problems(self.intent):
                self.add(f"rdma_pairs.{path}", message, VALUE, expected, self.given.get("rdma_pairs"))
        mtu_bytes = pairs["mtu_bytes"]
        if mtu_bytes is not None and mtu_bytes & (mtu_bytes - 1):
            place = self.given.get("rdma_pairs")
            self.add("rdma_pairs.mtu_bytes", f"is {mtu_bytes}, which is not an RDMA MTU", VALUE, "a power of two from 256 to 4096", place)
        elif mtu_bytes is not None and "rdma_rails" in self.sound:
            self.carried(mtu_bytes)

    def collectives(self) -> None:
        """Report conflicting sizes of a run; a size that is not given has a default."""
        given, sizes = self.given.get("rdma_collectives") or {}, self.intent["collectives"]
        if sizes["min_bytes"] <= sizes["max_bytes"]:
            return
        low, high = ("min_bytes", sizes["min_bytes"]), ("max_bytes", sizes["max_bytes"])
        (name, size), (other, limit), relation = (low, high, "more") if given.get("min_bytes") else (high, low, "less")
        default = "" if given.get(other) else " by default"
        message = f"is {size}, which is {relation} than {other}, {limit}{default}"
        expected = f"min_bytes of at most {sizes['max_bytes']}, or max_bytes of at least {sizes['min_bytes']}"
        self.add(f"rdma_collectives.{name}", message, VALUE, expected, given.get(name))

    def carried(self, mtu_bytes: int) -> None:
        """Report an RDMA MTU that the interface of a RoCE rail cannot carry; Soft-RoCE has its own headers."""
        for rail in self.intent["rails"]:
            if rail["mtu_bytes"] is None:
                # The interface keeps its MTU: network.rdma_mtu judges that.
                continue
            most = rdma_mtu_bytes(rail["mtu_bytes"])
            if rail["link_layer"] == "roce" and not rail["soft"] and (most is None or most < mtu_bytes):
                message = f"is {mtu_bytes}, but {rail['name']} has an MTU of {rail['mtu_bytes']}, which carries {most or 'no RoCE'}"
                expected = f"an MTU of at least {mtu_bytes + ROCE_HEADERS_BYTES} on each RoCE rail, or a smaller one here"
                self.add("rdma_pairs.mtu_bytes", message, VALUE, expected, self.given.get("rdma_pairs"))
                return


def value_at(given: Any, path: str) -> Any:
    """Return the value at a path, "mesh.cables[1][0]", in the inventory, for its origin."""
    for word in re.findall(r"\w+", path):
        given = given[int(word)] if isinstance(given, list) else given[word]
    return given


def _key(given: Mapping[Any, Any], name: str) -> Any:
    """Return a key in the inventory, for its origin."""
    return next((each for each in given if each == name), name)
