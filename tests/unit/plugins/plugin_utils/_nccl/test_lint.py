# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint of NCCL's variables on the control node: the filters, and what the gate asks."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.filter.nccl import FilterModule
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import stopping
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import PROFILES
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import nccl_files, nccl_variables
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.lint import host_problems, nccl_lint, nccl_lint_plan, origins
from tests.unit.builders.hosts import lab_facts, lab_intent, lab_rails, on_host

ENVIRONMENT = "/etc/rdma-cluster/nccl.env"
PLACES = {"site": "/etc/nccl.conf", "root": "/root/.nccl.conf", "environment": ENVIRONMENT}
ROCE = {"priority": 3, "dscp": 26}
UNUSED = "Of node1: run the link stage. Its gate shows why a port is not ACTIVE."


def rules(problems: list[dict[str, str]] | None) -> list[tuple[str, str, str]]:
    assert problems is not None
    return [(problem["severity"], problem["rule"], problem["where"]) for problem in problems]


def test_the_filters_are_there() -> None:
    filters = FilterModule().filters()
    assert filters["nccl_lint"] is nccl_lint
    assert filters["nccl_lint_plan"](lab_intent(), lab_facts()) == nccl_lint_plan(lab_intent(), from_dict(lab_facts()))


def test_variables_by_name_and_the_text_of_a_file() -> None:
    wanted = {
        "rule": "value_range",
        "severity": "error",
        "variable": "NCCL_IB_SL",
        "where": "/etc/nccl.conf",
        "observed": "NCCL_IB_SL=16: NCCL reads 16, which is out of range",
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
    assert nccl_lint_plan(lab_intent(), from_dict(lab_facts())) == {
        "leave_out": {},
        "traffic_class": None,
        "trust": None,
        "service_level": None,
        "rails_apart": False,
        "gpudirect": None,
        "asked_for": [],
        "rail_interfaces": {"ens1": "rail0", "ens2": "rail1"},
    }


def test_the_plan_of_a_host_with_storage_and_a_profile() -> None:
    rails = lab_rails()
    rails[1]["role"] = "storage"
    intent, facts = {**lab_intent(roce=ROCE), "rails": rails}, lab_facts()
    assert nccl_lint_plan(intent, from_dict(facts)) == {
        "leave_out": {"rxe_rail1": "storage, rail1"},
        "traffic_class": 106,
        "trust": "dscp",
        "service_level": None,
        "rails_apart": False,
        "gpudirect": None,
        "asked_for": [],
        "rail_interfaces": {"ens1": "rail0", "ens2": "rail1"},
    }


def test_a_device_of_no_rail_is_not_nccls() -> None:
    intent = {**lab_intent(), "rails": lab_rails()[:1]}
    assert nccl_lint_plan(intent, from_dict(lab_facts()))["leave_out"] == {"rxe_rail1": "not a rail for NCCL"}


def test_rails_of_two_planes_and_no_gpudirect() -> None:
    rails = lab_rails()
    rails[1]["plane"] = "other"
    plan = nccl_lint_plan({**lab_intent(gpudirect={"path": "none"}), "rails": rails}, from_dict(lab_facts()))
    assert (plan["rails_apart"], plan["gpudirect"]) == (True, "none")


@pytest.mark.parametrize("facts", [None, {}])
def test_without_facts_nothing_is_left_out(facts: dict[str, Any] | None) -> None:
    assert nccl_lint_plan(lab_intent(), from_dict(facts))["leave_out"] == {}


def test_what_the_intent_asks_for_is_a_note_and_no_warning() -> None:
    intent = lab_intent(nccl={"variables": {"NCCL_IB_QPS_PER_CONNECTION": 4}})
    problems = nccl_lint({"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_MAX_CTAS": "8"}, plan=nccl_lint_plan(intent, from_dict(lab_facts())))
    tests = {each["variable"]: (each["severity"], each["observed"]) for each in problems if each["rule"] == "for_tests_only"}
    assert tests["NCCL_IB_QPS_PER_CONNECTION"] == (
        "info",
        "NCCL_IB_QPS_PER_CONNECTION is for tests, but /etc/nccl.conf applies to every job, as requested in rdma_nccl.variables",
    )
    assert tests["NCCL_MAX_CTAS"][0] == "warning"


def test_the_files_that_the_stage_writes_are_good() -> None:
    intent, facts = lab_intent(roce=ROCE, nccl={"socket_ifname": "enp0s2", "variables": {"NCCL_DEBUG": "WARN"}}), lab_facts()
    for file in nccl_files(intent, from_dict(facts)):
        assert nccl_lint(file.content or "", facts, plan=nccl_lint_plan(intent, from_dict(facts)), path=file.path) == []


def after_the_stage(intent: dict[str, Any], **there: dict[str, str]) -> dict[str, Any]:
    """Facts of a host whose files are as the stage has written them. there: further variables by the word for a file that has them."""
    facts = lab_facts()
    files = nccl_files(intent, from_dict(facts))
    facts["files"].update(on_host(files))
    facts["nccl_files"] = {file.path: dict(parse_nccl_conf(file.text).variables) for file in files}
    for word, variables in there.items():
        facts["nccl_files"].setdefault(PLACES[word], {}).update(variables)
    return facts


def stops(intent: dict[str, Any], facts: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What stops the gate: check, subject and remedy."""
    return [(each.check, each.subject, each.remedy) for each in stopping(HOST_CHECKS["nccl"]("node1", intent, from_dict(facts)))]


def test_a_host_as_the_facts_report_it() -> None:
    assert host_problems(lab_intent(), from_dict(lab_facts())) == []
    intent = lab_intent(nccl={"conf_file": "/opt/nccl.conf", "variables": {"NCCL_CONF_FILE": "/opt/nccl.conf", "NCCL_IB_SL": 99}})
    others = {"site": {"NCCL_IB_HCA": "=rxe_rail0:1,rxe_rail1:1", "NCCL_DEBUG": "WARNING"}, "root": {"NCCL_IB_HCA": "=rxe_rail0:1"}}
    assert rules(host_problems(intent, from_dict(after_the_stage(intent, **others)))) == [
        ("error", "value_choice", "/etc/nccl.conf"),
        ("error", "conf_file_in_file", "rdma_nccl.variables"),
        ("error", "value_range", "rdma_nccl.variables"),
        ("warning", "shadowed", "/etc/nccl.conf"),
    ]


def test_what_the_intent_has_is_reported_once_and_corrected_there() -> None:
    """It stands in two files of ours, which every run of the stage rewrites."""
    intent = lab_intent(nccl={"socket_ifname": "bond9", "variables": {"NCCL_IB_SL": 99, "NCCL_DEBUG": "WARNING"}})
    assert stops(intent, after_the_stage(intent)) == [
        (
            "nccl.lint",
            "NCCL_SOCKET_IFNAME in rdma_nccl.socket_ifname (interface_missing)",
            "Of node1: correct NCCL_SOCKET_IFNAME in rdma_nccl.socket_ifname.",
        ),
        ("nccl.lint", "NCCL_DEBUG in rdma_nccl.variables (value_choice)", "Of node1: correct NCCL_DEBUG in rdma_nccl.variables."),
        ("nccl.lint", "NCCL_IB_SL in rdma_nccl.variables (value_range)", "Of node1: correct NCCL_IB_SL in rdma_nccl.variables."),
    ]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (
            "=mlx5_99:1",
            [("nccl.hca", "device mlx5_99:1 of NCCL_IB_HCA", "Correct rdma_nccl.variables.NCCL_IB_HCA of node1, or remove it.")],
        ),
        ("^mlx5_99", []),
        ("^rxe", [("nccl.lint", "NCCL_IB_HCA in rdma_nccl.variables (hca_unused)", UNUSED)]),
    ],
)
def test_a_device_that_is_not_there_is_one_error(value: str, found: list[tuple[str, str, str]]) -> None:
    intent = lab_intent(nccl={"variables": {"NCCL_IB_HCA": value}})
    assert stops(intent, after_the_stage(intent)) == found


def test_ports_that_are_down_are_reported_one_by_one() -> None:
    intent = lab_intent()
    facts = after_the_stage(intent)
    for device in facts["devices"].values():
        device["ports"]["1"]["state"] = "DOWN"
    assert [check for check, _subject, _remedy in stops(intent, facts)] == ["nccl.hca", "nccl.hca"]
    facts["nccl_files"]["/root/.nccl.conf"] = {"NCCL_IB_HCA": "=rxe_rail0"}
    assert ("nccl.lint", "NCCL_IB_HCA in /root/.nccl.conf (hca_unused)") in [each[:2] for each in stops(intent, facts)]


@pytest.mark.parametrize("file", ["site", "environment"])
def test_what_the_stage_writes_again_is_the_files_own_finding(file: str) -> None:
    intent = lab_intent(roce=ROCE)
    facts = after_the_stage(intent, **{file: {"NCCL_IB_TC": "3", "NCCL_IB_SL": "99", "NCCL_IB_TCC": "1"}})
    facts["files"][PLACES[file]].update(sha256="0" * 64, block="0" * 64)
    assert [each[:2] for each in stops(intent, facts)] == [("nccl.file", PLACES[file])]


def test_of_files_that_are_not_there_yet_nothing_else_is_reported() -> None:
    intent = lab_intent(roce=ROCE)
    facts = {**lab_facts(), "nccl_files": {}, "files": {}}
    assert [each[0] for each in stops(intent, facts)] == ["nccl.file", "nccl.file"]
    root = {**facts, "nccl_files": {"/root/.nccl.conf": {"NCCL_IB_SL": "99"}}}
    assert [each[1] for each in stops(intent, root)][2:] == ["NCCL_IB_SL in /root/.nccl.conf (value_range)"]


def test_a_file_where_the_intent_has_none_is_somebodys_own() -> None:
    intent, facts = {**lab_intent(), "rails": []}, {**lab_facts(), "nccl_files": {"/etc/nccl.conf": {"NCCL_IB_SL": "99"}}}
    assert rules(host_problems(intent, from_dict(facts))) == [("error", "value_range", "/etc/nccl.conf")]


@pytest.mark.parametrize(("profile", "version"), [*((profile, None) for profile in PROFILES), ("default", "2.19.3")])
def test_every_variable_has_a_place_in_the_intent(profile: str, version: str | None) -> None:
    reported = {"profile": profile, "socket_ifname": "enp0s2", "topology_file": "/t.xml", "variables": {"NCCL_DEBUG": "WARN"}}
    intent = lab_intent(roce=ROCE, nccl={**reported, **({"version": version} if version else {})})
    places = origins(intent, from_dict(lab_facts()))
    assert set(nccl_variables(intent, from_dict(lab_facts()))) <= set(places)
    assert (places["NCCL_DEBUG"], places["NCCL_SOCKET_IFNAME"]) == ("rdma_nccl.variables", "rdma_nccl.socket_ifname")
    assert all(place.startswith("rdma_") for place in places.values())


@pytest.mark.parametrize(
    ("interfaces", "found"),
    [
        ({"bond0": {"admin_up": True, "ipv4": ["10.0.0.1/24"]}}, []),
        ({"bond0.10": {"admin_up": True, "ipv4": None}}, ["interface_missing"]),
        (None, []),
    ],
)
def test_an_interface_that_is_no_nic_may_be_named(interfaces: dict[str, Any] | None, found: list[str]) -> None:
    """A bond, VLAN or bridge is no NIC of the facts; older facts have NICs alone."""
    intent = lab_intent(nccl={"socket_ifname": "bond0"})
    assert [each[1] for each in rules(host_problems(intent, from_dict({**after_the_stage(intent), "interfaces": interfaces})))] == found


def test_facts_without_files_are_not_good() -> None:
    assert host_problems(lab_intent(), from_dict({**lab_facts(), "nccl_files": None})) is None


@pytest.mark.parametrize(("version", "found"), [("2.22.3", []), ("2.21.5", [("error", "name_too_new", "rdma_nccl.variables")])])
def test_the_version_of_the_intent_is_used(version: str, found: list[tuple[str, str, str]]) -> None:
    intent = lab_intent(nccl={"version": version, "variables": {"NCCL_IB_FIFO_TC": "106"}})
    assert rules(host_problems(intent, from_dict(after_the_stage(intent)))) == found


def test_quotes_and_comments_are_reported_even_where_the_stage_writes_the_file_again() -> None:
    intent = lab_intent()
    facts = after_the_stage(intent, site={"NCCL_IB_HCA": '"=rxe_rail0:1,rxe_rail1:1"', "NCCL_DEBUG": "WARN # quiet"})
    facts["files"][PLACES["site"]].update(block="0" * 64)
    found = [each for each in host_problems(intent, from_dict(facts)) or [] if each["severity"] == "error"]
    assert [(each["rule"], each["variable"]) for each in found] == [("value_form", "NCCL_DEBUG"), ("value_form", "NCCL_IB_HCA")]
    assert found[1]["observed"] == 'NCCL_IB_HCA="=rxe_rail0:1,rxe_rail1:1": NCCL reads the quotes as part of the value'
    assert [each["expected"] for each in found] == [
        "WARN, and the comment on a separate line",
        "=rxe_rail0:1,rxe_rail1:1, without quotes",
    ]


def test_what_a_line_of_others_sets_is_reported_though_the_stage_writes_the_file() -> None:
    intent, bad = lab_intent(), {"NCCL_IB_HCA": "=mlx5_9"}
    facts = after_the_stage(intent, site=bad)
    facts["files"][PLACES["site"]].update(block=None, others=bad)
    assert ("hca_missing", "error") in [(each["rule"], each["severity"]) for each in host_problems(intent, from_dict(facts)) or []]
