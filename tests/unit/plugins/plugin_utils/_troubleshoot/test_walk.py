# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision trees, and the path that a walk takes through one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.modules import troubleshoot
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES, all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._troubleshoot.trees import EVERY, MEASURED, TREES
from ansible_collections.rdma.cluster.plugins.plugin_utils._troubleshoot.walk import Walk, text, walk

ROOT = Path(__file__).parents[5]


def finding(check: str, status: str, host: str = "node1", observed: str = "seen so") -> Finding:
    return Finding(all_checks()[check].stage.split(", ")[0], check, host, "rail0", status, observed, "as planned", "1. Fix it.")


class Cluster:
    """Findings by stage, and the stages that a walk asked for."""

    def __init__(self, *findings: Finding) -> None:
        self._findings, self.asked = findings, list[str]()

    def __call__(self, stage: str) -> list[Finding]:
        self.asked.append(stage)
        return [each for each in self._findings if each.stage == stage]


def walked(symptom: str, *findings: Finding) -> Walk:
    return walk(TREES[symptom], all_checks(), Cluster(finding("stage.completed", OK), *findings))


@pytest.mark.parametrize("symptom", TREES)
def test_each_question_is_answered_by_checks_of_the_catalogue(symptom: str) -> None:
    tree = TREES[symptom]
    checks = all_checks()
    named = [check for step in tree.steps for check in step.checks]
    assert [check for check in named if check not in checks] == []
    assert len(named) == len(set(named)), "a check that answers two questions of a path"
    assert {stage for check in named for stage in checks[check].stage.split(", ")} <= {*STAGES, EVERY}
    assert all(step.question.endswith("?") and step.why.endswith(".") for step in tree.steps)
    assert 1 <= len(tree.otherwise) <= 3
    for step in tree.steps:
        measured = {checks[check].stage for check in step.checks} <= set(MEASURED)
        assert bool(step.measure) == measured, step.question


def test_the_symptoms_stand_in_the_documentation_of_module_playbook_and_variable() -> None:
    assert yaml.safe_load(troubleshoot.DOCUMENTATION)["options"]["symptom"]["choices"] == list(TREES)
    playbook = (ROOT / "playbooks/troubleshoot.yml").read_text(encoding="utf-8")
    assert f"# Symptoms: {', '.join(TREES)}." in playbook
    row = next(line for line in (ROOT / "docs/intent.md").read_text(encoding="utf-8").splitlines() if "`rdma_symptom`" in line)
    assert [symptom for symptom in TREES if f"`{symptom}`" not in row] == []


def test_it_stops_at_the_first_question_with_an_error() -> None:
    found = walked("slow", finding("link.rate", ERROR), finding("qos.pfc", ERROR), finding("host.memory", OK))
    assert found.explained_by == 5
    assert [each.answer for each in found.path] == ["yes", "does not apply", "not measured", "yes", "no"]
    assert [each.check for each in found.path[-1].findings] == ["link.rate"]


def test_a_bad_measurement_is_the_symptom_and_does_not_end_the_walk() -> None:
    found = walked("slow", finding("pair.bandwidth", ERROR), finding("pcie.link", ERROR))
    assert [each.answer for each in found.path].count("no") == 2
    assert found.path[-1].findings[0].check == "pcie.link"
    assert "MEASURED BADLY, FOR WHICH A CAUSE IS TO BE FOUND\n  node1, rail0: pair.bandwidth is error" in text(found, 1, "")


def test_a_stage_behind_the_explanation_is_not_asked() -> None:
    cluster = Cluster(finding("stage.completed", OK), finding("gpu.driver", ERROR))
    assert walk(TREES["hang"], all_checks(), cluster).explained_by == 3
    assert cluster.asked == [EVERY, "driver", "gpu"]


@pytest.mark.parametrize(
    ("statuses", "answer"),
    [
        ((OK, OK), "yes"),
        ((OK, WARNING), "yes, with warnings"),
        ((OK, WARNING, UNKNOWN), "not known"),
        ((OK, UNKNOWN, ERROR), "no"),
        ((NOT_APPLICABLE, NOT_APPLICABLE), "does not apply"),
        ((NOT_APPLICABLE, OK), "yes"),
        ((), "does not apply"),
    ],
)
def test_the_answer_is_the_worst_of_its_findings(statuses: tuple[str, ...], answer: str) -> None:
    findings = [finding("link.errors", status, f"node{number}") for number, status in enumerate(statuses)]
    of_flap = walked("flap", *findings).path
    assert of_flap[2].answer == answer


def test_what_is_not_known_is_shown_and_explains_nothing() -> None:
    found = walked("registration", finding("host.memlock", UNKNOWN, observed="the limits were not read"), finding("host.shm", WARNING))
    assert found.explained_by is None
    output = text(found, 1, "")
    assert "NO QUESTION EXPLAINS IT\n  1. In the job's own environment" in output
    assert "NOT KNOWN, SO NOT EXCLUDED\n  node1, rail0: host.memlock is unknown (host stage)" in output
    assert "WARNINGS ON THE PATH, WHICH MAY CONTRIBUTE\n  node1, rail0: host.shm is warning (host stage)" in output


@pytest.mark.parametrize("status", [ERROR, UNKNOWN])
def test_a_host_that_does_not_answer_explains_every_symptom(status: str) -> None:
    silent = Finding(EVERY, "stage.completed", "node2", "stage", status, "it cannot be reached", "a host that answers", "1. Ping it.")
    answers = Finding(EVERY, "stage.completed", "node1", "stage", OK, "it answers", "a host that answers")
    for tree in TREES.values():
        found = walk(tree, all_checks(), Cluster(answers, silent))
        assert (found.explained_by, len(found.path)) == (1, 1)
        output = text(found, 2, "")
        assert "FIX THIS FIRST" in output
        assert "node2, stage: stage.completed is" in output


def test_the_text_shows_the_path_the_reason_and_the_remedy() -> None:
    output = text(walked("flap", finding("link.flaps", ERROR, observed="5 failures in 2 hours")), 4, "the run 20261126T054156Z-1")
    assert (
        output
        == """\
flap: a link goes down and comes up again (4 hosts)
Findings on measurements are from the run 20261126T054156Z-1.

PATH
  1. Is the intent of every host valid, and does the host answer? Yes (1 ok).
  2. Does each rail have its NIC, driver modules, RDMA device and device node? Does not apply.
! 3. Are the links free of new errors, failures and bad optics? No (1 error).

QUESTION 3 EXPLAINS IT
  A bad cable or optic damages packets. RDMA repeats them, and the whole collective waits.
  node1, rail0: link.flaps is error (link stage)
    seen:     5 failures in 2 hours
    expected: as planned
    do:       1. Fix it."""
    )


def test_a_question_without_a_measurement_says_how_to_measure() -> None:
    output = text(walked("drops"), 1, "")
    assert "No earlier run has measured anything.\n" in output
    assert "Not measured.\n     To measure it while no job runs: `ansible-playbook rdma.cluster.pairs -e rdma_measure=true`" in output


def test_the_data_has_what_is_not_healthy() -> None:
    data: Mapping[str, Any] = walked("flap", finding("link.flaps", ERROR), finding("link.errors", OK)).to_dict()
    assert (data["schema"], data["symptom"], data["explained_by"]) == (1, "flap", 3)
    assert [each["check"] for each in data["path"][2]["findings"]] == ["link.flaps"]
