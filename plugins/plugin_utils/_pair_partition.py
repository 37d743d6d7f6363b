# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partition that an InfiniBand port is measured in: ports reach one another only in one of which both are members, one of them full.

Limited members do not reach each other (IBTA, 10.9.3). A queue pair takes one entry of its port's table, the first unless it is told
another one, and that is the default partition, in which everybody is limited as soon as tenants are kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.rdma.cluster.plugins.module_utils._partitions_conf import DEFAULT_KEY, FULL_BIT


class Place(NamedTuple):
    """pkey: of 15 bits; pkey_index: where the port's table has it. Both are None where there are no partitions, or no table was read."""

    pkey: int | None
    pkey_index: int | None


NO_PARTITION = Place(None, None)


def partition_place(port: Mapping[str, Any], intent: Mapping[str, Any]) -> Place | None:
    """The partition that a port is measured in, None if it is a full member of none. port: of the facts; intent: normalised.

    Of several the default one comes first, then those of rdma_partitions in their order, then the rest by their keys: the order is the
    same on every host, whatever the order of its table.
    """
    table = port.get("pkeys")
    if table is None:
        return NO_PARTITION
    full = {key & ~FULL_BIT: int(index) for index, key in reversed(list(table.items())) if key & FULL_BIT}
    named = [partition["key"] for partition in intent["partitions"].values()]
    order = [*([] if DEFAULT_KEY in named else [DEFAULT_KEY]), *named, *sorted(full)]
    return next((Place(key, full[key]) for key in order if key in full), None)


def limited_places(port: Mapping[str, Any]) -> dict[int, int]:
    """The partitions of which a port is a limited member: key of 15 bits → where its table has it. port: of the facts."""
    return {key: int(index) for index, key in reversed(list((port.get("pkeys") or {}).items())) if not key & FULL_BIT}


def limited_only(port: Mapping[str, Any], intent: Mapping[str, Any]) -> str:
    """Why a port cannot be measured, if it is that it reaches no port like itself; "" else."""
    if partition_place(port, intent) is not None:
        return ""
    keys = ", ".join(f"0x{key:04x}" for key in port["pkeys"].values()) or "nothing"
    return f"its port is a full member of no partition (its table has {keys}), and limited members do not reach one another"


def partition_words(pkey: int | None) -> str:
    """ "partition 0x8001", as tools print the key of a full member; "" of none."""
    return "" if pkey is None else f"partition 0x{pkey | FULL_BIT:04x}"
