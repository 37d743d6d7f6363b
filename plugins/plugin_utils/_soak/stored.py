# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The soak that is not finished, beside the runs (soak/soak.json in rdma_run_dir), and its slices in the folders of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RUN_ID, RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.slices import FILE, Slices, read_slices

STATE = "../soak/soak.json"
SCHEMA = 1
#: A stopped soak goes on in the next run; a finished one does not.
RUNNING, STOPPED, FINISHED = "running", "stopped", "finished"


@dataclass(frozen=True)
class Soak:
    """A soak. runs: the IDs of the runs that have measured it, the first one is also its name. basis: as in basis_of.

    at: when it was last changed, in seconds since 1970. why: why it stopped or finished. sweep: the measurement that may still run on the
    hosts, "" if none does.
    """

    runs: tuple[str, ...]
    basis: str
    at: float
    state: str = RUNNING
    why: str = ""
    sweep: str = ""

    @property
    def name(self) -> str:
        return self.runs[0]


def read(folder: RunFolder) -> Soak | None:
    """Return the last soak of rdma_run_dir; None without one. Raises ParseError."""
    kept = folder.read_if_there(STATE)
    if not isinstance(kept, Mapping) or kept.get("schema") != SCHEMA:
        return None
    try:
        soak = Soak(**{**{name: value for name, value in kept.items() if name != "schema"}, "runs": tuple(kept["runs"])})
        if not soak.runs or not all(RUN_ID.fullmatch(run) for run in soak.runs) or not isinstance(soak.at, (int, float)):
            raise ValueError("its runs or its time")
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"{STATE[3:]} beside the runs is not a record of a soak ({error}). Remove it, then run again.") from error
    return soak


def write(folder: RunFolder, soak: Soak, now: float, **changes: Any) -> Soak:
    """Keep a soak with some changes, and return it. now: in seconds since 1970."""
    changed = replace(soak, at=now, **changes)
    folder.write_json(STATE, {"schema": SCHEMA, **asdict(changed)})
    return changed


def begin(folder: RunFolder, run: str, basis: str, now: float, *, max_age_hours: float) -> tuple[Soak, str]:
    """Return the soak that this run continues, or a new one, and a sentence about that. Nothing is written. run: the ID of this run."""
    earlier = read(folder)
    new = Soak((run,), basis, now)
    if earlier is None or earlier.state == FINISHED:
        return new, "A new soak begins."
    if earlier.basis != basis:
        return new, f"A new soak begins: that of run {earlier.name} is not finished, and has other hosts or another rdma_soak."
    if now - earlier.at > max_age_hours * 3600:
        return new, f"A new soak begins: that of run {earlier.name} is not finished, and older than {max_age_hours:g} h."
    runs = earlier.runs if run in earlier.runs else (*earlier.runs, run)
    return replace(earlier, runs=runs, state=RUNNING, why=""), f"The soak of run {earlier.name} goes on."


def slices_of(folder: RunFolder, soak: Soak) -> Slices:
    """Return the finished slices of a soak from the folders of its runs. A run whose folder was removed is missing. Raises ParseError."""
    return read_slices(_files(folder, soak))


def _files(folder: RunFolder, soak: Soak) -> Iterator[list[str]]:
    for run in soak.runs:
        path = folder.path.parent / run / FILE
        if path.exists():
            yield path.read_text(encoding="utf-8", errors="replace").splitlines()
