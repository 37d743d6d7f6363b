# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders metrics.prom: the results of a run in Prometheus' text format 0.0.4, for node_exporter's textfile collector.

Names and samples are those of the collector that the role exporter installs (module_utils/_metrics). Gates are the worst status of each
host and stage, drift is a count of lines, proofs are the time when each rail was measured. An alert on their age, or on a missing run,
needs only `time() - metric`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING, Finding, worst
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.catalogue import RUN_CLEAN, RUN_END
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.exposition import Metric, Sample, exposition
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import Gate, HostResults, counted, result_samples
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.drift import Difference

FILE = "metrics.prom"


def metrics(
    findings: Sequence[Finding], drift: Sequence[Difference] | None, proofs: Proofs, *, ended: float, outcome: str, check_mode: bool
) -> str:
    """The file's text. ended: seconds since 1970; drift: None if the run did not look for it, which is not the same as no drift."""
    families: list[tuple[Metric, list[Sample]]] = [
        (RUN_END, [({"mode": "check" if check_mode else "build"}, ended)]),
        (RUN_CLEAN, [({}, float(outcome == "clean"))]),
        *result_samples(results(findings, drift, proofs, ended)),
    ]
    return "".join(exposition(metric, samples) for metric, samples in families)


def results(findings: Sequence[Finding], drift: Sequence[Difference] | None, proofs: Proofs, judged: float) -> dict[str, HostResults]:
    """Return the results of each host, those of findings first. judged: when the gates judged, in seconds since 1970."""
    by_host: dict[str, dict[str, list[Finding]]] = {}
    for finding in findings:
        by_host.setdefault(finding.host, {}).setdefault(finding.stage, []).append(finding)
    differences: dict[str, dict[str, int]] = {}
    for each in drift or ():
        of = differences.setdefault(each.host, {})
        of[each.stage] = of.get(each.stage, 0) + 1
    names = dict.fromkeys((*by_host, *sorted(proofs), *sorted(differences)))
    return {
        host: HostResults(
            gates={stage: Gate(worst(found), judged) for stage, found in by_host.get(host, {}).items()},
            findings=counted_findings(each for found in by_host.get(host, {}).values() for each in found),
            proofs={rail: proof.measured for rail, proof in proofs.get(host, {}).items()},
            drift=differences.get(host, {}) if drift is not None and (host in by_host or host in differences) else None,
        )
        for host in names
    }


def counted_findings(findings: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """Return check → status → count of the findings that are not ok."""
    return counted((each.check, each.status) for each in findings if each.status in (WARNING, ERROR, UNKNOWN))
