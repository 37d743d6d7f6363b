# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From nothing: first the switches, then the hosts. Soft-RoCE crosses leaves and spines on both rails."""

from __future__ import annotations

import json
import re

from lab import clos
from lab.clos import Clos
from lab.cluster import Lab
from tests.verify.clos import are_established, findings, is_clean, paths, plan_of, until
from tests.verify.nodes import assert_rails, say
from tests.verify.site import Site


def test_the_switches_get_their_plan(network: Clos, site: Site) -> None:
    plane = plan_of(network)
    assert paths(network, "leaf1", "10.1.1.66/31") == []
    done = site.run("routed", "-e", "frr_allowed=true")
    assert done.returncode == 0, done.stdout
    until(lambda: are_established(network, plane) and is_clean(findings(network, plane)), 20, 0.5)
    assert paths(network, "leaf1", "10.1.1.66/31") == ["swp1", "swp2"]


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
    print("bytes sent by the leaves to the spines:", {port: moved[port] for port in ("leaf1/1", "leaf1/2", "leaf2/1", "leaf2/2")})
    # A pair sends 200 messages of 64 KiB one way, 13 MB, and a rail has pairs in both directions.
    assert moved["leaf1/1"] + moved["leaf1/2"] > 13e6
    assert moved["leaf2/1"] + moved["leaf2/2"] > 13e6


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
