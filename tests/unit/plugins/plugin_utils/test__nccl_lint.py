# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint of NCCL's variables on the control node: the filters, and what the gate asks."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.filter.nccl import FilterModule
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl import nccl_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl_lint import host_problems, nccl_lint, nccl_lint_plan
from tests.unit.hosts import lab_facts, lab_intent, lab_rails

ENVIRONMENT = "/etc/rdma-cluster/nccl.env"
ROCE = {"priority": 3, "dscp": 26}


def rules(problems: list[dict[str, str]] | None) -> list[tuple[str, str, str]]:
    assert problems is not None
    return [(problem["severity"], problem["rule"], problem["where"]) for problem in problems]


def test_the_filters_are_there() -> None:
    filters = FilterModule().filters()
    assert filters["nccl_lint"] is nccl_lint
    assert filters["nccl_lint_plan"] is nccl_lint_plan


def test_variables_by_name_and_the_text_of_a_file() -> None:
    wanted = {
        "rule": "value_range",
        "severity": "error",
        "variable": "NCCL_IB_SL",
        "where": "/etc/nccl.conf",
        "observed": "NCCL_IB_SL=16: NCCL takes 16, which is out of range",
        "expected": "a number from -1 to 15",
        "remedy": "Correct NCCL_IB_SL in /etc/nccl.conf.",
    }
    assert nccl_lint({"NCCL_IB_SL": 16}) == [wanted]
    assert nccl_lint("# text\nNCCL_IB_SL=16\n") == [wanted]
    assert [each["where"] for each in nccl_lint("hello\n", path="/opt/nccl.conf")] == ["/opt/nccl.conf"]


def test_facts_version_and_plan_are_used() -> None:
    assert rules(nccl_lint({"NCCL_IB_HCA": "=mlx5_0"}, lab_facts())) == [("error", "hca_missing", "/etc/nccl.conf")]
    assert rules(nccl_lint({"NCCL_IB_FIFO_TC": "106"}, version="2.20.5")) == [("error", "name_too_new", "/etc/nccl.conf")]
    assert rules(nccl_lint({"NCCL_IB_TC": "104"}, plan={"traffic_class": 106})) == [("error", "traffic_class_differs", "/etc/nccl.conf")]


def test_the_plan_of_a_lab_machine() -> None:
    assert nccl_lint_plan(lab_intent(), lab_facts()) == {
        "leave_out": {},
        "traffic_class": None,
        "trust": None,
        "rails_apart": False,
        "gpudirect": None,
        "asked_for": [],
    }


def test_the_plan_of_a_host_with_storage_and_a_profile() -> None:
    rails = lab_rails()
    rails[1]["role"] = "storage"
    intent, facts = {**lab_intent(roce=ROCE), "rails": rails}, lab_facts()
    assert nccl_lint_plan(intent, facts) == {
        "leave_out": {"rxe_rail1": "storage, rail1"},
        "traffic_class": 106,
        "trust": "dscp",
        "rails_apart": False,
        "gpudirect": None,
        "asked_for": [],
    }


def test_a_device_of_no_rail_is_not_nccls() -> None:
    intent = {**lab_intent(), "rails": lab_rails()[:1]}
    assert nccl_lint_plan(intent, lab_facts())["leave_out"] == {"rxe_rail1": "no rail of NCCL's"}


def test_rails_of_two_planes_and_no_gpudirect() -> None:
    rails = lab_rails()
    rails[1]["plane"] = "other"
    plan = nccl_lint_plan({**lab_intent(gpudirect={"path": "none"}), "rails": rails}, lab_facts())
    assert (plan["rails_apart"], plan["gpudirect"]) == (True, "none")


@pytest.mark.parametrize("facts", [None, {}])
def test_without_facts_nothing_is_left_out(facts: dict[str, Any] | None) -> None:
    assert nccl_lint_plan(lab_intent(), facts)["leave_out"] == {}


def test_what_the_intent_asks_for_is_a_note_and_no_warning() -> None:
    intent = lab_intent(nccl={"variables": {"NCCL_IB_QPS_PER_CONNECTION": 4}})
    problems = nccl_lint({"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_MAX_CTAS": "8"}, plan=nccl_lint_plan(intent, lab_facts()))
    tests = {each["variable"]: (each["severity"], each["observed"]) for each in problems if each["rule"] == "for_tests_only"}
    assert tests["NCCL_IB_QPS_PER_CONNECTION"] == (
        "info",
        "NCCL_IB_QPS_PER_CONNECTION is for tests, and /etc/nccl.conf is for every job, as rdma_nccl.variables asks",
    )
    assert tests["NCCL_MAX_CTAS"][0] == "warning"


def test_the_files_that_the_stage_writes_are_good() -> None:
    intent, facts = lab_intent(roce=ROCE, nccl={"socket_ifname": "enp0s2", "variables": {"NCCL_DEBUG": "WARN"}}), lab_facts()
    for file in nccl_files(intent, facts):
        assert nccl_lint(file.content or "", facts, plan=nccl_lint_plan(intent, facts), path=file.path) == []


def test_a_host_as_the_facts_tell_of_it() -> None:
    assert host_problems(lab_intent(), lab_facts()) == []
    files = {
        "/etc/nccl.conf": {"NCCL_IB_HCA": "=rxe_rail0:1,rxe_rail1:1"},
        "/root/.nccl.conf": {"NCCL_IB_HCA": "=rxe_rail0:1"},
        ENVIRONMENT: {"NCCL_CONF_FILE": '"/opt/nccl.conf"', "NCCL_DEBUG": "WARNING"},
        "/opt/nccl.conf": {"NCCL_IB_SL": "99"},
    }
    intent = lab_intent(nccl={"conf_file": "/opt/nccl.conf"})
    assert rules(host_problems(intent, {**lab_facts(), "nccl_files": files})) == [
        ("error", "value_range", "/opt/nccl.conf"),
        ("error", "value_choice", f"the environment of what is started with {ENVIRONMENT}"),
        ("warning", "shadowed", "/etc/nccl.conf"),
    ]


@pytest.mark.parametrize(
    ("interfaces", "found"),
    [
        ({"bond0": {"admin_up": True, "ipv4": ["10.0.0.1/24"]}}, []),
        ({"bond0.10": {"admin_up": True, "ipv4": None}}, ["interface_missing"]),
        (None, []),
    ],
)
def test_an_interface_that_is_no_nic_may_be_named(interfaces: dict[str, Any] | None, found: list[str]) -> None:
    """A bond, VLAN or bridge is no NIC of the facts; older facts tell of NICs alone."""
    intent, facts = lab_intent(nccl={"socket_ifname": "bond0"}), {**lab_facts(), "interfaces": interfaces}
    files = {path: {"NCCL_SOCKET_IFNAME": "=bond0"} for path in ("/etc/nccl.conf",)}
    problems = host_problems(intent, {**facts, "nccl_files": files})
    assert problems is not None
    assert [problem["rule"] for problem in problems if problem["severity"] != "info"] == found


def test_facts_without_files_are_not_good() -> None:
    assert host_problems(lab_intent(), {**lab_facts(), "nccl_files": None}) is None


def test_the_version_of_the_intent_is_used() -> None:
    facts = {**lab_facts(), "nccl_files": {"/etc/nccl.conf": {"NCCL_IB_FIFO_TC": "106"}}}
    assert rules(host_problems(lab_intent(nccl={"version": "2.22.3"}), facts)) == []
    assert rules(host_problems(lab_intent(nccl={"version": "2.21.5"}), facts)) == [("error", "name_too_new", "/etc/nccl.conf")]
