# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A hostfile of MPI or another launcher: its hosts in order, and the same lines in another order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.hostnames import short

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?")
#: A host can be followed by slots ("node1 slots=8", "node1:8").
_END = re.compile(r"[\s:]")
MOST_LINES = 100_000


class HostfileError(ValueError):
    """The hostfile cannot be used. The message has the line, the reason and what to do."""


@dataclass(frozen=True)
class Hostfile:
    """The hosts in order, and their lines. unknown: names that are not in the play."""

    order: tuple[str, ...]
    lines: Mapping[str, str]
    unknown: tuple[str, ...]

    def text(self, order: Sequence[str]) -> str:
        """Return the same lines in another order. Lines of unknown hosts are last."""
        return "".join(f"{self.lines[name]}\n" for name in (*order, *self.unknown))


def read_hostfile(lines: Iterable[str], names: Mapping[str, str]) -> Hostfile:
    """Return the hosts of a hostfile. names: name in logs and files → host of the inventory. Raises HostfileError."""
    order: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for number, raw in enumerate(lines, start=1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        name = _END.split(line)[0]
        if number > MOST_LINES or _HOST.fullmatch(name) is None:
            raise HostfileError(f"line {number} of the hostfile starts with {ascii(name)[:80]}, expected the name of a host")
        host = names.get(name) or names.get(short(name))
        if host in order or name in unknown:
            raise HostfileError(f"line {number} of the hostfile has {name} again: write one line for each host, with its slots")
        if host is None:
            unknown[name] = line
        else:
            order[host] = line
    return Hostfile(tuple(order), {**order, **unknown}, tuple(unknown))
