# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""metrics.prom, read back by a parser of its format."""

from __future__ import annotations

import re

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import STATUSES, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.drift import Difference
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.metrics import metrics

#: exposition_formats.md of Prometheus: name, labels, value.
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? ([0-9.]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
PROOF = Proof({}, 1795300000.5, "run", 3, {}, 0.97)


def finding(host: str, status: str, check: str = "link.state", stage: str = "link") -> Finding:
    return Finding(stage, check, host, "rail 0", status, "DOWN", "ACTIVE")


def read(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Name and labels → value. Every line is a comment or a sample, families are whole, and nothing is reported twice."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    families: list[str] = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            families.append(line.split()[2])
            assert line.endswith(" gauge")
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == families[-1]
            key = (match[1], tuple(LABEL.findall(match[2] or "")))
            assert key not in found
            found[key] = float(match[3])
    assert len(set(families)) == len(families)
    assert text.endswith("\n")
    return found


def of(family: str, text: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(value for _name, value in labels): value for (name, labels), value in read(text).items() if name == f"rdma_cluster_{family}"
    }


def rendered(findings: list[Finding], drift: list[Difference] | None = None, **proofs: dict[str, Proof]) -> str:
    return metrics(findings, drift, proofs, ended=1795312345.25, outcome="clean", check_mode=drift is not None)


def test_a_gate_has_one_status_that_holds() -> None:
    gates = of("gate", rendered([finding("node1", "ok"), finding("node1", "error"), finding("node2", "ok")]))
    assert set(gates) == {(host, "link", status) for host in ("node1", "node2") for status in STATUSES}
    assert {key for key, value in gates.items() if value} == {("node1", "link", "error"), ("node2", "link", "ok")}


def test_only_what_is_not_good_is_counted() -> None:
    text = rendered([finding("node1", "error"), finding("node1", "error"), finding("node1", "ok"), finding("node2", "not_applicable")])
    assert of("findings", text) == {("node1", "link.state", "error"): 2.0}


def test_proofs_by_the_time_of_their_measurement() -> None:
    assert of("proof_time_seconds", rendered([], node1={"rail0": PROOF})) == {("node1", "rail0"): 1795300000.5}


def test_drift_is_reported_of_a_run_that_looked_for_it() -> None:
    differences = [
        Difference("node1", "host", "a", "1", "2"),
        Difference("node1", "host", "b", "1", "2"),
        Difference("node1", "qos", "c", "", "x"),
    ]
    text = rendered([finding("node1", "ok"), finding("node2", "ok")], differences)
    assert of("drift", text) == {("node1", "host"): 2.0, ("node1", "qos"): 1.0, ("node2", ""): 0.0}
    assert of("drift", rendered([finding("node1", "ok")])) == {}


def test_the_end_of_the_run() -> None:
    assert of("run_end_time_seconds", rendered([])) == {("build",): 1795312345.25}
    assert of("run_end_time_seconds", rendered([], [])) == {("check",): 1795312345.25}
    assert of("run_clean", rendered([])) == {(): 1.0}


@pytest.mark.parametrize("host", ['a"b', "a\\b", "a\nb", "é"])
def test_labels_are_escaped(host: str) -> None:
    proof = Proof({}, 1.0, "1", 1, {}, 1.0)
    text = metrics([], None, {host: {"rail0": proof}}, ended=1.0, outcome="clean", check_mode=False)
    ((written, _rail),) = of("proof_time_seconds", text)
    assert written.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\") == host
