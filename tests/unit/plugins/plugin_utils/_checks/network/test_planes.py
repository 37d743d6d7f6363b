# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the network gate says of management that depends on a rail."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.planes import check_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_intent

HEALTHY = lab_facts()["planes"]


def judged(role: str = "compute", **planes: Any) -> dict[str, Finding]:
    """Check → its finding on a host whose planes are changed. ens1 is rail0."""
    rails = [{**rail, "role": role} for rail in lab_intent()["rails"]]
    facts = {**lab_facts(), "planes": {**HEALTHY, **planes}}
    return {finding.check: finding for finding in check_planes("node1", rails, from_dict(facts))}


def test_a_host_whose_management_needs_no_rail() -> None:
    found = judged()
    assert {check: finding.status for check, finding in found.items()} == dict.fromkeys(
        ("planes.route", "planes.dns", "planes.forward", "planes.ssh"), OK
    )
    assert found["planes.route"].observed == "enp0s2"
    assert found["planes.dns"].observed == "10.0.2.3"


DEFAULT = {"netdev": "ens1", "gateway": "192.168.100.254", "metric": 0}
SERVER = {"address": "192.168.100.53", "netdev": "ens1"}


@pytest.mark.parametrize(
    ("check", "planes", "status", "words"),
    [
        ("planes.route", {"default_routes": [DEFAULT]}, ERROR, "a default route through ens1, which is rail0"),
        ("planes.dns", {"name_servers": [SERVER]}, ERROR, "192.168.100.53 is reached through ens1, which is rail0"),
        (
            "planes.forward",
            {"forwarding": True},
            WARNING,
            "net.ipv4.ip_forward is 1, so packets can pass between management network and rails",
        ),
        ("planes.ssh", {"ssh": ["192.168.100.1"]}, ERROR, "port 22 listens on 192.168.100.1, the address of rail0"),
    ],
)
def test_each_is_named_and_nothing_else(check: str, planes: dict[str, Any], status: str, words: str) -> None:
    found = judged(**planes)
    assert (found[check].status, found[check].observed) == (status, words)
    assert found[check].remedy.startswith("1. ")
    assert {other for other, finding in found.items() if finding.status != OK} == {check}


def test_a_second_default_route_through_a_rail_counts_whatever_its_metric() -> None:
    assert judged(default_routes=[*HEALTHY["default_routes"], {**DEFAULT, "metric": 9999}])["planes.route"].status == ERROR


def test_a_default_route_of_ipv6_through_a_rail() -> None:
    found = judged(ipv6_default_routes=[{"netdev": "ens1", "gateway": "fe80::1", "metric": 1024}])["planes.route"]
    assert (found.status, found.observed) == (ERROR, "a default route through ens1, which is rail0")
    assert "`ip -6 route del default dev ens1`" in found.remedy
    assert "IPv6AcceptRA=no" in found.remedy


def test_a_storage_rail_may_have_routes_and_servers_behind_it() -> None:
    found = judged("storage", default_routes=[DEFAULT], name_servers=[SERVER], forwarding=True)
    assert {found[check].status for check in ("planes.route", "planes.dns", "planes.forward")} == {OK}


@pytest.mark.parametrize("ssh", [["192.168.100.1", "0.0.0.0"], ["192.168.100.1", "::"], ["192.168.100.1", "10.0.2.15"], [], ["127.0.0.1"]])
def test_an_ssh_daemon_that_also_listens_elsewhere_or_not_at_all_is_no_error(ssh: list[str]) -> None:
    assert judged(ssh=ssh)["planes.ssh"].status == OK


def test_what_was_not_read_is_unknown() -> None:
    facts = {**lab_facts(), "planes": None}
    found = check_planes("node1", lab_intent()["rails"], from_dict(facts))
    assert [finding.status for finding in found] == [UNKNOWN] * 4
    assert judged(forwarding=None)["planes.forward"].status == UNKNOWN
    assert judged(ssh=None)["planes.ssh"].status == UNKNOWN


def test_a_host_without_any_route_or_server_is_well() -> None:
    found = judged(default_routes=[], name_servers=[])
    assert (found["planes.route"].observed, found["planes.dns"].observed) == ("no default route", "no name server")
