# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings on the way through a stage, and of stages that look at nothing."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import cause_key, is_under_way, lost, mark_symptoms, under_way

OTHER = Finding("link", "link.state", "node1", "rail 0", "ok", "ACTIVE", "ACTIVE")


def test_a_host_under_way_stops_the_gate_until_it_has_come_there() -> None:
    (found,) = stopping([under_way("link", "node1")])
    assert (found.stage, found.check, found.host, found.status) == ("link", "stage.completed", "node1", "unknown")
    assert found.expected == "every task of the stage done, and the host at its gate"


def test_a_lost_host_says_why_and_what_to_do() -> None:
    assert lost("link", "node1", "it cannot be reached: timed out") == Finding(
        "link", "stage.completed", "node1", "stage", "unknown", "it cannot be reached: timed out",
        "every task of the stage done, and the host at its gate",
        "Fix the cause on node1, then run the same command again. Completed work is kept.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([under_way("link", "node1")], True),
        ([OTHER], False),
        ([under_way("link", "node1"), OTHER], False),
        ([], False),
    ],
)
def test_only_a_host_that_has_no_more_than_begun_is_under_way(findings: list[Finding], expected: bool) -> None:
    assert is_under_way(findings) is expected


RAIL0, RAIL1 = "rail 0 (rail0, 0000:21:00.0, ens1)", "rail 1 (rail1, 0000:41:00.0, ens2)"


def found(check: str, subject: str, status: str = "unknown", observed: str = "no RDMA device", **more: str) -> Finding:
    return Finding(check.split(".", maxsplit=1)[0], check, "node3", subject, status, observed, "as planned", **more)


NO_DEVICE = found("driver.device", RAIL0, "error")


def marks(findings: list[Finding], *earlier: Finding) -> list[str | None]:
    return [each.caused_by for each in mark_symptoms(findings, earlier)]


def test_one_missing_device_explains_what_every_later_gate_says_of_its_rail() -> None:
    symptoms = [
        found("link.state", RAIL0),
        found("network.gid", RAIL0),
        found("nccl.hca", "NCCL_IB_HCA", observed="rail0 has no RDMA device"),
        found("pair.bandwidth", "rail0", observed="no RDMA device, or no GID for its address"),
    ]
    assert cause_key(NO_DEVICE) == f"driver.device on {RAIL0}"
    assert marks([NO_DEVICE, *symptoms]) == [None, *[f"driver.device on {RAIL0}"] * 4]
    assert marks(symptoms, NO_DEVICE) == [f"driver.device on {RAIL0}"] * 4


def test_a_run_of_the_pairs_alone_knows_its_rails_by_its_own_findings() -> None:
    limit = found("network.path_mtu", "rail0", "error")
    assert marks([found("pair.bandwidth", "rail0"), found("pair.bandwidth", "rail1"), limit]) == ["network.path_mtu on rail0", None, None]


def test_another_rail_and_another_kind_of_trouble_stay_findings_of_their_own() -> None:
    others = [
        found("link.state", RAIL1),
        found("network.gid", RAIL0, "error", "none; the GID table has 192.0.2.1"),
        found("network.address", RAIL0),
    ]
    assert marks(others, NO_DEVICE) == [None, None, None]


def test_several_rails_follow_only_if_each_has_a_cause() -> None:
    both = found("nccl.hca", "NCCL_IB_HCA", observed="rail0, rail1 have no RDMA device")
    assert marks([both], NO_DEVICE, found("driver.device", RAIL1, "ok")) == [None]
    assert marks([both], NO_DEVICE, found("driver.device", RAIL1, "error")) == [f"driver.device on {RAIL0}"]


def test_a_cause_that_nobody_sees_explains_nothing() -> None:
    symptom = found("link.state", RAIL0)
    assert marks([symptom], found("driver.device", RAIL0, "error", silenced_by="ada")) == [None]
    assert marks([symptom], found("driver.device", RAIL0, "unknown")) == [None]
    assert marks([symptom], found("driver.device", RAIL0, "ok")) == [None]


def test_two_checks_of_one_missing_card_are_one_cause() -> None:
    nic = found("intent.nic", RAIL0, "error", "no NIC")
    assert marks([found("driver.nic", RAIL0, "error", "no NIC"), found("link.state", RAIL0)], nic) == [f"intent.nic on {RAIL0}"] * 2


def test_what_is_well_follows_from_nothing() -> None:
    assert marks([found("link.state", RAIL0, "ok"), found("link.state", RAIL0, "not_applicable")], NO_DEVICE) == [None, None]


def test_an_address_on_the_nic_that_a_wrong_plan_does_not_name_follows_from_the_plan() -> None:
    wrong = Finding("preflight", "intent.nic", "node3", RAIL1, "error", "no NIC with pci 0000:41:00.0", "as planned")
    address = found("network.address", "interface ens2", "error", "192.168.1.1/24 on ens2 is the address of rail1 (192.168.1.1/24)")
    assert marks([address], wrong) == [f"intent.nic on {RAIL1}"]
    assert marks([address]) == [None]


def test_a_plane_without_its_manager_follows_from_the_port_of_its_host() -> None:
    down = Finding("link", "link.state", "node3", RAIL0, "error", "DOWN", "ACTIVE")
    words = "the subnet manager at LID 1 no longer answers; node3, the planned one, has no active InfiniBand port on rail0"
    plane = found("link.sm", "plane blue", "error", words)
    assert marks([down, plane]) == [None, f"link.state on {RAIL0}"]
    # A manager that died beside a port that works is a cause of its own.
    assert marks([plane]) == [None]
