# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults between the switches, seen from the hosts and by the gate: a cut uplink under traffic, and several others by name."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from lab import clos, cluster
from lab.clos import Clos
from lab.cluster import Lab
from lab.shell import run
from tests.verify.clos import are_established, findings, is_clean, paths, until
from tests.verify.clos_traffic import UPLINKS, sent, write
from tests.verify.site import Site

#: The subject and a part of the text of the findings on four faults that are made together.
FAULTS = (
    ("leaf1 swp6", "its MTU is 1500; the rails have 9000"),
    ("leaf2", "missing on leaf1, spine1, spine2"),
    ("spine2", "BFD is not up on swp1"),
    ("spine1", "net.ipv4.ip_forward is 0, planned 1: it does not forward"),
)


def test_traffic_goes_on_over_the_other_spine_when_an_uplink_is_cut(lab: Lab, network: Clos, plane: RoutedPlane, site: Site) -> None:
    peer = lab.plan.node("node3").rails[0].address.partition("/")[0]
    with ThreadPoolExecutor(2) as pool:
        server = pool.submit(write, lab, "node3")
        time.sleep(4)
        client = pool.submit(write, lab, "node1", peer)
        idle = sent(network)
        until(lambda: max(sent(network)[link] - idle[link] for link in UPLINKS) > 5e6, 30, 0.5)
        moved = {link: count - idle[link] for link, count in sent(network).items()}
        used = max(UPLINKS, key=lambda link: moved[link])
        other = next(link for link in UPLINKS if link != used)
        clos.cut(network, used)
        try:
            cut_at = sent(network)
            until(lambda: sent(network)[other] - cut_at[other] > 5e6, 20, 0.5)
            ended = client.result()
            assert ended.status == 0, ended.stdout + ended.stderr
            assert server.result().status == 0
            after = {link: count - cut_at[link] for link, count in sent(network).items()}
            print(f"bytes before the cut: {moved}; after the cut of {used}: {after}")
            print(ended.stdout.strip().splitlines()[-2])
            assert after[used] == 0
            done = site.run("fabric")
            assert done.returncode != 0
            bad = [line for line in site.lines("findings.jsonl") if line["check"] == "fabric.bgp"]
            port = used.replace("/", " swp")
            assert [(line["status"], line["subject"]) for line in bad] == [("error", f"{port} to {UPLINKS[used]} swp1")]
            assert "has no carrier or is disabled; leaf1 has 1 of 2 uplinks with a good session" in bad[0]["observed"]
        finally:
            clos.restore(network, used)
    until(lambda: are_established(network, plane) and is_clean(findings(network, plane)), 20, 0.5)
    until(lambda: paths(network, "leaf1", plane.routers["leaf2"].host_ports[0].prefix) == ["swp5", "swp6"], 10, 0.5)


@pytest.mark.fault("switch-faults")
def test_faults_of_the_switches_are_named_and_gone_after_the_repair(network: Clos, plane: RoutedPlane, site: Site) -> None:
    def vtysh(switch: str, *lines: str) -> None:
        network.run(switch, "vtysh", *(word for line in ("configure terminal", *lines) for word in ("-c", line)))

    clos.set_mtu(network, "leaf1/6", 1500)
    vtysh("leaf2", "no ip prefix-list OWN seq 10")
    vtysh("spine2", f"router bgp {plane.routers['spine2'].asn}", "no neighbor FABRIC bfd")
    network.run("spine1", "sysctl", "-qw", "net.ipv4.ip_forward=0")
    try:
        until(lambda: len([each for each in findings(network, plane) if each[0] == "error"]) >= 6, 30, 1)
        done = site.run("fabric")
        assert done.returncode != 0
        found = [(line["subject"], line["observed"]) for line in site.lines("findings.jsonl") if line["check"] == "fabric.bgp"]
        for subject, words in FAULTS:
            assert [observed for at, observed in found if at == subject and words in observed], (subject, words, found)
    finally:
        clos.restore(network, "leaf1/6")
        done = site.run("routed", "-e", "frr_allowed=true")
    assert done.returncode == 0, done.stdout
    until(lambda: is_clean(findings(network, plane)), 30, 0.5)


def test_another_asn_is_named(network: Clos, plane: RoutedPlane) -> None:
    planned = (network.folder.node("leaf1") / "etc/frr.conf").read_text()
    clos.route(network, {"leaf1": planned.replace("4200000101", "4200000199")})
    try:
        wrong = "ASN 4200000199, router ID 10.0.0.101; planned: ASN 4200000101"
        until(lambda: [each[2] for each in findings(network, plane) if each[1] == "leaf1" and wrong in each[2]], 20, 0.5)
    except AssertionError:
        pytest.fail(str(findings(network, plane)))
    finally:
        clos.route(network, {"leaf1": planned})
    until(lambda: are_established(network, plane) and is_clean(findings(network, plane)), 30, 0.5)


def test_a_cut_host_cable_takes_the_carrier_of_the_leaf(lab: Lab, network: Clos) -> None:
    program = ["ip", "-n", f"rdma-clos-{network.name}-leaf2", "-br", "link", "show", "dev", "swp3"]
    cluster.cable(lab.plan.name, "node4", 0, {"cut": True})
    try:
        assert "DOWN" in run(program)
    finally:
        cluster.cable(lab.plan.name, "node4", 0, {"restore": True})
    assert "UP" in run(program).replace("LOWER_UP", "")
