# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails whose hosts are in different subnets, behind routers: each packet leaves by the rail whose address it has, with every manager.

The routers are addresses on the lab's bridges, and the forwarding of its network namespace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import namespace
from lab.cluster import Lab
from lab.plan import Node
from tests.verify.driver import Hosts
from tests.verify.nodes import run_with_netdev as run
from tests.verify.site import Site

#: No redirects: the hosts share a cable, and are to believe that only the router leads to the others.
SYSCTL = {"ip_forward": 1, **{f"conf/{name}/send_redirects": 0 for name in ("all", "rail0", "rail1")}, "conf/all/rp_filter": 0}


def subnet(rail: int, node: Node) -> str:
    """The first three bytes of a rail's subnet, which is the node's own."""
    return f"172.{20 + rail}.{node.index}"


@pytest.fixture(scope="module")
def routed(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The lab with a subnet for each rail of each node, and routers between them."""
    inventory = yaml.safe_load(lab.folder.inventory.read_text())
    for node in lab.plan.nodes:
        for number, rail in enumerate(inventory["all"]["hosts"][node.name]["rdma_rails"]):
            at = subnet(number, node)
            rail.update(address=f"{at}.1/24", gateway=f"{at}.254", routes=[f"172.{20 + number}.0.0/16"])
    folder = tmp_path_factory.mktemp("routed")
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))

    def route(verb: str) -> None:
        for rail in range(2):
            for node in lab.plan.nodes:
                namespace.ip(lab.plan.namespace, "address", verb, f"{subnet(rail, node)}.254/24", "dev", f"rail{rail}")

    def forward() -> None:
        for key, value in SYSCTL.items():
            Path(f"/proc/sys/net/ipv4/{key}").write_text(str(value))

    namespace.inside(lab.plan.namespace, forward)
    route("add")
    yield Site(folder / "hosts.yml", folder)
    route("del")


def by_table(lab: Lab, node: Node) -> list[str]:
    """For each pair of a rail of the node and another node's, what is wrong with the way of a packet."""
    wrong = []
    for other in (each for each in lab.plan.nodes if each != node):
        for rail in range(2):
            way = json.loads(run(lab, node, f"ip -j route get {subnet(rail, other)}.1 from {subnet(rail, node)}.1"))[0]
            netdev = run(lab, node, "echo $netdev", rail=rail)
            if (way["dev"], way.get("gateway"), way.get("table")) != (netdev, f"{subnet(rail, node)}.254", str(1000 + rail)):
                wrong.append(f"{node.name} → {other.name}, rail{rail}: {way}")
    return wrong


def test_every_packet_leaves_by_its_rail(lab: Lab, routed: Site) -> None:
    done = routed.run("network", "-e", "network_change_allowed=true")
    assert done.returncode == 0, done.stdout
    found = {(line["host"], line["status"]) for line in routed.lines("findings.jsonl") if line["check"] == "network.route"}
    assert found == {(node.name, "ok") for node in lab.plan.nodes}
    assert [line for node in lab.plan.nodes for line in by_table(lab, node)] == []
    for node in lab.plan.nodes:
        for rail in range(2):
            peers = [f"{subnet(rail, other)}.1" for other in lab.plan.nodes if other != node]
            run(lab, node, "; ".join(f"ping -c 2 -W 2 -q -I {subnet(rail, node)}.1 {peer}" for peer in peers))


def test_a_second_run_changes_nothing(routed: Site) -> None:
    assert routed.run("network").returncode == 0
    assert routed.lines("changes.jsonl") == []


@pytest.mark.fault("lost-rule")
def test_a_lost_rule_and_a_lost_route_are_named_and_come_back(lab: Lab, routed: Site) -> None:
    # A manager may have added the same rule once more, with its own protocol.
    for node in lab.plan.nodes:
        run(lab, node, "while ip rule del priority 1000 2>/dev/null; do :; done; ip route del default table 1001")
    named = {(line["host"], line["was"]) for line in routed.drift() if line["stage"] == "network"}
    for node in lab.plan.nodes:
        assert (node.name, f"no rule for {subnet(0, node)}.1/32") in named, named
        assert (node.name, f"no route to 0.0.0.0/0 by {subnet(1, node)}.254 in table 1001") in named, named
    assert routed.run("network").returncode == 0
    assert [line for node in lab.plan.nodes for line in by_table(lab, node)] == []


@pytest.mark.parametrize("host", ["node1", "node2", "node3"])
def test_the_rules_are_back_after_a_reboot(lab: Lab, hosts: Hosts, routed: Site, host: str) -> None:
    assert routed.evidence.exists()
    hosts.reboot(host)
    assert by_table(lab, lab.plan.node(host)) == []


def test_pairs_are_measured_across_the_routers(lab: Lab, routed: Site) -> None:
    done = routed.run("pairs", "-e", "rdma_measure=true")
    assert done.returncode == 0, done.stdout
    assert len(routed.results()) == 2 * 3
    assert {line["status"] for line in routed.lines("findings.jsonl") if line["check"] == "network.path_mtu"} == {"ok"}, lab.plan.name


def test_a_route_that_left_the_intent_goes(lab: Lab, routed: Site, tmp_path: Path) -> None:
    """Only the route that a file of the collection recorded; a route of somebody else to the same hosts stays.

    But NetworkManager, to which node2 belongs, removes all that its profile does not have when it applies that again.
    """
    (tmp_path / "hosts.yml").write_text(routed.inventory.read_text().replace(".0.0/16", ".0.0/20"))
    smaller = Site(tmp_path / "hosts.yml", tmp_path)
    foreign = {node: f"172.20.{100 + node.index}.0/24" for node in lab.plan.nodes}
    for node in lab.plan.nodes:
        run(lab, node, f"ip route add {foreign[node]} via {subnet(0, node)}.254 dev $netdev proto static")
    assert smaller.run("network").returncode == 0
    for node in lab.plan.nodes:
        routes = {route["dst"] for route in json.loads(run(lab, node, "ip -j route show proto static"))}
        assert {route for route in routes if route.endswith("/16")} == set(), routes
        assert {"172.20.0.0/20", "172.21.0.0/20"} <= routes, routes
        if node.name != "node2":
            assert foreign[node] in routes, routes
            run(lab, node, f"ip route del {foreign[node]}")
    assert smaller.run("network").returncode == 0
    assert smaller.lines("changes.jsonl") == []


def test_without_routers_the_rules_go(lab: Lab, site: Site, routed: Site) -> None:
    assert routed.evidence.exists()
    done = site.run("network", "-e", "network_change_allowed=true")
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        assert "lookup 100" not in run(lab, node, "ip rule show")
        assert "172.2" not in run(lab, node, "ip route show proto static")
