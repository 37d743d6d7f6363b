# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules that compare NCCL's lists of devices and interfaces with those of the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import DeviceList, Entry, parse_list, used_ports
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import Case, Violation, take_out
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules import GID, Rule

HCA = "NCCL_IB_HCA"
INTERFACES = "NCCL_SOCKET_IFNAME"
#: The name prefixes of interfaces that no other host reaches.
WITHIN_HOST = ("docker", "br-", "veth", "virbr", "cni", "cali", "flannel", "podman", "lxcbr", "lxdbr", "dummy")
_READ = "Read the host with rdma.cluster.rdma_facts."


def devices_not_known(case: Case) -> Iterator[Violation]:
    if case.value(HCA) and case.facts.get("devices") is None:
        yield Violation((HCA,), "the facts have no devices", "devices to compare with", _READ)


def hca_missing(case: Case) -> Iterator[Violation]:
    devices, listed = _devices(case), _hca(case)
    if devices is None or listed is None:
        return
    missing = [str(entry) for entry in listed.entries if not _ports(entry, listed, devices)]
    if missing:
        observed = f"{case.words(HCA)}: {', '.join(missing)} not found; the host has {_names(devices)}"
        severity = WARNING if listed.excluded else None
        yield Violation((HCA,), observed, "existing devices and ports", f"Correct {HCA} in {case.places(HCA)}.", severity)


def hca_prefix(case: Case) -> Iterator[Violation]:
    devices, listed = _devices(case), _hca(case)
    if devices is None or listed is None or listed.exact:
        return
    listed_names = {entry.name for entry in listed.entries}
    for entry in listed.entries:
        more = [name for name in sorted(devices) if name.startswith(entry.name) and name not in listed_names]
        if entry.name in devices and more:
            observed = f"{case.words(HCA)}: {entry.name} also means {', '.join(more)}"
            sign = "^=" if listed.excluded else "="
            yield Violation((HCA,), observed, "whole names, after a =", f"Write {HCA}={sign}{_body(listed)} in {case.places(HCA)}.")


def hca_unused(case: Case) -> Iterator[Violation]:
    devices, listed = _devices(case), _hca(case)
    if devices is None or listed is None:
        return
    there = any(_ports(entry, listed, devices) for entry in listed.entries)
    if (there or listed.excluded) and not used_ports(devices, listed):
        states = ", ".join(
            f"{name}/{number} is {port['state'] or 'in an unknown state'}"
            for name, device in sorted(devices.items())
            for number, port in sorted(device["ports"].items())
        )
        observed = f"{case.words(HCA)} leaves no ACTIVE port: {states or 'there is no device'}"
        yield Violation((HCA,), observed, "an ACTIVE port", "Run the link stage. Its gate shows why a port is not ACTIVE.")


def hca_left_out(case: Case) -> Iterator[Violation]:
    devices = _devices(case)
    used = {name for name, _port in used_ports(devices, _hca(case))} if devices is not None else set()
    wrong = [f"{name} ({case.plan.leave_out[name]})" for name in sorted(used & set(case.plan.leave_out))]
    if wrong:
        observed = f"{case.words(HCA)}: NCCL uses {', '.join(wrong)}"
        expected = "devices of compute rails only"
        yield Violation((HCA,), observed, expected, f"List the devices of the compute rails in {HCA}, after a =.")


def hca_mixed(case: Case) -> Iterator[Violation]:
    devices = _devices(case) or {}
    kinds: dict[str, list[str]] = {}
    for name, number in used_ports(devices, _hca(case)):
        kinds.setdefault(str(devices[name]["ports"][number]["link_layer"]), []).append(f"{name}/{number}")
    if len(kinds) > 1:
        seen = "; ".join(f"{kind}: {', '.join(ports)}" for kind, ports in sorted(kinds.items()))
        yield Violation(
            (HCA,), f"{case.words(HCA)}: {seen}", "ports of one link layer", f"List the ports of one link layer in {HCA}, after a =."
        )


def gid_index_missing(case: Case) -> Iterator[Violation]:
    devices, index = _devices(case), case.number(GID)
    if devices is None or index is None or index < 0:
        return
    without = [
        f"{name}/{number}"
        for name, number in used_ports(devices, _hca(case))
        if _is_roce(devices[name]["ports"][number]) and not _has_gid(devices[name]["ports"][number], index)
    ]
    if without:
        observed = f"{case.words(GID)}: {', '.join(without)} has no RoCE v2 GID of an IP address there"
        remedy = "Find it with `show_gids` or `rdma link show`, or use NCCL 2.21 or newer."
        yield Violation((GID,), observed, "such a GID on every port", remedy)


def interface_missing(case: Case) -> Iterator[Violation]:
    """Yield missing interfaces. Only checked with all interfaces: the list of NICs has no bonds, VLANs and bridges."""
    value, there = case.value(INTERFACES), case.facts.get("interfaces")
    if value is None or len(value) < 2 or there is None:
        return
    listed = parse_list(value)
    if any(listed.has(name) for name in there):
        return
    observed = f"{case.words(INTERFACES)}: not found; the host has {_names(there)}"
    yield Violation((INTERFACES,), observed, "an existing interface", f"Correct {INTERFACES} in {case.places(INTERFACES)}.")


def interface_inside(case: Case) -> Iterator[Violation]:
    """Yield interfaces within a host: loopback, and the bridges and ends of containers and virtual machines."""
    inside = [name for name in _interfaces(case) if name == "lo" or name.startswith(WITHIN_HOST)]
    if inside and len(inside) == len(_interfaces(case)):
        observed = f"{case.words(INTERFACES)}: {_names(inside)} does not lead to other hosts"
        remedy = f"Set an interface that the other hosts can reach in {case.places(INTERFACES)}; `ip -br address` lists them."
        yield Violation((INTERFACES,), observed, "an interface that leads to the other hosts", remedy)


def interface_of_rail(case: Case) -> Iterator[Violation]:
    rails = [f"{name} ({case.plan.rail_interfaces[name]})" for name in _interfaces(case) if name in case.plan.rail_interfaces]
    if rails:
        observed = f"{case.words(INTERFACES)}: job setup traffic uses the data plane, {_names(rails)}"
        remedy = f"Set {INTERFACES} to the management interface in {case.places(INTERFACES)}, if the other hosts can reach it."
        yield Violation((INTERFACES,), observed, "an interface that is not a rail", remedy)


def _interfaces(case: Case) -> list[str]:
    """Return the host's interfaces in NCCL_SOCKET_IFNAME; none of a list that excludes."""
    value, there = case.value(INTERFACES), case.facts.get("interfaces")
    listed = parse_list(value) if value else None
    if listed is None or listed.excluded or not there:
        return []
    return [name for name in sorted(there) if listed.has(name)]


def collnet_on_roce(case: Case) -> Iterator[Violation]:
    name, devices = "NCCL_COLLNET_ENABLE", _devices(case)
    if not case.number(name) or devices is None:
        return
    used = used_ports(devices, _hca(case))
    if used and all(_is_roce(devices[device]["ports"][port]) for device, port in used):
        observed = f"{case.words(name)}, and every port is RoCE"
        yield Violation((name,), observed, "InfiniBand, whose switches reduce (SHARP)", take_out(case, [name]))


def _devices(case: Case) -> Mapping[str, Any] | None:
    devices: Mapping[str, Any] | None = case.facts.get("devices")
    return devices


def _hca(case: Case) -> DeviceList | None:
    value = case.value(HCA)
    return parse_list(value) if value is not None else None


def _ports(entry: Entry, listed: DeviceList, devices: Mapping[str, Any]) -> list[str]:
    """Return the ports, in any state, that an entry matches."""
    return [
        f"{name}/{number}"
        for name, device in devices.items()
        for number in device["ports"]
        if listed.named(entry, name) and entry.port in (None, int(number))
    ]


def _body(listed: DeviceList) -> str:
    return ",".join(str(entry) for entry in listed.entries)


def _names(names: Mapping[str, Any] | list[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _is_roce(port: Mapping[str, Any]) -> bool:
    return bool(port["link_layer"] == "Ethernet")


def _has_gid(port: Mapping[str, Any], index: int) -> bool:
    return index in (port.get("rocev2") or {}).values()


DEVICE_RULES = (
    Rule("devices_not_known", UNKNOWN, devices_not_known),
    Rule("hca_missing", ERROR, hca_missing),
    Rule("hca_prefix", ERROR, hca_prefix),
    Rule("hca_unused", ERROR, hca_unused),
    Rule("hca_left_out", ERROR, hca_left_out),
    Rule("hca_mixed", ERROR, hca_mixed),
    Rule("gid_index_missing", ERROR, gid_index_missing),
    Rule("interface_missing", ERROR, interface_missing),
    Rule("interface_inside", ERROR, interface_inside),
    Rule("interface_of_rail", WARNING, interface_of_rail),
    Rule("collnet_on_roce", ERROR, collnet_on_roce),
)
