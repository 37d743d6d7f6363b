# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bonds of NICs: how the kernel reports them, and the steps that make one.

Sources: drivers/net/bonding/bond_procfs.c of Linux (/proc/net/bonding/NAME), Documentation/networking/bonding.rst, ip-link(8).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import Step

BONDS = "/proc/net/bonding"
PREFIX = "bond-"
LACP, ACTIVE_BACKUP = MODES = ("802.3ad", "active-backup")
HASHES = ("layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4")
#: How often the carrier of the members is looked at.
MONITOR_MS = 100
TAKES_DOWN = "takes the NIC down to make it a member of a bond"
#: The partner of a member that hears no LACP.
NO_PARTNER = "00:00:00:00:00:00"
#: The text of /proc for a mode → its name, as `ip` and network managers know it.
_MODES = {
    "IEEE 802.3ad Dynamic link aggregation": LACP,
    "fault-tolerance (active-backup)": ACTIVE_BACKUP,
    "load balancing (round-robin)": "balance-rr",
    "load balancing (xor)": "balance-xor",
    "fault-tolerance (broadcast)": "broadcast",
    "transmit load balancing": "balance-tlb",
    "adaptive load balancing": "balance-alb",
}
_LINE = re.compile(r"^[ \t]*([A-Za-z0-9][^:\n]*): *(.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class SeenMember:
    """A member. up: its carrier as the bond sees it; mac: its own, which the bond's hides; aggregator, partner: None without LACP."""

    up: bool
    mac: str | None = None
    aggregator: int | None = None
    partner: str | None = None


@dataclass(frozen=True)
class SeenBond:
    """A bond of a host. mode: "802.3ad"; hash_policy: "layer3+4", None in a mode without one; lacp_rate: "fast", None without LACP."""

    mode: str
    hash_policy: str | None = None
    lacp_rate: str | None = None
    members: dict[str, SeenMember] = field(default_factory=dict)


@dataclass(frozen=True)
class Bond:
    """A planned bond. lacp_rate, hash_policy: of 802.3ad alone; members: the names of their interfaces."""

    mode: str
    lacp_rate: str
    hash_policy: str
    members: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        more = f" with LACP rate {self.lacp_rate} and hash {self.hash_policy}" if self.mode == LACP else ""
        return f"bond of {', '.join(self.members)} in mode {self.mode}{more}"

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Return the options that the mode has, with their names in the kernel."""
        mode = (("mode", self.mode), ("miimon", str(MONITOR_MS)))
        return (*mode, ("lacp_rate", self.lacp_rate), ("xmit_hash_policy", self.hash_policy)) if self.mode == LACP else mode

    def add_command(self, name: str) -> tuple[str, ...]:
        """Return the command that creates its interface."""
        return ("ip", "link", "add", "name", name, "type", "bond", *(word for option in self.options for word in option))


def bond_name(rail: str) -> str:
    """Return the name of a bond that the collection makes for a rail."""
    return f"{PREFIX}{rail}"


def find_bond(members: Collection[str], bonds: Mapping[str, SeenBond] | None) -> str | None:
    """Return the bond that has exactly these members; None if there is none."""
    return next((name for name, bond in (bonds or {}).items() if members and set(bond.members) == set(members)), None)


def parse_bond(text: str) -> SeenBond:
    """Parse /proc/net/bonding/NAME. Raises ParseError."""
    head, *parts = text.split("\nSlave Interface: ")
    own = _values(head)
    mode = own.get("Bonding Mode", "").split(" (fail_over_mac")[0]
    if mode not in _MODES:
        raise ParseError(f"not a bond: {quoted(text)}, expected a line 'Bonding Mode: IEEE 802.3ad Dynamic link aggregation'")
    policy = own.get("Transmit Hash Policy")
    members = dict(_member(part) for part in parts)
    return SeenBond(_MODES[mode], policy.split(" ")[0] if policy else None, own.get("LACP rate"), members)


def _member(part: str) -> tuple[str, SeenMember]:
    name, _newline, text = part.partition("\n")
    own, _head, partner = text.partition("details partner lacp pdu:")
    values, of_partner = _values(own), _values(partner)
    if "MII Status" not in values:
        raise ParseError(f"not a member of a bond: {quoted(part)}, expected a line 'MII Status: up'")
    aggregator, mac = values.get("Aggregator ID", ""), values.get("Permanent HW addr")
    return name.strip(), SeenMember(
        up=values["MII Status"] == "up",
        mac=mac.lower() if mac else None,
        aggregator=int(aggregator) if aggregator.isdecimal() else None,
        partner=of_partner["system mac address"].lower() if "system mac address" in of_partner else None,
    )


def _values(text: str) -> dict[str, str]:
    """Return the first value of each key."""
    found: dict[str, str] = {}
    for key, value in _LINE.findall(text):
        found.setdefault(key.strip(), value)
    return found


def read_bonds(sys: SysRoot) -> dict[str, SeenBond] | None:
    """Return the bonds by name; None if they may not be read. Without the module bonding there are none."""
    try:
        found = {name: sys.value(f"{BONDS}/{name}", parse_bond) for name in sys.list_dir(BONDS)}
    except PermissionError:
        return None
    return {name: bond for name, bond in found.items() if bond is not None}


def bond_differences(bond: Bond, seen: SeenBond) -> list[tuple[str, str]]:
    """Return the differences in the options of a bond as texts (current, planned)."""
    found = [(f"mode {seen.mode}", f"mode {bond.mode}")] if seen.mode != bond.mode else []
    if bond.mode == LACP and seen.mode == LACP:
        if seen.hash_policy != bond.hash_policy:
            found.append((f"hash {seen.hash_policy}", f"hash {bond.hash_policy}"))
        if seen.lacp_rate != bond.lacp_rate:
            found.append((f"LACP rate {seen.lacp_rate}", f"LACP rate {bond.lacp_rate}"))
    return found


def bond_steps(name: str, bond: Bond, seen: SeenBond | None) -> list[Step]:
    """Return the steps that create a bond without members. Options of an existing one are not changed: network.bond reports them."""
    if seen is not None:
        return []
    return [Step(name, f"no {name}", bond.words, bond.add_command(name), TAKES_DOWN)]


def member_steps(name: str, master: str, seen: SeenBond | None) -> list[Step]:
    """Return the steps that make an interface a member of a bond: the kernel takes only one that is down, and sets it up itself."""
    if seen is not None and name in seen.members:
        return []
    down, join = ("ip", "link", "set", "dev", name, "down"), ("ip", "link", "set", "dev", name, "master", master)
    return [
        Step(name, f"{name} on its own", f"{name} down, to join {master}", down, TAKES_DOWN),
        Step(name, f"{name} outside {master}", f"{name} in {master}", join, TAKES_DOWN),
    ]
