# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A planned network, from nothing: first the switches, then the hosts. Soft-RoCE crosses leaves and spines on both rails."""

from __future__ import annotations

import json
import re

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from lab import clos
from lab.clos import Clos
from lab.cluster import Lab
from tests.verify.clos import are_established, findings, is_clean, paths, until
from tests.verify.nodes import assert_rails, say
from tests.verify.planned_clos import PlannedClos
from tests.verify.site import Site

UPLINKS = ("leaf1/5", "leaf1/6", "leaf2/5", "leaf2/6")


def test_the_lab_is_the_planned_network(lab: Lab, network: Clos, planned: PlannedClos) -> None:
    """The cables of the lab are the file that the plan writes, so the tests' plan is that of the lab."""
    assert network.folder.cabling.read_text() == planned.cabling
    assert network.shape.switches == ["leaf1", "leaf2", "spine1", "spine2"]
    assert network.shape.host_names == [node.name for node in lab.plan.nodes]


def test_the_switches_get_their_plan(network: Clos, plane: RoutedPlane, site: Site) -> None:
    far = plane.routers["leaf2"].host_ports[0].prefix
    assert paths(network, "leaf1", far) == []
    done = site.run("routed", "-e", "frr_allowed=true")
    assert done.returncode == 0, done.stdout
    until(lambda: are_established(network, plane) and is_clean(findings(network, plane)), 20, 0.5)
    assert paths(network, "leaf1", far) == ["swp5", "swp6"]


def test_the_hosts_are_built_and_pairs_cross_the_spines(lab: Lab, network: Clos, site: Site) -> None:
    before = clos.counters(network)
    done = site.run("site")
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        assert_rails(lab, node)
    found = site.lines("findings.jsonl")
    routed = [(line["status"], line["observed"]) for line in found if line["check"] == "fabric.bgp"]
    assert routed == [("ok", "4 sessions between 4 switches are Established, and all prefixes have all their paths")]
    for check in ("network.route", "network.path_mtu"):
        assert {line["status"] for line in found if line["check"] == check} == {"ok"}, check
    assert {line["host"] for line in found if line["check"] == "pair.bandwidth" and line["status"] == "ok"} == {
        node.name for node in lab.plan.nodes
    }
    moved = {port: each["sent_bytes"] - before[port]["sent_bytes"] for port, each in clos.counters(network).items()}
    print("bytes sent by the leaves to the spines:", {port: moved[port] for port in UPLINKS})
    # A pair sends 200 messages of 64 KiB one way, 13 MB, and a rail has pairs in both directions.
    assert moved["leaf1/5"] + moved["leaf1/6"] > 13e6
    assert moved["leaf2/5"] + moved["leaf2/6"] > 13e6


def test_each_packet_leaves_by_its_rail_and_passes_a_leaf_a_spine_and_a_leaf(lab: Lab) -> None:
    first, last = lab.plan.node("node1"), lab.plan.node("node4")
    for rail, there in zip(first.rails, last.rails, strict=True):
        mine, other = rail.address.partition("/")[0], there.address.partition("/")[0]
        [way] = json.loads(say(lab, first, f"ip -j route get {other} from {mine}"))
        assert (way["gateway"], way["table"]) == (rail.gateway, str(1000 + rail.index))
        answered = say(lab, first, f"ping -c 2 -W 2 -I {mine} {other}")
        assert re.search(r"ttl=61\b", answered), answered


def test_a_second_run_changes_nothing(network: Clos, site: Site) -> None:
    done = site.run("routed", "-e", "frr_allowed=true")
    assert done.returncode == 0, done.stdout
    assert set(re.findall(r"^(?:leaf|spine)\d .*changed=(\d+)", done.stdout, re.M)) == {"0"}
    done = site.run("site")
    assert done.returncode == 0, done.stdout
    assert site.lines("changes.jsonl") == [], network.name
