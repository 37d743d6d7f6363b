# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The finding of the nccl stage's gate on NCCL's variables."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.lint import lint
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import SITE_FILE, USER_FILE, Source
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl_host import check_lint
from tests.unit.builders.hosts import lab_facts

EXPECTED = "variables that NCCL reads and that agree with the host and each other"


def found(variables: dict[str, str]) -> list[Finding]:
    problems = lint([Source(SITE_FILE, "/etc/nccl.conf", "", variables)], lab_facts(), None)
    return check_lint("node1", [problem.to_dict() for problem in problems])


def test_good_variables() -> None:
    assert found({"NCCL_IB_HCA": "=rxe_rail0:1,rxe_rail1:1"}) == [
        Finding("nccl", "nccl.lint", "node1", "NCCL's variables", "ok", "no problem", EXPECTED)
    ]


def test_notes_stop_nobody_and_are_counted() -> None:
    (finding,) = found({"NCCL_MESH_DEBUG": "1", "NCCL_IBEXT_DISABLE": "1"})
    assert (finding.status, finding.observed) == ("ok", "no problem; 2 notes")


def test_nobody_has_looked() -> None:
    assert check_lint("node1", None) == [
        Finding(
            "nccl", "nccl.lint", "node1", "NCCL's variables", "unknown", "not checked yet", EXPECTED,
            "Run the nccl stage for node1, which checks them.",
        )
    ]  # fmt: skip


def test_a_finding_for_each_problem() -> None:
    findings = found({"NCCL_DEBUG": "WARNING", "NCCL_QQQQ": "1", "NCCL_MESH_DEBUG": "1"})
    assert findings == [
        Finding(
            "nccl", "nccl.lint", "node1", "NCCL_DEBUG in /etc/nccl.conf (value_choice)", "error",
            "NCCL_DEBUG=WARNING: NCCL reads its default", "one of VERSION, WARN, ATTN, INFO, ABORT, TRACE",
            "On node1: correct NCCL_DEBUG in /etc/nccl.conf.",
        ),
        Finding(
            "nccl", "nccl.lint", "node1", "NCCL_QQQQ in /etc/nccl.conf (name_unknown)", "warning",
            "NCCL_QQQQ does not exist: NCCL ignores it unless a plugin reads it", "one of NCCL's variables",
            "On node1: remove NCCL_QQQQ from /etc/nccl.conf.",
        ),
    ]  # fmt: skip
    assert [finding.status for finding in stopping(findings)] == ["error"]


def test_a_variable_that_comes_from_elsewhere_is_corrected_there() -> None:
    """Of the files that have it each says the same, and one of two variables may come from elsewhere."""
    variables = {"NCCL_DEBUG": "WARNING", "NCCL_IBB_TC": "1", "NCCL_IB_SL": "99"}
    origins = dict.fromkeys(("NCCL_DEBUG", "NCCL_IBB_TC"), "rdma_nccl.variables")
    sources = [Source(kind, f"/{kind}", owner, variables, origins=origins) for kind, owner in ((SITE_FILE, ""), (USER_FILE, "root"))]
    findings = check_lint("node1", [problem.to_dict() for problem in lint(sources, {}, None)])
    assert [(each.subject, each.remedy) for each in findings] == [
        ("NCCL_IB_SL in /site_file (value_range)", "On node1: correct NCCL_IB_SL in /site_file."),
        ("NCCL_IB_SL in /user_file (value_range)", "On node1: correct NCCL_IB_SL in /user_file."),
        ("NCCL_IBB_TC in rdma_nccl.variables (name_unknown)", "Of node1: write NCCL_IB_TC in rdma_nccl.variables."),
        ("NCCL_DEBUG in rdma_nccl.variables (value_choice)", "Of node1: correct NCCL_DEBUG in rdma_nccl.variables."),
    ]


def test_what_could_not_be_judged_stops() -> None:
    problems = lint([Source(SITE_FILE, "/etc/nccl.conf", "", {"NCCL_IB_HCA": "=mlx5_0"})], {}, None)
    (finding,) = check_lint("node1", [problem.to_dict() for problem in problems])
    assert (finding.status, finding.remedy) == ("unknown", "On node1: read the host with rdma.cluster.rdma_facts.")
