# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a host's collector: its planned rails, and what the runs of the control node have found about it."""

from __future__ import annotations

from collections import Counter

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, worst
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import DEBIAN
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import Config, bad_labels
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.results import Gate, HostResults
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.parts import drift_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError, Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.metrics import counted_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

#: Where Debian's node_exporter looks for files.
DEBIAN_FOLDER = "/var/lib/prometheus/node-exporter"
#: Earlier runs that are searched for the verdicts of a host.
RUNS = 50


class ExporterError(ValueError):
    """The collector cannot be installed as requested; the message has the key of the intent and the remedy."""


def exporter_config(folder: RunFolder, host: str, intent: Intent, family: str | None) -> Config:
    """Return the settings of a host's collector. family: of its distribution. Raises ExporterError."""
    wanted = intent["metrics"]
    refused = bad_labels(wanted["labels"])
    if refused:
        raise ExporterError(f"rdma_metrics.labels: {', '.join(refused)} is a label of the collector itself. Choose another name.")
    if wanted["textfile_dir"] is None and family != DEBIAN:
        raise ExporterError(
            "rdma_metrics.textfile_dir is not set, and this distribution has no package of node_exporter. Install node_exporter, start it "
            "with `--collector.textfile.directory=DIR`, and set rdma_metrics.textfile_dir to DIR."
        )
    return Config(
        host=host,
        labels=wanted["labels"],
        folder=wanted["textfile_dir"] or DEBIAN_FOLDER,
        hw_counters=wanted["hw_counters"],
        rails=intent["rails"],
        results=results_of_runs(folder, host),
        infiniband_optics=wanted["infiniband_optics"],
    )


def results_of_runs(folder: RunFolder, host: str) -> HostResults:
    """Return the newest verdict of each stage on a host, its findings, its drift and its proofs, from earlier runs that have ended."""
    gates: dict[str, Gate] = {}
    found: list[Finding] = []
    drift: dict[str, int] | None = None
    for run in map(Run, folder.earlier_runs()[:RUNS]):
        if drift is not None and len(gates) == len(STAGES):
            break
        if not _has_ended(run):
            continue
        shows_drift = drift is None and run.is_check
        judged = {stage: run.folder.known_findings(stage, host) for stage in STAGES if shows_drift or stage not in gates}
        if shows_drift and any(judged.values()):
            drift = dict(Counter(line["stage"] for line in drift_lines(run) if line["host"] == host))
        for stage, findings in judged.items():
            if findings and stage not in gates:
                gates[stage] = Gate(worst(findings), run.began)
                found += findings
    proofs = pairs_proofs.read(folder.read_if_there(pairs_proofs.FILE)).get(host, {})
    return HostResults(
        gates={stage: gates[stage] for stage in STAGES if stage in gates},
        findings=counted_findings(found),
        proofs={rail: proof.measured for rail, proof in proofs.items()},
        drift=drift,
    )


def _has_ended(run: Run) -> bool:
    """Return whether a run has ended, and its summary can be read."""
    try:
        return run.summary is not None
    except ReportError:
        return False
