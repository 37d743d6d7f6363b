# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a soak: which hosts meet in each slice, for how long they transfer data, and what that means for the hosts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, SoakIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import duration_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import make_plan, tests_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import plan_meetings, planned_meetings, rail_schedules

#: The plan of all pairs, in the run folder.
FILE = "soak/plan.json"
#: The pairs of a rail that are listed; FILE has all.
MOST_LISTED = 60
#: The starts of transfers are spread over this share of the idle time. The rest is for starting and collecting them.
SPREAD = 0.8
#: Multiples of it are spread evenly between 0 and 1, so that no fault of a fixed period falls between all transfers.
GOLDEN = (math.sqrt(5) - 1) / 2


def hours_of(settings: SoakIntent, given: float | None) -> float:
    """Return for how many hours a soak measures. given: rdma_soak_hours, None if it is not set."""
    return float(settings["hours"] if given is None else given)


def transfer_seconds(settings: SoakIntent) -> int:
    """Return for how long each pair transfers data in a slice."""
    return max(1, settings["slice_seconds"] * settings["duty_percent"] // 100)


def offset_seconds(settings: SoakIntent, number: int) -> float:
    """Return when the transfers of a slice begin, after its start."""
    idle = settings["slice_seconds"] - transfer_seconds(settings)
    return idle * SPREAD * (number * GOLDEN % 1)


def plan_of_all(fleet: Fleet, intent: Intent, settings: SoakIntent, forks: int) -> dict[str, Any]:
    """Return a plan of the pair runner in which all hosts of each rail meet. Each slice makes one round of it, see plan_of_slice."""
    seconds = transfer_seconds(settings)
    changes = {"iterations": None, "duration_seconds": seconds, "latency_command": "none", "gpu_memory": False}
    # A fault that drops only what a port receives shows nothing while the port sends.
    of_pairs = {**intent["pairs"], **changes, "bidirectional": True}
    tests = tests_of({**intent, "pairs": of_pairs})[:1]  # type: ignore[typeddict-item]
    schedule = {"kind": "full"}
    return make_plan("soak", hosts=fleet.hosts, rails=fleet.rails, of=fleet.endpoints, tests=tests, schedule=schedule, forks=forks)


def plan_of_slice(base: Mapping[str, Any], sweep: str, number: int, present: Collection[str]) -> dict[str, Any]:
    """Return the plan of a slice: on each rail the next round of the base plan, so that a port has one partner.

    After all rounds they begin again with swapped roles. present: the hosts that may take part.
    """
    listed = []
    for each in rail_schedules(base):
        turn, place = divmod(number, each.schedule.rounds) if each.schedule.rounds else (0, 0)
        pairs = [list(pair) for pair in each.pairs(place)] if each.schedule.rounds else []
        there = [pair[::-1] if turn % 2 else pair for pair in pairs if all(base["hosts"][host] in present for host in pair)]
        listed.append([there])
    return {**base, "sweep": sweep, "schedule": {"kind": "meetings", "rails": listed}}


def hosts_of_slice(plan: Mapping[str, Any]) -> list[str]:
    """Return the hosts that meet another one in a slice."""
    met = {host for _rail, _round, *ends in planned_meetings(plan) for host in ends}
    return [host for number, host in enumerate(plan["hosts"]) if number in met]


def basis_of(base: Mapping[str, Any], settings: SoakIntent) -> str:
    """Return a hash of what the slices of one soak have in common: hosts, rails, test, length and load."""
    rails = [rail["name"] for rail in base["rails"]]
    data = [base["hosts"], rails, base["tests"], settings["slice_seconds"], settings["duty_percent"]]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def plan_text(base: Mapping[str, Any], settings: SoakIntent, left_seconds: float, hours: float) -> str:
    """Return the load of a soak for a person: times, every host with its ports, and the pairs. left_seconds: of its hours."""
    slices, seconds = math.ceil(left_seconds / settings["slice_seconds"]), transfer_seconds(settings)
    lines = [
        f"The soak measures for {hours:g} h; {duration_words(left_seconds)} are left, about {slices} slices of "
        f"{settings['slice_seconds']} s. In each slice a port transfers data with one partner, both ways, for {seconds} s "
        f"({base['tests'][0]['command']}).",
        f"It makes {plan_meetings(base)} pairs of {len(base['hosts'])} hosts in turn:",
    ]
    for position, (rail, each) in enumerate(zip(base["rails"], rail_schedules(base), strict=True)):
        pairs = [f"{base['hosts'][server]}-{base['hosts'][client]}" for server, client in _pairs(base, position)]
        more = each.schedule.meetings - len(pairs)
        rest = f" and {more} more ({FILE} in the run folder)" if more > 0 else ""
        rounds = each.schedule.rounds
        lines.append(f"{rail['name']}: {', '.join(pairs) or 'no pair'}{rest}; all of them in {rounds} slices.")
    lines += [f"{host}: {', '.join(ports)}" for host, ports in _ports(base).items()]
    return "\n".join(lines)


def _pairs(base: Mapping[str, Any], position: int) -> Sequence[tuple[int, int]]:
    of_rail = ((server, client) for rail, _round, server, client in planned_meetings(base) if rail == position)
    return list(islice(of_rail, MOST_LISTED))


def _ports(base: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return host → its ports in words."""
    found: dict[str, list[str]] = {host: [] for host in base["hosts"]}
    for rail in base["rails"]:
        for host, address, profile in zip(base["hosts"], rail["addresses"], rail["profiles"], strict=True):
            if address is not None:
                device = base["profiles"][profile]
                found[host].append(f"{rail['name']} {device['device']}/{device['port']} at {address}")
    return found
