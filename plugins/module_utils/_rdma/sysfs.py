# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ports in /sys/class/infiniband, and their texts, as drivers/infiniband/core/sysfs.c of Linux prints them.

Every parser takes the text of one file and raises ParseError, quoting it, for a text of another form.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

CLASS = "/sys/class/infiniband"

_NUMBERED = re.compile(r"[0-9]{1,10}: ?(\S.*)")
# "Gb" in any case: some drivers without a rate print "0 GB/sec".
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) [Gg][Bb]/sec(?: \(([0-9]{1,3})X(?: ([A-Z]+[0-9]*))?\))?")
_COUNTER = re.compile(r"[0-9]{1,20}")
_LID = re.compile(r"0x[0-9a-fA-F]{1,8}|[0-9]{1,10}")
_PKEY = re.compile(r"0x[0-9a-fA-F]{4}")
_GUID = re.compile(r"[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}|0x[0-9a-fA-F]{16}")
_GID_EXAMPLE = "fe80:0000:0000:0000:0002:c903:00f9:bfa1"
_UNKNOWN = ("<unknown>", "UNKNOWN")
_UNASSIGNED_LIDS = (0, 0xFFFF)


def port_folders(sys: SysRoot, devices: Iterable[str]) -> list[tuple[str, str]]:
    """Return name ("mlx5_0/1") and folder of each port of these devices."""
    folders = [(device, f"{CLASS}/{device}/ports") for device in devices]
    return [(f"{device}/{port}", f"{folder}/{port}") for device, folder in folders for port in sys.list_dir(folder)]


@dataclass(frozen=True)
class Rate:
    """What a port negotiated: gbps of 10^9 bit/s over all lanes, the number of lanes, and the speed of a lane.

    speed is the kernel's word ("EDR", "FDR10"). It is None where the kernel printed none: kernels before 5.6
    print neither SDR nor a speed that they do not know. width is None where no lanes are named.
    """

    gbps: float
    width: int | None
    speed: str | None


@dataclass(frozen=True)
class GidAddress:
    """A GID in the kernel's form (eight groups of four digits), and its IPv4 address if it maps one."""

    gid: str
    ipv4: str | None

    @property
    def has_interface_id(self) -> bool:
        """Whether the lower half is set. InfiniBand fills the prefix into unused entries and leaves the lower half zero."""
        return bool(self.gid[20:].strip("0:"))


def parse_state(text: str) -> str | None:
    """Parse ports/N/state, "4: ACTIVE" -> "ACTIVE"; None if the kernel itself prints unknown."""
    return _numbered(text, "port state", "4: ACTIVE")


def parse_physical_state(text: str) -> str | None:
    """Parse ports/N/phys_state, "5: LinkUp" -> "LinkUp"; None if the kernel itself prints unknown."""
    return _numbered(text, "physical port state", "5: LinkUp")


def parse_node_type(text: str) -> str | None:
    """Parse node_type, "1: CA" -> "CA", "4: RNIC" -> "RNIC"."""
    return _numbered(text, "node type", "1: CA")


def parse_rate(text: str) -> Rate:
    """Parse ports/N/rate, "100 Gb/sec (4X EDR)" -> Rate(100.0, 4, "EDR"); also "10 Gb/sec (4X)" and "0 GB/sec"."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise _error("rate", text, "100 Gb/sec (4X EDR)")
    gbps, width, speed = match.groups()
    return Rate(float(gbps), int(width) if width else None, speed)


def parse_lid(text: str) -> int | None:
    """Parse ports/N/lid and sm_lid, "0x3a4" -> 932; None for 0 and 0xffff, which no port can have: it has no LID yet."""
    if _LID.fullmatch(text.strip()) is None:
        raise _error("LID", text, "0x3a4")
    lid = int(text.strip(), 16 if "x" in text else 10)
    return None if lid in _UNASSIGNED_LIDS else lid


def parse_guid(text: str) -> str | None:
    """Parse node_guid and sys_image_guid, as "0002:c903:00f9:bfa0" in lower case; None for the all-zero one (not set)."""
    if _GUID.fullmatch(text.strip()) is None:
        raise _error("GUID", text, "0002:c903:00f9:bfa0")
    digits = text.strip().lower().replace("0x", "").replace(":", "")
    return None if digits.strip("0") == "" else ":".join(digits[at : at + 4] for at in range(0, 16, 4))


def parse_gid(text: str) -> GidAddress:
    """Parse ports/N/gids/I, normalized; "0000:...:ffff:0a0a:0102" (or "::ffff:10.10.1.2") has the IPv4 address 10.10.1.2."""
    try:
        address = ipaddress.IPv6Address(text.strip())
    except ValueError as exc:
        raise _error("GID", text, _GID_EXAMPLE) from exc
    if address.scope_id is not None:
        raise _error("GID", text, _GID_EXAMPLE)
    digits = format(int(address), "032x")
    gid = ":".join(digits[at : at + 4] for at in range(0, 32, 4))
    return GidAddress(gid, str(address.ipv4_mapped) if address.ipv4_mapped is not None else None)


def global_ipv6(gid: str) -> str | None:
    """Return the IPv6 address of a GID in compressed text, "2001:db8:100::1"; None for a link-local one, and for one that maps IPv4."""
    address = ipaddress.IPv6Address(gid)
    return None if address.is_link_local or address.ipv4_mapped is not None else str(address)


def parse_pkey(text: str) -> int:
    """Parse ports/N/pkeys/I, "0xffff" -> 65535: the bit 0x8000 is full membership; 0 is an unused entry."""
    if _PKEY.fullmatch(text.strip()) is None:
        raise _error("P_Key", text, "0xffff")
    return int(text.strip(), 16)


def parse_counter(text: str) -> int | None:
    """Parse counters/* and hw_counters/*; None for "N/A (no PMA)" (iWARP has no performance management).

    The unit is the counter's own: port_xmit_data and port_rcv_data count words of four bytes.
    """
    value = text.strip()
    if value == "N/A" or value.startswith("N/A ("):
        return None
    if _COUNTER.fullmatch(value) is None:
        raise _error("counter", text, "42")
    return int(value)


def _numbered(text: str, what: str, example: str) -> str | None:
    match = _NUMBERED.fullmatch(text.strip())
    if match is None:
        raise _error(what, text, example)
    return None if match.group(1) in _UNKNOWN else match.group(1)


def _error(what: str, text: str, example: str) -> ParseError:
    return ParseError(f"not a {what}: {quoted(text)}, expected the form {example!r}")
