# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One of NCCL's variables: its values, its versions, and its effect."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

#: The type of a variable: 0 or 1 as a number; a number; TRUE or FALSE; one of several words; a list of words, after a ^ all others; one of
#: several numbers; the maximum distance of NIC and GPU; anything.
SWITCH, INTEGER, BOOL, CHOICE, WORDS, NUMBERS, LEVEL, TEXT = "switch", "integer", "bool", "choice", "words", "numbers", "level", "text"
#: A path; RDMA devices; interfaces; a subnet; AUTO, ALL or MAX:n; words joined by |; algorithms and protocols, each by collective or not.
PATH, DEVICES, INTERFACES, SUBNET = "path", "devices", "interfaces", "subnet"
DEVPOLICY, POLICIES, ALGORITHMS, PROTOCOLS = "devpolicy", "policies", "algorithms", "protocols"
#: Read by no current version.
GONE = "gone"
#: Variables that may differ between hosts: they name the host's devices, or are indexes into its tables.
OF_HOST = frozenset(
    ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_IB_PKEY", "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_TOPO_FILE", "UCX_NET_DEVICES")
)
_VERSION = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?")


@dataclass(frozen=True)
class Variable:
    """A variable by its whole name.

    default: the value without a setting, in words or as the value; meaning: its effect, in a few words. since: the first version ("2.21.5")
    that reads it, "" if older than the oldest public source (2.3.5); until: the first that no longer does, "" if all later ones do. low,
    high: of a number, both included, None without a limit; choices: the valid words or numbers; exact: whether their case counts.
    debugging: documented as for tests only; deprecated: still read, but replaced by instead.
    """

    name: str
    kind: str
    default: str
    meaning: str
    since: str = ""
    until: str = ""
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    exact: bool = False
    debugging: bool = False
    deprecated: bool = False
    instead: str = ""


def switch(name: str, default: str, meaning: str, **more: Any) -> Variable:
    return Variable(name, SWITCH, default, meaning, low=0, high=1, **more)


def integer(name: str, low: int | None, high: int | None, default: str, meaning: str, **more: Any) -> Variable:
    return Variable(name, INTEGER, default, meaning, low=low, high=high, **more)


def yes_or_no(name: str, default: str, meaning: str, **more: Any) -> Variable:
    """Return a variable that is read as a number before 2.30, and as 0, 1, T, F, TRUE or FALSE since."""
    return Variable(name, BOOL, default, meaning, **more)


def choice(name: str, choices: str, default: str, meaning: str, **more: Any) -> Variable:
    return Variable(name, CHOICE, default, meaning, choices=tuple(choices.split()), **more)


def words(name: str, choices: str, default: str, meaning: str, **more: Any) -> Variable:
    return Variable(name, WORDS, default, meaning, choices=tuple(choices.split()), **more)


def numbers(name: str, choices: str, default: str, meaning: str, **more: Any) -> Variable:
    return Variable(name, NUMBERS, default, meaning, choices=tuple(choices.split()), **more)


def text(name: str, default: str, meaning: str, **more: Any) -> Variable:
    return Variable(name, TEXT, default, meaning, **more)


def path(name: str, default: str, meaning: str, **more: Any) -> Variable:
    return Variable(name, PATH, default, meaning, **more)


def gone(name: str, until: str, *, since: str = "", instead: str = "") -> Variable:
    return Variable(name, GONE, "not set", "nothing any more", since=since, until=until, instead=instead)


def version_numbers(version: str | None) -> tuple[int, ...] | None:
    """Return "2.21.5" or "2.21" as numbers, without any suffix; None for None and for an invalid version."""
    found = _VERSION.match(version or "")
    return tuple(int(part) for part in found.groups() if part is not None) if found else None


def is_older(version: str | None, than: str) -> bool:
    """Return whether a version is certainly older: "2.21" may be 2.21.5, and None anything."""
    have, wanted = version_numbers(version), version_numbers(than)
    return have is not None and wanted is not None and have < wanted[: len(have)]


def is_at_least(version: str | None, than: str) -> bool:
    """Return whether a version is certainly not older; "2.21" is taken as the newest 2.21."""
    return version_numbers(version) is not None and not is_older(version, than)
