# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders metrics.prom: the results of a run in Prometheus' text format 0.0.4, for node_exporter's textfile collector.

Gates are the worst status of each host and stage, drift is a count of lines, proofs are the time when each rail was measured. An alert
on their age, or on a missing run, needs only `time() - metric`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import STATUSES, Finding, worst
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.drift import Difference

FILE = "metrics.prom"
Labels = Mapping[str, str]
Samples = Iterable[tuple[Labels, float]]


def metrics(
    findings: Sequence[Finding], drift: Sequence[Difference] | None, proofs: Proofs, *, ended: float, outcome: str, check_mode: bool
) -> str:
    """The file's text. ended: seconds since 1970; drift: None if the run did not look for it, which is not the same as no drift.

    A host in a stage has one sample for each status, 1 for the current one and 0 for the others, so that a query needs no table of
    numbers: `rdma_cluster_gate{status="error"} == 1`.
    """
    families = [
        _family("rdma_cluster_run_end_time_seconds", "When the last run ended.", [({"mode": "check" if check_mode else "build"}, ended)]),
        _family("rdma_cluster_run_clean", "Whether it ended clean.", [({}, float(outcome == "clean"))]),
        _family("rdma_cluster_gate", "The worst finding of a host at the gate of a stage, by status.", _gates(findings)),
        _family("rdma_cluster_findings", "Findings of a host that are not ok, by check and status.", _findings(findings)),
        _family("rdma_cluster_proof_time_seconds", "When a rail of a host was last measured and found good.", _proofs(proofs)),
    ]
    if drift is not None:
        hosts = sorted({finding.host for finding in findings})
        families.append(_family("rdma_cluster_drift", "Settings of a host that differ from the intent, by stage.", _drift(drift, hosts)))
    return "".join(families)


def _family(name: str, words: str, samples: Samples) -> str:
    lines = [f"{name}{_labels(labels)} {_number(value)}\n" for labels, value in samples]
    return f"# HELP {name} {words}\n# TYPE {name} gauge\n{''.join(lines)}" if lines else ""


def _labels(labels: Labels) -> str:
    words = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{words}}}" if words else ""


def _escaped(value: str) -> str:
    """A label's value with backslash, quote and line feed escaped."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.3f}"


def _gates(findings: Sequence[Finding]) -> Samples:
    by_gate: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        by_gate.setdefault((finding.host, finding.stage), []).append(finding)
    for (host, stage), found in by_gate.items():
        holds = worst(found)
        for status in STATUSES:
            yield {"host": host, "stage": stage, "status": status}, float(status == holds)


def _findings(findings: Sequence[Finding]) -> Samples:
    counts = Counter((each.host, each.check, each.status) for each in findings if each.status in ("warning", "error", "unknown"))
    for (host, check, status), count in sorted(counts.items()):
        yield {"host": host, "check": check, "status": status}, float(count)


def _proofs(proofs: Proofs) -> Samples:
    for host, rails in sorted(proofs.items()):
        for rail, proof in sorted(rails.items()):
            yield {"host": host, "rail": rail}, proof.measured


def _drift(drift: Sequence[Difference], hosts: Sequence[str]) -> Samples:
    """The samples of drift. A host without drift has a sample of 0, which shows that its drift has ended."""
    counts = Counter((each.host, each.stage) for each in drift)
    counted = {host for host, _stage in counts}
    for host in hosts:
        if host not in counted:
            yield {"host": host, "stage": ""}, 0.0
    for (host, stage), count in sorted(counts.items()):
        yield {"host": host, "stage": stage}, float(count)
