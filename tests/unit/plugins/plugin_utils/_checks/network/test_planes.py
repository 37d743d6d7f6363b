# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the network gate says of management that depends on a rail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import check_management
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.planes import check_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_intent

HEALTHY = lab_facts()["planes"]


def judged(role: str = "compute", **planes: Any) -> dict[str, Finding]:
    """Check → its finding on a host whose planes are changed. ens1 is rail0."""
    intent = lab_intent()
    intent["rails"] = [{**rail, "role": role} for rail in intent["rails"]]
    facts = {**lab_facts(), "planes": {**HEALTHY, **planes}}
    return {finding.check: finding for finding in check_planes("node1", intent, from_dict(facts))}


def test_a_host_whose_management_needs_no_rail() -> None:
    found = judged()
    assert {check: finding.status for check, finding in found.items()} == dict.fromkeys(
        ("planes.route", "planes.dns", "planes.services", "planes.nfs", "planes.forward", "planes.ssh", "planes.listeners"), OK
    )
    assert found["planes.route"].observed == "enp0s2"
    assert found["planes.dns"].observed == "10.0.2.3"


DEFAULT = {"netdev": "ens1", "gateway": "192.168.100.254", "metric": 0}
SERVER = {"address": "192.168.100.53", "netdev": "ens1"}


def service(kind: str, address: str = "192.168.100.5") -> dict[str, Any]:
    return {"kind": kind, "address": address, "netdev": "ens1", "where": "/etc/FILE"}


def listener(program: str, port: int, address: str, netdev: str | None = None) -> dict[str, Any]:
    return {"program": program, "port": port, "address": address, "netdev": netdev}


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
        (
            "planes.route",
            {"default_routes": [{**DEFAULT, "gateway": "fe80::1", "version": 6}]},
            ERROR,
            "a default route of IPv6 through ens1, which is rail0",
        ),
        ("planes.services", {"services": [service("NTP server")]}, ERROR, "192.168.100.5 is reached through ens1, which is rail0"),
        (
            "planes.services",
            {"services": [service("control node", "fd00:100::9")]},
            ERROR,
            "fd00:100::9 is reached through ens1, which is rail0",
        ),
        ("planes.nfs", {"services": [service("NFS server")]}, WARNING, "192.168.100.5 is reached through ens1, which is rail0"),
        (
            "planes.listeners",
            {"listeners": [listener("slurmd", 6818, "192.168.100.1", "ens1")]},
            ERROR,
            "port 6818 listens on 192.168.100.1, the address of rail0",
        ),
        (
            "planes.listeners",
            {"listeners": [listener("slurmd", 6818, "fd00:100::1", "ens1")]},
            ERROR,
            "port 6818 listens on fd00:100::1, the address of rail0",
        ),
        (
            "planes.listeners",
            {"listeners": [listener("sshd", 22, "0.0.0.0"), listener("sshd", 2222, "192.168.100.1", "ens1")]},
            WARNING,
            "port 2222 listens on 192.168.100.1, the address of rail0",
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
    found = judged(default_routes=[{"netdev": "ens1", "gateway": "fe80::1", "metric": 1024, "version": 6}])["planes.route"]
    assert (found.status, found.observed) == (ERROR, "a default route of IPv6 through ens1, which is rail0")
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
    found = check_planes("node1", lab_intent(), from_dict(facts))
    assert [finding.status for finding in found] == [UNKNOWN] * 7
    assert judged(forwarding=None)["planes.forward"].status == UNKNOWN
    assert judged(ssh=None)["planes.ssh"].status == UNKNOWN
    assert judged(listeners=None)["planes.listeners"].status == UNKNOWN
    blind = judged(name_servers=None, services=None, way_error="timed out")
    for check in ("planes.route", "planes.dns", "planes.services", "planes.nfs"):
        assert (blind[check].status, "timed out" in blind[check].observed) == (UNKNOWN, True), check
    routed = judged(default_routes=[DEFAULT], way_error="timed out")
    assert routed["planes.route"].status == ERROR, "what was read is reported"


def test_a_host_without_any_route_or_server_is_well() -> None:
    found = judged(default_routes=[], name_servers=[])
    assert (found["planes.route"].observed, found["planes.dns"].observed) == ("no default route", "no name server")


@pytest.mark.parametrize(
    ("planes", "check", "subject"),
    [
        ({"services": [service("syslog server")]}, "planes.services", "syslog server 192.168.100.5"),
        ({"services": [service("NFS server")]}, "planes.nfs", "NFS server 192.168.100.5"),
        ({"listeners": [listener("kubelet", 10250, "192.168.100.1")]}, "planes.listeners", "kubelet, port 10250"),
    ],
)
def test_the_subject_names_the_service(planes: dict[str, Any], check: str, subject: str) -> None:
    assert judged(**planes)[check].subject == subject


def test_a_name_is_not_resolved_and_a_daemon_on_all_addresses_is_well() -> None:
    found = judged(services=[{**service("NTP server", "ntp.example"), "netdev": None}], listeners=[listener("kubelet", 10250, "::")])
    assert (found["planes.services"].status, found["planes.services"].observed) == (OK, "NTP server ntp.example (a name, not resolved)")
    assert (found["planes.listeners"].status, found["planes.listeners"].observed) == (OK, "kubelet: not on rails alone")


def test_a_daemon_that_also_listens_on_another_address_of_its_port_is_well() -> None:
    both = [listener("slurmd", 6818, "192.168.100.1", "ens1"), listener("slurmd", 6818, "10.0.2.15", "enp0s2")]
    assert judged(listeners=both)["planes.listeners"].status == OK


def test_the_servers_of_a_resolver_on_the_host_are_not_known() -> None:
    assert judged(name_servers=[{"address": "127.0.0.1", "netdev": None}])["planes.dns"].status == NOT_APPLICABLE


def test_one_network_for_everything_is_one_warning() -> None:
    facts = {**lab_facts(), "planes": {**HEALTHY, "default_routes": [DEFAULT], "name_servers": [SERVER]}}
    facts["session"] = {"address": "192.168.100.1", "netdev": "ens1"}
    intent, seen = lab_intent(), from_dict(facts)
    found = [*check_management("node1", intent, seen), *check_planes("node1", intent, seen)]
    assert [each.check for each in found if each.status != NOT_APPLICABLE] == ["planes.management"]
    assert (found[0].status, "ens1, which is rail0" in found[0].observed) == (WARNING, True)


def test_an_address_that_is_not_planned_belongs_to_the_rail_of_its_interface() -> None:
    """The addresses of port 22 and of the daemons are separate parts of the facts, which a host sends as JSON."""
    planes = {"ssh": ["fd00:100::1"], "listeners": [listener("sshd", 22, "fd00:100::1", "ens1"), listener("kubelet", 10250, "::", None)]}
    found = judged(**json.loads(json.dumps(planes)))
    assert found["planes.ssh"].observed == "port 22 listens on fd00:100::1, the address of rail0"
    assert found["planes.ssh"].status == ERROR
