# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The grandmasters of all hosts side by side."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.grandmaster import check_grandmasters
from tests.unit.builders.known import known_of

GM, OTHER, ME = "56fc6c.fffe.b69e69", "0c42a1.fffe.000001", "5efc9f.fffe.388131"


def host(
    grandmaster: str | None = GM, *, state: str = "UNCALIBRATED", planned: str | None = None, identity: str = ME, domain: int = 0
) -> Any:
    answer = {"ports": {"1": state}, "grandmaster": grandmaster, "identity": identity, "domain": domain}
    ptp = {"domain": domain, "grandmaster": planned}
    return {"intent": {"host": {"time": {"ptp": ptp}}}, "facts": {"time": {"ptp": None if grandmaster is None else answer}}}


def found(*hosts: Any) -> list[Finding]:
    by_host = check_grandmasters(known_of({f"node{number}": each for number, each in enumerate(hosts, start=1)}))
    findings = [finding for (finding,) in by_host.values()]
    assert {(each.stage, each.check) for each in findings} == {("host", "alike.grandmaster")}
    return findings


def statuses(*hosts: Any) -> list[str]:
    return [each.status for each in found(*hosts)]


def test_one_grandmaster() -> None:
    assert statuses(host(state="MASTER", identity=GM), host(), host()) == ["ok", "ok", "ok"]


def test_the_odd_host_is_named_with_the_address_of_its_grandmaster() -> None:
    findings = found(host(), host(), host(OTHER))
    assert [each.status for each in findings] == ["ok", "ok", "error"]
    assert findings[2].observed == f"follows {OTHER}; {GM} on 2 of 3 hosts (node1, node2)"
    assert "0c:42:a1:00:00:01" in findings[2].remedy


def test_without_a_majority_the_fleet_is_warned_and_no_host_accused() -> None:
    *hosts, finding = found(host(), host(OTHER))
    assert [each.status for each in hosts] == ["not_applicable", "not_applicable"]
    assert (finding.host, finding.status) == ("the fleet", "warning")
    assert finding.observed == f"hosts follow {GM} on 1 of 2 hosts (node1), {OTHER} on 1 of 2 hosts (node2)"


def test_domains_are_apart() -> None:
    assert statuses(host(), host(), host(OTHER, domain=7)) == ["ok", "ok", "ok"]


def test_the_planned_grandmaster_counts_more_than_the_majority() -> None:
    hosts = [host(GM, state="MASTER", identity=GM, planned="node1"), host(OTHER, planned="node1"), host(OTHER, planned="node1")]
    findings = found(*hosts)
    assert [each.status for each in findings] == ["ok", "error", "error"]
    assert (findings[1].observed, findings[1].expected) == (f"follows {OTHER}", f"{GM}, of node1")


@pytest.mark.parametrize("unread", [host(None), host(state="LISTENING")])
def test_a_host_without_a_grandmaster_is_unknown(unread: Any) -> None:
    assert statuses(host(), host(), unread) == ["ok", "ok", "unknown"]


def test_a_misspelt_grandmaster_has_its_neighbour() -> None:
    (finding, *_others) = found(host(planned="nod1"), host(planned="nod1"))
    assert finding.status == "unknown"
    assert "did you mean 'node1'?" in finding.observed


def test_without_planned_ptp_nothing_is_compared() -> None:
    bare = {"intent": {"host": {"time": {"ptp": None}}}, "facts": {"time": {}}}
    assert statuses(bare, host(), host()) == ["not_applicable", "ok", "ok"]
    assert check_grandmasters(known_of({"node1": {"intent": None, "facts": None}})) == {"node1": []}
