# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that speak BGP with their leaves: our plan, what the leaves refuse of a host, and the change of a host that runs.

veth interfaces are no NICs, so the plan has no facts of these hosts. What the module of the role does is run inside them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.render import host_files
from lab import clos
from lab.clos import Clos
from tests.verify.clos import ROOT, address_hosts, datagram, findings, is_clean, plan_of, summary, texts, until
from tests.verify.clos_start import start

APPLY = """
import json, sys
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._routing.apply import RouterPlan, apply_router, compare_router
plan, sys, runner = RouterPlan(**json.load(sys.stdin)), SysRoot(), SubprocessRunner()
change = compare_router(plan, sys, runner, replace_allowed=False)
if change.changed and not change.refusal:
    apply_router(plan, change, runner)
print(json.dumps({"changes": change.words, "refused": change.refusal}))
"""


@pytest.fixture(scope="module")
def peers(network: Clos) -> Iterator[tuple[Clos, RoutedPlane]]:
    """The network as an earlier test has left it, with BGP on its hosts."""
    larger = clos.load(network.name)
    plane = plan_of(larger, hosts_peer=True)
    address_hosts(larger, plane)
    start(larger, texts(plane))
    until(lambda: is_clean(findings(larger, plane)), 30, 0.5)
    yield larger, plane
    for host in plane.hosts:
        clos.stop_daemons(larger, host)


def apply(network: Clos, plane: RoutedPlane, host: str) -> dict[str, Any]:
    """Give a host its plan, as the role does. Returns the differences, and why nothing was changed."""
    files = host_files([plane], host)
    sysctls = dict(line.split(" = ") for line in files[".sysctl"].splitlines())
    words = ["env", f"PYTHONPATH={ROOT}/.venv/collections", sys.executable, "-c", APPLY]
    given = json.dumps({"conf": files[".frr.conf"], "daemons": files[".daemons"], "sysctls": sysctls})
    done: dict[str, Any] = json.loads(network.run(host, *words, stdin=given))
    return done


def vtysh(network: Clos, node: str, *lines: str) -> None:
    network.run(node, "vtysh", *(word for line in ("configure terminal", *lines) for word in ("-c", line)))


def accepted(network: Clos, switch: str, neighbor: str) -> set[str]:
    """Return the prefixes that a switch has accepted from a neighbor."""
    table = json.loads(network.run(switch, "vtysh", "-c", "show bgp ipv4 unicast json"))["routes"]
    return {prefix for prefix, paths in table.items() if any(hop.get("hostname") == neighbor for path in paths for hop in path["nexthops"])}


def test_hosts_have_all_routes_no_default_route_and_forward_nothing(peers: tuple[Clos, RoutedPlane]) -> None:
    network, _plane = peers
    assert accepted(network, "leaf1", "host1") == {"10.1.0.67/32"}
    (route,) = json.loads(network.run("host1", "ip", "-j", "route", "show", "10.1.1.67"))
    assert (route["protocol"], route["dev"]) == ("bgp", "rail0")
    for family in ("-4", "-6"):
        assert network.run("host1", "ip", family, "route", "show", "default") == ""
    assert network.run("host1", "sysctl", "-n", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding").split() == ["0", "0"]
    assert datagram(network) == "10.1.0.67 8972\n"


def test_packets_with_the_address_of_a_rail_use_its_table_and_not_the_routes_of_bgp(peers: tuple[Clos, RoutedPlane]) -> None:
    """The rule and the table are those of a rail with `routes`. RDMA sends from the address of the rail."""
    network, _plane = peers
    words = {"rule": "from 10.1.0.67 lookup 1000 priority 1000", "route": "10.1.0.0/16 via 10.1.0.66 table 1000"}
    for what, text in words.items():
        network.run("host1", "ip", what, "add", *text.split())
    try:
        [unbound] = json.loads(network.run("host1", "ip", "-j", "route", "get", "10.1.1.67"))
        [bound] = json.loads(network.run("host1", "ip", "-j", "route", "get", "10.1.1.67", "from", "10.1.0.67"))
    finally:
        for what, text in words.items():
            network.run("host1", "ip", what, "del", *text.split())
    assert "table" not in unbound
    assert unbound.get("gateway", "") != "10.1.0.66"
    assert (bound["table"], bound["gateway"]) == ("1000", "10.1.0.66")


def test_a_leaf_refuses_what_is_not_the_address_of_its_host_and_the_role_removes_it(peers: tuple[Clos, RoutedPlane]) -> None:
    network, plane = peers
    apply(network, plane, "host1")
    dropped = {port: peer["connectionsDropped"] for port, peer in summary(network, "host1").items()}
    others = ("172.31.0.0/24", "0.0.0.0/0", "10.1.1.67/32")
    vtysh(network, "host1", "route-map rail0-OUT permit 20")
    vtysh(network, "host1", "router bgp 4201000033", "address-family ipv4 unicast", *(f"network {prefix}" for prefix in others))
    until(lambda: "announces" in str(findings(network, plane)), 10, 0.5)
    assert accepted(network, "leaf1", "host1") == {"10.1.0.67/32"}
    [(status, subject, observed)] = findings(network, plane)
    assert (status, subject) == ("error", "host1")
    for words in ("172.31.0.0/24 (the management network)", "0.0.0.0/0 (a default route", "10.1.1.67/32"):
        assert words in observed
    done = apply(network, plane, "host1")
    assert done["refused"] == ""
    for prefix in others:
        assert any(prefix in line for line in done["changes"] if line.startswith("remove: ")), done
    until(lambda: is_clean(findings(network, plane)), 20, 0.5)
    assert apply(network, plane, "host1") == {"changes": [], "refused": ""}
    assert (network.folder.node("host1") / "etc/frr.conf").read_text() == texts(plane)["host1"]
    assert network.run("host1", "sysctl", "-n", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding").split() == ["0", "0"]
    assert {port: peer["connectionsDropped"] for port, peer in summary(network, "host1").items()} == dropped


def test_a_host_with_a_job_is_not_changed(peers: tuple[Clos, RoutedPlane], tmp_path: Path) -> None:
    network, plane = peers
    job = tmp_path / "slurmstepd"
    shutil.copy(str(shutil.which("sleep")), job)
    vtysh(network, "host2", "router bgp 4201000161", "address-family ipv4 unicast", "maximum-paths 8")
    with subprocess.Popen(network.argv("host2", [job, "300"])) as running:
        try:
            until(lambda: "job process" in apply(network, plane, "host2")["refused"], 10, 0.5)
        finally:
            network.run("host2", "pkill", "-x", "slurmstepd")
            running.wait(timeout=10)
    assert "maximum-paths 8" in network.run("host2", "vtysh", "-c", "show running-config")


def test_a_host_whose_frr_stopped_is_named_with_its_leaf(peers: tuple[Clos, RoutedPlane]) -> None:
    network, plane = peers
    clos.stop_daemons(network, "host2")
    try:
        until(
            lambda: {("unknown", "host2"), ("error", "leaf2 swp33 to host2 rail0")} == {each[:2] for each in findings(network, plane)},
            15,
            0.5,
        )
    finally:
        start(network, {"host2": texts(plane)["host2"]})
    until(lambda: is_clean(findings(network, plane)), 20, 0.5)
