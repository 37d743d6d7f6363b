# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A soak in the run folder: its start, each slice, and its result. Times are those of the control node, in seconds since 1970."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import SoakIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import REFUSED
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak import stored
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.judge import Tally, tallies, worst_first
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.plan import FILE as PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.plan import basis_of, offset_seconds, plan_of_slice
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.slices import FILE, SliceEnd, Slices, ports_of, to_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.stored import FINISHED, STOPPED, Soak

#: The files of the slice that is measured, which the next one replaces. The times of the slices: "done", the end of the last one, and
#: "starts" and "ends" of the current one, as planned.
SLICE, WINDOW = "soak/slice", "soak/window.json"
RESULTS = "soak/results.json"
FEWEST_HOSTS = 2


def begin(
    folder: RunFolder, base: Mapping[str, Any], settings: SoakIntent, now: float, *, max_age_hours: float, dry: bool
) -> tuple[Slices, str]:
    """Begin a soak in this run, or continue the one that is not finished. Returns its slices so far, and a sentence about that.

    base: the plan of all pairs. dry: keep only the plan.
    """
    soak, words = stored.begin(folder, folder.path.name, basis_of(base, settings), now, max_age_hours=max_age_hours)
    folder.write_json(PLAN, base)
    if not dry:
        stored.write(folder, soak, now, sweep="")
        folder.write_json(WINDOW, {"done": now})
    return stored.slices_of(folder, soak), words


class RunningSoak:
    """The soak of this run. settings: of the intent. hours: how long it measures."""

    def __init__(self, folder: RunFolder, settings: SoakIntent, hours: float) -> None:
        self.folder, self.settings, self.hours = folder, settings, hours
        found = stored.read(folder)
        if found is None or found.runs[-1] != folder.path.name:
            raise ValueError("no soak has begun in this run")
        self.soak: Soak = found
        self.slices = stored.slices_of(folder, found)

    @property
    def number(self) -> int:
        """Return the number of the next slice."""
        return self.slices.next_number

    def over(self, present: Collection[str], now: float) -> str:
        """Return why there is no further slice, "" if there is one, and keep the reason. present: the hosts that are still in the play.

        A soak that has not used up its budget goes on in the next run.
        """
        if self.soak.state == stored.RUNNING:
            budget = self._budget()
            few = f"only {len(present)} of its hosts can be measured" if len(present) < FEWEST_HOSTS else ""
            if budget or few:
                self.soak = stored.write(self.folder, self.soak, now, state=FINISHED if budget else STOPPED, why=budget or few)
        return self.soak.why

    def _budget(self) -> str:
        """Return which part of the budget is used up, in words; "" if none is."""
        if self.slices.seconds >= self.hours * 3600:
            return f"its {self.hours:g} h are over"
        most = self.settings["stop_at_errors"]
        found = worst_first(self.tallies()) if most is not None else []
        for (rail, host), tally in found:
            if most is not None and tally.errors >= most:
                return f"{rail} of {host} has {tally.errors} errors (rdma_soak.stop_at_errors: {most})"
        return ""

    def tallies(self) -> dict[tuple[str, str], Tally]:
        """Return the tally of each port so far."""
        return tallies(self.slices.ports)

    def next_slice(self, now: float, present: Collection[str]) -> tuple[dict[str, Any], float]:
        """Return the plan of the next slice and how long to wait before it, in seconds, and keep its name.

        The files of the slice before it are removed.
        """
        window = self.folder.read_if_there(WINDOW) or {}
        begins = max(now, float(window.get("ends", now)))
        starts = begins + offset_seconds(self.settings, self.number)
        times = {"done": float(window.get("done", now)), "starts": starts, "ends": begins + self.settings["slice_seconds"]}
        self.folder.write_json(WINDOW, times)
        shutil.rmtree(self.folder.path / SLICE, ignore_errors=True)
        sweep = f"{self.folder.path.name}-soak-{self.number}"
        self.soak = stored.write(self.folder, self.soak, now, sweep=sweep)
        plan = plan_of_slice(self.folder.read_json(PLAN), sweep, self.number, present)
        return plan, starts - now

    def record(self, now: float) -> str:
        """Keep the slice that was measured. Returns why the soak stops, "" if it does not: a host was in use."""
        plan, window = self.folder.read_json(f"{SLICE}/plan.json"), self.folder.read_json(WINDOW)
        counters = {host: self.folder.read_if_there(self.folder.host_file(SLICE, host, ".counters.json")) for host in plan["hosts"]}
        results = {host: self._results(host) for host in plan["hosts"]}
        ports = ports_of(self.number, window["starts"], plan, counters, results)
        end = SliceEnd(self.number, window["starts"], max(0.0, now - window["done"]))
        self.folder.append_lines(FILE, to_lines(ports, end), durable=True)
        self.folder.write_json(WINDOW, {**window, "done": now})
        refused = {host: self.folder.read_if_there(self.folder.host_file(SLICE, host, REFUSED)) for host in plan["hosts"]}
        words = "; ".join(f"{host} is in use: {each['in_use']}" for host, each in refused.items() if each is not None)
        self.soak = stored.write(self.folder, self.soak, now, sweep="", **({"state": STOPPED, "why": words} if words else {}))
        return words

    def _results(self, host: str) -> list[str]:
        path = self.folder.path / self.folder.host_file(SLICE, host, ".jsonl")
        return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []

    def write_results(self, found: Mapping[tuple[str, str], Tally]) -> None:
        """Write the statistics of all ports to soak/results.json."""
        ports = [
            {"host": host, "rail": rail, **asdict(tally), "errors": tally.errors, "per_billion_packets": tally.interval}
            for (rail, host), tally in sorted(found.items(), key=lambda item: json.dumps(item[0]))
        ]
        head = {"schema": 1, "soak": asdict(self.soak), "seconds": self.slices.seconds, "slices": len(self.slices.ends)}
        self.folder.write_json(RESULTS, {**head, "ports": ports})
