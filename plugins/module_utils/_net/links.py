# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces that rails have beside their NIC. VLANs: how the kernel reports them, and the steps that create, correct and remove them.

Sources: net/8021q/vlanproc.c of Linux (/proc/net/vlan/NAME), ip-link(8), and ip/iplink_vlan.c of iproute2 (`ip -j -d link show`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import Bond, SeenBond
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ipv4_of, ipv6_of
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import Step

VLANS = "/proc/net/vlan"
#: IFNAMSIZ of linux/if.h, less the final zero.
NAME_BYTES = 15
#: The priorities of packets inside the kernel (SO_PRIORITY) that a VLAN translates to PCP.
PRIORITIES = range(8)
#: The beginnings of commands that create or remove an interface.
MAKES = (("ip", "link", "add"), ("ip", "link", "delete"))
LINK_GOES = "removes an interface with its addresses and GIDs"
_HEAD = re.compile(r"^\S+[ \t]+VID:[ \t]*([0-9]{1,4})\b", re.MULTILINE)
_DEVICE = re.compile(r"^Device:[ \t]*(\S+)[ \t]*$", re.MULTILINE)
_EGRESS = re.compile(r"^[ \t]*EGRESS priority mappings:[ \t]*([0-9: \t]*)$", re.MULTILINE)
#: The name of a VLAN in a file of ours: of systemd-networkd, NetworkManager, and netplan.
_MADE = (
    re.compile(r"^\[NetDev\]\nName=(\S+)$", re.MULTILINE),
    re.compile(r"^type=(?:vlan|bond)\n(?:.*\n)*?interface-name=(\S+)$", re.MULTILINE),
    re.compile(r"^  (?:vlans|bonds):\n    (\S+):$", re.MULTILINE),
)


@dataclass(frozen=True)
class SeenVlan:
    """A VLAN interface of a host. parent: the interface that carries its frames; egress: kernel priority → PCP, only those that are set."""

    parent: str
    id: int
    egress: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Vlan:
    """A planned VLAN. parent: the NIC's interface; pcp: the priority in the tag of all its frames, None leaves it as it is."""

    parent: str
    id: int
    pcp: int | None = None

    @property
    def egress(self) -> dict[str, int]:
        """Return kernel priority → PCP, as planned; empty if nothing is."""
        return {} if self.pcp is None else {str(each): self.pcp for each in PRIORITIES}

    def is_that(self, seen: SeenVlan | LiveLink) -> bool:
        """Return whether a VLAN of the host is this one: with the same number, on the same interface."""
        return (seen.parent, seen.id) == (self.parent, self.id)

    def egress_differs(self, egress: Mapping[str, int]) -> bool:
        """Return whether a map that the kernel reports is another one than planned. The kernel omits priorities that have PCP 0."""
        return self.pcp is not None and egress != {priority: pcp for priority, pcp in self.egress.items() if pcp}

    def add_command(self, name: str) -> tuple[str, ...]:
        """Return the command that creates its interface."""
        argv = ("ip", "link", "add", "link", self.parent, "name", name, "type", "vlan", "id", str(self.id))
        return (*argv, *_egress_words(self.egress))

    @property
    def words(self) -> str:
        return f"VLAN {self.id} on {self.parent}" + (f" with PCP {self.pcp}" if self.pcp is not None else "")


@dataclass(frozen=True)
class Link:
    """What an interface has to do with others.

    vlan: it is a VLAN; bond: it is a bond. vlans: the VLANs that it carries for a rail; master: the bond that it is a member of.
    """

    vlan: Vlan | None = None
    bond: Bond | None = None
    vlans: tuple[str, ...] = ()
    master: str | None = None

    @property
    def is_made(self) -> bool:
        """Whether the interface has no NIC of its own: a network manager, or `ip link add`, makes it."""
        return self.vlan is not None or self.bond is not None


#: An ordinary NIC.
NO_LINK = Link()


def vlan_name(parent: str, rail: str, vlan_id: int) -> str:
    """Return the name of a rail's VLAN interface: "ens1.100"; "rail0.100" if the first one is longer than the kernel allows."""
    name = f"{parent}.{vlan_id}"
    return name if len(name) <= NAME_BYTES else f"{rail}.{vlan_id}"


def find_vlan(parent: str, vlan_id: int, vlans: Mapping[str, SeenVlan] | None) -> str | None:
    """Return the interface that already has this VLAN of a NIC, whatever its name: the kernel allows only one."""
    return next((name for name, each in (vlans or {}).items() if (each.parent, each.id) == (parent, vlan_id)), None)


def interfaces_below(name: str, vlans: Mapping[str, SeenVlan] | None, bonds: Mapping[str, SeenBond] | None) -> list[str]:
    """Return an interface and those that carry its frames: of a VLAN what it is on, also another VLAN, and of a bond its members.

    Below any other interface, and if the VLANs are unknown: its name without the suffix of a VLAN or partition, "ib0.8001" → "ib0".
    """
    found = [name]
    for each in found:
        if vlans and each in vlans:
            below = [vlans[each].parent]
        elif bonds and each in bonds:
            below = list(bonds[each].members)
        else:
            below = [each.partition(".")[0]]
        found += [lower for lower in dict.fromkeys(below) if lower not in found]
    return found


def parse_vlan(text: str) -> SeenVlan:
    """Parse /proc/net/vlan/NAME. Raises ParseError."""
    head, device, egress = _HEAD.search(text), _DEVICE.search(text), _EGRESS.search(text)
    if head is None or device is None or egress is None:
        raise ParseError(f"not a VLAN: {quoted(text)}, expected lines with 'VID: 100', 'Device: ens1' and 'EGRESS priority mappings: 0:3'")
    pairs = [each.partition(":") for each in egress[1].split()]
    return SeenVlan(device[1], int(head[1]), {priority: int(pcp) for priority, _colon, pcp in pairs if pcp and int(pcp)})


def read_vlans(sys: SysRoot) -> dict[str, SeenVlan] | None:
    """Return the VLAN interfaces by name; None if they may not be read. Without the module 8021q there are none."""
    try:
        found = {name: sys.value(f"{VLANS}/{name}", parse_vlan) for name in sys.list_dir(VLANS) if name != "config"}
    except PermissionError:
        return None
    return {name: vlan for name, vlan in found.items() if vlan is not None}


@dataclass(frozen=True)
class LiveLink:
    """An interface as `ip -j -d link show` prints it. kind: "vlan", None for a NIC; up: whether it is administratively up."""

    kind: str | None
    parent: str | None
    id: int | None
    egress: dict[str, int]
    up: bool


def parse_link(text: str) -> LiveLink:
    """Parse `ip -j -d link show dev NAME`. Raises ParseError."""
    try:
        shown = next(each for each in json.loads(text) if each)
        info = shown.get("linkinfo") or {}
        data: Mapping[str, Any] = info.get("info_data") or {}
        egress = {str(each["from"]): int(each["to"]) for each in data.get("egress_qos") or () if each["to"]}
        return LiveLink(info.get("info_kind"), shown.get("link"), data.get("id"), egress, "UP" in shown["flags"])
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as exc:
        raise ParseError(f"ip -j -d link: not an interface: {quoted(text)}") from exc


def read_link(name: str, runner: Runner) -> LiveLink | None:
    """Return an interface as it is now; None if it does not exist."""
    done = runner.run(["ip", "-j", "-d", "link", "show", "dev", name])
    return parse_link(done.stdout) if done.rc == 0 else None


def link_steps(name: str, link: Link, runner: Runner, *, planned: str) -> list[Step]:
    """Return the steps that create or correct a VLAN, or set a bond up; none for a NIC. planned: what it gets later, in words.

    Raises ApplyError if another interface has its name.
    """
    if not link.is_made:
        return []
    seen = read_link(name, runner)
    up = Step(name, f"{name} is down", f"{name} is up", ("ip", "link", "set", "dev", name, "up"))
    if link.bond is not None:
        return _bond_up(name, link.bond, seen, up, planned)
    return _vlan_steps(name, link.vlan, seen, up, planned) if link.vlan is not None else []


def _vlan_steps(name: str, vlan: Vlan, seen: LiveLink | None, up: Step, planned: str) -> list[Step]:
    """Return the steps that create or correct a VLAN, and set it up. Raises ApplyError if another interface has its name."""
    if seen is None:
        return [Step(name, f"no {name}", f"{vlan.words}{planned}", vlan.add_command(name)), up]
    if seen.kind != "vlan" or not vlan.is_that(seen):
        raise ApplyError(
            f"{name} exists, but it is not VLAN {vlan.id} on {vlan.parent}: `ip -d link show {name}` shows what it is. "
            f"1. Rename or remove it. 2. Run the network stage again."
        )
    found = []
    if vlan.egress_differs(seen.egress):
        argv = ("ip", "link", "set", "dev", name, "type", "vlan", *_egress_words(vlan.egress))
        found.append(Step(name, egress_text(seen.egress), egress_text(vlan.egress), argv))
    return [*found, *([] if seen.up else [up])]


def _bond_up(name: str, bond: Bond, seen: LiveLink | None, up: Step, planned: str) -> list[Step]:
    """Return the step that sets a bond up: its first member makes it. Raises ApplyError if another interface has its name."""
    if seen is None:
        return [replace(up, was=f"no {name}", planned=f"{bond.words}{planned}")]
    if seen.kind != "bond":
        raise ApplyError(f"{name} exists, but it is not a bond. 1. Rename or remove it. 2. Run the network stage again.")
    return [] if seen.up else [up]


def egress_text(egress: Mapping[str, int]) -> str:
    """Return a map in words: "PCP 3", "PCP 3 for the priorities 0 and 2", "PCP 0"."""
    groups: dict[int, list[str]] = {}
    for priority, pcp in sorted(egress.items()):
        groups.setdefault(pcp, []).append(priority)
    if not groups:
        return "PCP 0"
    if len(groups) == 1 and len(egress) == len(PRIORITIES):
        return f"PCP {next(iter(groups))}"
    return ", ".join(f"PCP {pcp} for the priorities {', '.join(which)}" for pcp, which in groups.items())


def _egress_words(egress: Mapping[str, int]) -> tuple[str, ...]:
    return ("egress-qos-map", *(f"{priority}:{pcp}" for priority, pcp in egress.items())) if egress else ()


def made_names(text: str) -> list[str]:
    """Return the interfaces that a file of ours makes."""
    return [name for pattern in _MADE for name in pattern.findall(text)]


def removal_steps(names: Collection[str], addresses: Collection[str], runner: Runner) -> tuple[list[Step], dict[str, list[str]]]:
    """Return the steps that delete interfaces which our files made before, and those that must stay: name → addresses of others on it.

    addresses: those that our files gave them.
    """
    steps, stay = [], {}
    for name in names:
        seen = addresses_of(name, runner)
        if seen is None:
            continue
        others = [text for text in seen if text not in addresses]
        if others:
            stay[name] = others
        else:
            steps.append(Step(name, f"interface {name}", f"no {name}", ("ip", "link", "delete", "dev", name), LINK_GOES))
    return steps, stay


def addresses_of(name: str, runner: Runner) -> list[str] | None:
    """Return the IPv4 addresses of an interface, and the global ones of IPv6 that somebody has set; None if it does not exist."""
    done = runner.run(["ip", "-j", "address", "show", "dev", name])
    if done.rc:
        return None
    entries: Sequence[Mapping[str, Any]] = [each for each in json.loads(done.stdout) if each]
    return [text for each in entries for text in (*ipv4_of(each["addr_info"]), *ipv6_of(each["addr_info"], state="static"))]
