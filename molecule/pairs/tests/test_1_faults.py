# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cable that is slow or loses packets, a port with a small MTU, a machine that loses its power: each is named, and nothing else is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from lab import cluster, namespace, remote
from lab.cluster import Lab
from tests.verify.patience import until
from tests.verify.site import Site

#: Between the planned MTU and 1500, and too small for RoCE packets of 4096 bytes.
SMALL_MTU = 4000
#: One measurement: 200 messages of 64 KiB.
A_PAIR_BYTES = 200 * 65536
Cable = tuple[str, int, dict[str, Any]]


@pytest.fixture(params=[("node2", 0, {"rate": "20mbit"}), ("node4", 0, {"loss": 5})], ids=["slow", "lossy"])
def bad_cable(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Cable]:
    node, rail, change = request.param
    cluster.cable(lab.plan.name, node, rail, change)
    yield request.param
    cluster.cable(lab.plan.name, node, rail, {"restore": True})


def stopping(site: Site) -> set[tuple[str, str]]:
    """(host, subject) of what stops the gate of the pairs."""
    return {(line["host"], line["subject"]) for line in site.lines("findings.jsonl") if line["status"] in ("error", "unknown")}


def blamed(answer: str) -> list[str]:
    """The verdicts that the summary reports."""
    found = re.search(r"^To blame:\n((?:  .*\n)+)", answer, re.M)
    return [] if found is None else found.group(1).splitlines()


@pytest.mark.fault("bad-cable")
def test_a_bad_cable_is_named_and_nothing_else(site: Site, bad_cable: Cable) -> None:
    node, rail, _change = bad_cable
    done = site.run("pairs", "-e", "rdma_measure=true")
    print("\n".join(blamed(done.stdout)))
    assert done.returncode != 0, done.stdout
    assert stopping(site) == {(node, f"rail{rail}")}, done.stdout
    (verdict,) = blamed(done.stdout)
    assert verdict.startswith(f"  {node}, rail{rail}: 3 of 3 partners "), done.stdout
    assert "confirmed" in verdict


@pytest.mark.fault("small-mtu-of-a-port")
def test_a_switch_port_with_a_small_mtu_is_named_as_that(lab: Lab, site: Site) -> None:
    """Only what is sent to the node is dropped, as by a port of a switch. Measurements fail too, and follow from it."""
    cluster.cable(lab.plan.name, "node2", 0, {"mtu": SMALL_MTU})
    try:
        done = site.run("pairs", "-e", "rdma_measure=true")
    finally:
        cluster.cable(lab.plan.name, "node2", 0, {"restore": True})
    assert done.returncode != 0, done.stdout
    assert stopping(site) == {("node2", "rail0")}, done.stdout
    found = {line["check"]: line for line in site.lines("findings.jsonl") if line["status"] in ("error", "unknown")}
    said = re.fullmatch(
        r"packets of 9000 bytes from node1, node3, node4 do not arrive; the largest that passes has (\d+) bytes",
        found["network.path_mtu"]["observed"],
    )
    assert said is not None, found["network.path_mtu"]
    # A port of Linux's bridge leaves room for a VLAN tag.
    assert int(said[1]) == SMALL_MTU + 4
    assert {line["caused_by"] for check, line in found.items() if check != "network.path_mtu"} <= {"network.path_mtu on rail0"}, done.stdout


def test_a_machine_that_loses_its_power_in_mid_sweep(lab: Lab, site: Site) -> None:
    begun = sent_bytes(lab)
    with site.start("pairs", "-e", "rdma_measure=true") as run:
        until(lambda: sent_bytes(lab) - begun > A_PAIR_BYTES, 120, "more than a measurement has been sent")
        cluster.power(lab.plan.name, "node3", "off")
        try:
            answer, _nothing = run.communicate(timeout=600)
        finally:
            cluster.power(lab.plan.name, "node3", "on")
    print(answer[-3000:])
    assert run.returncode != 0
    assert {host for host, _subject in stopping(site)} == {"node3"}, answer
    assert blamed(answer)
    assert all(verdict.startswith("  node3") for verdict in blamed(answer)), answer
    measured = {(row[0], *sorted(row[2:4])) for row in site.results() if row[6] is not None}
    assert {(rail, *pair) for rail in (0, 1) for pair in ((0, 1), (0, 3), (1, 3))} <= measured
    dead = [row for row in site.results() if row[6] is None]
    assert {row[9] for row in dead} == {"dead"}, dead
    assert all(2 in row[2:4] for row in dead), dead


def sent_bytes(lab: Lab) -> int:
    """What all nodes together have sent on their rails."""
    return sum(of["from_node_bytes"] for of in namespace.counters(lab.plan.namespace).values())


def test_nothing_is_left_on_the_machines(lab: Lab) -> None:
    for node in lab.plan.nodes:
        # pgrep has a warning for a pattern of more than 15 letters.
        left = remote.execute(
            node,
            lab.folder,
            "ls -A /run/rdma-cluster/pairs 2>/dev/null; pgrep -a 'ib_wri|python3'; ss -Hltn 'sport >= 18500 and sport < 18700'",
        )
        assert (left.status, left.stdout, left.stderr) == (0, "", ""), node.name
