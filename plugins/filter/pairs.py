# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that returns the rounds of pairwise measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import make_schedule, pairs_of_round

Rounds = list[list[dict[str, str]]]


def pair_rounds(
    hosts: Sequence[str], schedule: str = "full", partners: int = 8, seed: int = 0, against: Sequence[str] | None = None
) -> Rounds:
    """Return the rounds of a schedule over hosts, each as pairs {server, client}. Raises ValueError.

    against: the proven hosts with which the others are measured, for the schedule `against`.
    """
    if len(set(hosts)) != len(hosts):
        raise ValueError("pair_rounds: a host is listed twice")
    proven = list(against or [])
    strangers = [host for host in proven if host not in hosts]
    if strangers:
        raise ValueError(f"pair_rounds: against has names that are not in the list of hosts: {', '.join(strangers)}")
    known = set(proven)
    order = [*(host for host in hosts if host not in known), *proven]
    wanted = {"kind": schedule, "partners": partners, "seed": seed}
    made = make_schedule(wanted, len(order), len(order) - len(proven))
    return [
        [{"server": order[server], "client": order[client]} for server, client in pairs_of_round(made, number)]
        for number in range(made.rounds)
    ]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"pair_rounds": pair_rounds}
