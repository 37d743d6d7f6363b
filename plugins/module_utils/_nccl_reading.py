# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NCCL reads from a value: numbers as by strtoll with base 0, distances, and lists of algorithms and protocols.

Sources: src/misc/param.cc, src/graph/paths.cc, src/graph/tuning.cc of NCCL 2.30.7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._nccl_variable import is_older

#: How far apart NIC and GPU, or two GPUs, may be; case counts (src/graph/topo.cc).
LEVELS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
#: By the number that stood for each; a greater one is the last (src/graph/paths.cc).
OLD_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
COLLECTIVES = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
ALGORITHM_NAMES = ("ring", "tree", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat")
PROTOCOL_NAMES = ("ll", "ll128", "simple")
#: From here on NCCL takes its default for a number without digits (tried with 2.30.7, 2.31.2 and 2.32.3).
DIGITS_SINCE = "2.32.3"
_LEADING = re.compile(r"[ \t\n\v\f\r]*([+-]?)(0[xX][0-9a-fA-F]{1,64}|[0-9]{1,64})")
_LIMIT = 2**63


@dataclass(frozen=True)
class Selection:
    """A part of NCCL_ALGO or NCCL_PROTO. collective: in lower case, "" for all; excluded: all but these; names: in lower case."""

    collective: str
    excluded: bool
    names: tuple[str, ...]


def read_number(value: str | None, version: str | None = None) -> int | None:
    """The number that NCCL takes from a value; None where it takes its default: nothing set, too large, or, since 2.32, no digit."""
    if not value:
        return None
    found = _LEADING.match(value)
    if found is None:
        return 0 if is_older(version, DIGITS_SINCE) else None
    sign, digits = found.groups()
    if digits[:2] in ("0x", "0X"):
        number = int(digits, 16)
    elif digits.startswith("0"):
        octal = re.match(r"[0-7]+", digits)
        number = int(octal[0], 8) if octal else 0
    else:
        number = int(digits)
    number = -number if sign == "-" else number
    return number if -_LIMIT <= number < _LIMIT else None


def read_level(value: str | None) -> str | None:
    """The name of the distance that a value of NCCL_NET_GDR_LEVEL or NCCL_P2P_LEVEL means; None where NCCL takes its default."""
    if value in LEVELS:
        return value
    if not value or not "0" <= value[0] <= "9":
        return None
    return OLD_LEVELS[min(read_number(value) or 0, len(OLD_LEVELS) - 1)]


def parse_selections(value: str) -> list[Selection]:
    """NCCL_ALGO and NCCL_PROTO: "ring,tree;allreduce:^tree". Empty parts are left out, as by strtok (src/graph/tuning.cc, parseList)."""
    selections = []
    for part in filter(None, value.split(";")):
        fields = [field for field in part.split(":") if field]
        collective, names = (fields[0], fields[1]) if len(fields) > 1 else ("", fields[0] if fields else "")
        excluded = names.startswith("^")
        words = (names[1:] if excluded else names).lower().split(",")
        selections.append(Selection(collective.lower(), excluded, tuple(filter(None, words))))
    return selections
