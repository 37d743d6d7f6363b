# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slurm's host lists: "node[1-4,7]" stands for five names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

#: Only the number at the end of a name is folded: Slurm 22.05 refuses text after a bracket. More digits are a serial number.
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.ASCII | re.DOTALL)


def folded(names: Iterable[str]) -> str:
    """Return names as one host list, in natural order: node1, node2, node3 → "node[1-3]"; node09, node10 → "node[09-10]"."""
    groups: dict[tuple[str, int], list[int]] = {}
    alone: list[str] = []
    split = [(name, _NUMBERED.fullmatch(name)) for name in sorted(set(names), key=lambda name: (natural(name), name))]
    # A width counts only if a name with leading zeros has it: 9 and 10 are one range without them, 09 and 10 one with them.
    padded = {(found[1], len(found[2])) for _name, found in split if found and len(found[2]) > 1 and found[2][0] == "0"}
    for name, found in split:
        if found is None:
            alone.append(name)
            continue
        width = len(found[2]) if (found[1], len(found[2])) in padded else 0
        groups.setdefault((found[1], width), []).append(int(found[2]))
    parts = [_part(prefix, width, numbers) for (prefix, width), numbers in groups.items()]
    return ",".join(sorted([*parts, *alone], key=lambda part: natural(part.replace("[", ""))))


def _part(prefix: str, width: int, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{prefix}{numbers[0]:0{width}d}"
    ranges = (f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}" for first, last in _ranges(sorted(numbers)))
    return f"{prefix}[{','.join(ranges)}]"


def _ranges(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each range without a gap. numbers: sorted."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
