# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drift: what tasks would change and what gates find, as lines. The results are those that ansible-core 2.19 hands to a callback."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import ModulesResult
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkResult
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES, all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.drift import EXPLAINED_BY, Difference, differences, drift

NETWORK_FILE = "/etc/systemd/network/60-rdma-rail0.network"


def lines(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Subject, was and should_be of each difference of a result."""
    found = differences("node1", "network", result)
    assert {(each.host, each.stage) for each in found} <= {("node1", "network")}
    return [(each.subject, each.was, each.should_be) for each in found]


def test_a_file_is_reduced_to_the_lines_that_differ() -> None:
    before = "[Match]\nPath=pci-0000:21:00.0\n\n[Link]\nMTUBytes=1500\n\n[Network]\nDHCP=yes\n"
    after = "[Match]\nPath=pci-0000:21:00.0\n\n[Link]\nMTUBytes=9000\n\n[Network]\n"
    result = {"changed": True, "diff": [FileChange(NETWORK_FILE, before, after).to_diff()]}
    assert lines(result) == [(NETWORK_FILE, "MTUBytes=1500\nDHCP=yes", "MTUBytes=9000")]


def test_a_file_that_is_not_there_was_nothing() -> None:
    result = {"changed": True, "diff": [FileChange("/etc/nccl.conf", None, "A=1\nB=2\n").to_diff()]}
    assert lines(result) == [("/etc/nccl.conf", "", "A=1\nB=2")]


def test_a_file_to_remove_becomes_nothing() -> None:
    assert lines({"changed": True, "diff": [FileChange("/etc/x", "A=1\n", None).to_diff()]}) == [("/etc/x", "A=1", "")]


def test_lines_that_look_like_marks_are_lines() -> None:
    result = {"changed": True, "diff": {"before": "- a\n? b\nsame\n", "after": "+ a\nsame\n", "after_header": "f"}}
    assert lines(result) == [("f", "- a\n? b", "+ a")]


def test_several_diffs_of_one_result_are_several_lines() -> None:
    live = {"ens1": [("MTU 1500 bytes", "MTU 9000 bytes")]}
    result = NetworkResult([FileChange(NETWORK_FILE, "a\n", "b\n")], live, service="systemd-networkd.service")
    assert lines({"changed": result.changed, "diff": result.diffs}) == [
        (NETWORK_FILE, "a", "b"),
        ("systemd-networkd.service", "", "enabled and started"),
        ("ens1", "MTU 1500 bytes", "MTU 9000 bytes"),
    ]


def test_what_is_done_beside_files_is_a_line_too() -> None:
    result = ModulesResult(["ib_uverbs", "rdma_rxe"], [])
    assert lines({"changed": result.changed, "diff": result.diffs}) == [("loaded kernel modules", "", "ib_uverbs\nrdma_rxe")]


def item(path: str, before: str, after: str, *, changed: bool = True) -> dict[str, Any]:
    """A loop's element of ansible.builtin.copy; of a file that was not there it has no header before."""
    header = {"before_header": path} if before else {}
    diff = [{**header, "before": before, "after_header": path, "after": after}] if changed else []
    return {"changed": changed, "diff": diff, "item": path, "ansible_loop_var": "item", "failed": False}


def test_a_loop_reports_what_each_of_its_items_changes() -> None:
    results = [
        item("/etc/nccl.conf", "old\nsame\n", "new\nsame\n"),
        item("/etc/same", "", "", changed=False),
        item("/etc/rdma-cluster/nccl.env", "", "new\n"),
    ]
    assert lines({"changed": True, "msg": "All items completed", "results": results}) == [
        ("/etc/nccl.conf", "old", "new"),
        ("/etc/rdma-cluster/nccl.env", "", "new"),
    ]


@pytest.mark.parametrize(("key", "seen", "requested"), [("state", "absent", "directory"), ("mode", "0600", "0644")])
def test_what_ansible_builtin_file_reports_is_named_by_its_path(key: str, seen: str, requested: str) -> None:
    """So do ansible.builtin.copy and template where the mode alone differs: dictionaries, and no header."""
    diff = {"before": {"path": "/etc/x", key: seen}, "after": {"path": "/etc/x", key: requested}}
    ((subject, was, should_be),) = lines({"changed": True, "diff": diff})
    assert subject == "/etc/x"
    assert (seen in was, requested in should_be) == (True, True)
    assert "/etc/x" not in was + should_be


NOTHING = [
    pytest.param({"changed": False, "diff": {"before": "a\n", "after": "b\n"}}, id="not changed"),
    pytest.param({"changed": True}, id="no diff"),
    pytest.param({"changed": True, "diff": []}, id="empty list"),
    pytest.param({"changed": True, "diff": None}, id="none"),
    pytest.param({"changed": True, "diff": {"before": "a\n"}}, id="half a diff"),
    pytest.param({"changed": True, "results": [{"changed": False}, {"changed": True}]}, id="a loop without diffs"),
    pytest.param({}, id="nothing said"),
    # ansible.builtin.apt; the finding driver.package names which are missing.
    pytest.param({"changed": True, "diff": {"prepared": "The following NEW packages will be installed:\n  perftest"}}, id="words only"),
]


@pytest.mark.parametrize("result", NOTHING)
def test_a_task_that_reports_no_difference_gives_none(result: dict[str, Any]) -> None:
    assert lines(result) == []


@pytest.mark.parametrize(
    ("headers", "subject"),
    [
        ({"before_header": "/etc/x"}, "/etc/x"),
        ({"before_header": "/etc/x", "after_header": "/etc/y"}, "/etc/y"),
        ({"after_header": "/etc/x (content)"}, "/etc/x"),
        ({}, ""),
    ],
)
def test_the_subject_is_the_header(headers: dict[str, str], subject: str) -> None:
    assert lines({"changed": True, "diff": {"before": "a\n", "after": "b\n", **headers}}) == [(subject, "a", "b")]


def finding(check: str, host: str = "node1", status: str = "error", silenced_by: str | None = None) -> Finding:
    return Finding(check.partition(".")[0], check, host, "rail 0", status, "DOWN", "ACTIVE", "Look.", silenced_by)


def change(stage: str, host: str = "node1") -> Difference:
    return Difference(host, stage, "subject", "was", "planned")


@pytest.mark.parametrize("status", ["error", "unknown"])
def test_a_finding_that_no_change_explains_is_drift(status: str) -> None:
    assert drift([], [finding("link.state", status=status)]) == [Difference("node1", "link", "link.state: rail 0", "DOWN", "ACTIVE")]


EXPLAINED = [
    ("network.mtu", change("network"), True),
    ("network.gid", change("driver"), True),
    ("network.gid", change("link"), True),
    ("network.gid", change("host"), False),
    ("network.gid", change("nccl"), False),
    ("network.gid", change("network", "node2"), False),
    ("driver.device", change("driver"), True),
    # A cable is not fixed by what the build does to files.
    ("driver.nic", change("driver"), False),
    ("link.state", change("driver"), True),
    ("link.state", change("network"), False),
    ("host.sysctl", change("host"), True),
    ("host.sysctl", change("driver"), False),
    ("nccl.file", change("nccl"), True),
    ("nccl.hca", change("nccl"), False),
    ("nccl.lint", change("driver"), True),
    ("nccl.lint", change("nccl"), True),
    ("nccl.lint", change("host"), False),
    ("pair.bandwidth", change("network"), True),
    ("pair.bandwidth", change("nccl"), False),
    ("preflight.os", change("preflight"), False),
    ("a.check_that_is_new", change("network"), False),
]


@pytest.mark.parametrize(("check", "cause", "explained"), EXPLAINED)
def test_a_finding_is_explained_by_a_change_that_it_follows_from(check: str, cause: Difference, explained: bool) -> None:
    found = drift([change("preflight", "node9"), cause], [finding(check)])
    assert found[:2] == [change("preflight", "node9"), cause]
    assert [each.subject for each in found[2:]] == ([] if explained else [f"{check}: rail 0"])


def test_what_explains_a_check_is_a_stage_that_changes_hosts() -> None:
    assert EXPLAINED_BY.keys() <= all_checks().keys()
    assert {stage for stages in EXPLAINED_BY.values() for stage in stages} <= set(STAGES)


def test_what_does_not_stop_a_gate_is_no_drift() -> None:
    silenced = finding("link.state", silenced_by="ada until 2999-12-31: cable ordered")
    assert drift([], [finding("link.state", status=status) for status in ("ok", "warning", "not_applicable")] + [silenced]) == []


def test_a_line_as_a_dictionary() -> None:
    assert Difference("node1", "host", "live sysctl", "a = 0", "a = 1").to_dict() == {
        "host": "node1", "stage": "host", "subject": "live sysctl", "was": "a = 0", "should_be": "a = 1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("observed", "subject", "is_explained"),
    [
        (f"MTUBytes=1500 ({NETWORK_FILE}:6)", NETWORK_FILE, True),
        (f"{NETWORK_FILE} is missing, and no other file applies to ens1", NETWORK_FILE, True),
        (f"MTUBytes=1500 ({NETWORK_FILE}.d/site.conf:2)", NETWORK_FILE, False),
        (f"MTUBytes=1500 ({NETWORK_FILE}.d/site.conf:2)", "ens1", False),
        ("systemd-networkd.service is not enabled", "systemd-networkd.service", True),
    ],
)
def test_a_boot_setting_is_explained_only_by_a_change_of_the_file_that_it_names(observed: str, subject: str, is_explained: bool) -> None:
    finding = Finding("network", "network.boot", "node1", "rail 0", "error", observed, "the plan", "x")
    changes = [Difference("node1", "network", subject, "a", "b")]
    assert len(drift(changes, [finding])) == (1 if is_explained else 2)
