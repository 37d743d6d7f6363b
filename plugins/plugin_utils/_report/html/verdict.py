# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first lines of the report: is the cluster good, what stops the build, and what is to blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.causes import names
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run

GOOD, BAD, PARTIAL, NOTHING = "good", "bad", "partial", "nothing"
#: Causes that the first lines name, and characters that they quote of each.
SHOWN, QUOTED = 5, 140


@dataclass(frozen=True)
class Verdict:
    """kind: GOOD, BAD, PARTIAL or NOTHING; headline: one sentence; stops: what stops the build; blame: hosts, ports and planes, and why."""

    kind: str
    headline: str
    stops: str
    blame: Sequence[str]


def verdict_of(run: Run) -> Verdict:
    """Return the verdict. Only a run that has ended, has judged hosts, and has no error or unknown is GOOD."""
    causes = [each for each in run.bad if each.caused_by is None] or run.bad
    blame = _blame(causes)
    if run.summary is None:
        stage, hosts = run.stopped_at
        where = (
            f"stopped in {stage} at {names(hosts)}" if hosts else f"stopped after {stage}" if stage else "stopped before the first stage"
        )
        why = "The run has no end: it was killed, or it is still running. What it did not reach is not known."
        return Verdict(PARTIAL, f"Partial: {where}", why, blame or ["Unknown: the run did not end."])
    failed = [host for host in (*run.summary.get("failed", ()), *run.summary.get("unreachable", ())) if isinstance(host, str)]
    if run.bad or failed or run.outcome in ("failed", "unreachable"):
        stages = list(dict.fromkeys(each.stage for each in causes))
        counted = _counted(causes) if causes else f"{len(failed)} hosts failed or were unreachable"
        stops = _stops(run, stages) if causes else "A task failed, or a host was unreachable. See the output of the run."
        return Verdict(BAD, f"Not good: {counted}", stops, blame or [names(sorted(set(failed)))])
    if run.outcome == "drifted":
        count = run.summary.get("drift", 0)
        return Verdict(BAD, f"Drifted: {count} settings differ from the intent", "Nothing stops the build, which would apply them.", [])
    if not any(each.status in (OK, WARNING) for each in run.findings):
        return Verdict(NOTHING, "No verdict: no gate judged a host", "The run had no stage with a gate, or nothing was applicable.", [])
    warnings = sum(each.status == WARNING and each.silenced_by is None for each in run.findings)
    more = f", with {warnings} warning{'s' if warnings > 1 else ''}" if warnings else ""
    return Verdict(
        GOOD, f"Good: {_many(len(run.hosts), 'host')} passed all gates of this run{more}", f"Nothing. Stages: {', '.join(run.stages)}.", []
    )


def _stops(run: Run, stages: list[str]) -> str:
    ended = [stage for stage in stages if run.gate(stage).get("stops")]
    if ended:
        return f"The gate of the {ended[0]} stage stops the build."
    return f"Errors of {', '.join(stages)}. The policy of the gate did not end the run there."


def _counted(causes: list[Finding]) -> str:
    errors = sum(each.status == "error" for each in causes)
    unknowns = len(causes) - errors
    parts = [*([_many(errors, "error")] if errors else []), *([f"{unknowns} unknown"] if unknowns else [])]
    return f"{' and '.join(parts)} on {_many(len({each.host for each in causes}), 'host or plane', 'hosts or planes')}"


def _many(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _blame(causes: list[Finding]) -> list[str]:
    """Each cause once: the hosts that share it, the subject, and what was seen."""
    shared: dict[tuple[str, str, str], list[str]] = {}
    for each in causes:
        shared.setdefault((each.check, each.subject, each.observed), []).append(each.host)
    listed = []
    for (_check, subject, observed), hosts in shared.items():
        # Findings on pairs repeat the place.
        place = names(hosts) if subject in hosts else f"{names(hosts)}, {subject}"
        seen = " ".join(observed.removeprefix(f"{place}: ").split())
        listed.append(f"{place}: {seen if len(seen) <= QUOTED else seen[: QUOTED - 1] + '…'}")
    return listed[:SHOWN] + ([f"and {len(listed) - SHOWN} more, below"] if len(listed) > SHOWN else [])
