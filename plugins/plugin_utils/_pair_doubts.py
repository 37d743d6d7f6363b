# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What findings on a plane under load put in doubt: ports that are not proven, so that the next run puts load on the plane again."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding

#: (host, rail)
Port = tuple[str, str]


@dataclass(frozen=True)
class Doubt:
    """A finding, and the ports whose load shows what it says. below: those that hang on what it names; around: all that could have."""

    finding: Finding
    below: frozenset[Port] = frozenset()
    around: frozenset[Port] = frozenset()

    def ports(self, tried: Set[Port]) -> frozenset[Port]:
        """Those of the ports that a run has measured (tried) which have to be measured again: below what is named, if any are."""
        return (self.below & tried) or (self.around & tried)


def in_doubt(doubts: Iterable[Doubt], tried: Set[Port]) -> frozenset[Port]:
    """The ports that all of these put in doubt together. tried: what this run has measured; other ports were not under its load."""
    return frozenset[Port]().union(*(each.ports(tried) for each in doubts))
