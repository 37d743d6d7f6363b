# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container whose routes and name server come to depend on a rail: each is named, and nothing of it stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab import cluster, remote
from lab.cluster import Lab
from tests.verify.site import Site

#: Every gate runs to its end, although a container has no NIC.
REPORT = json.dumps({"rdma_gate": {"policy": "report"}})
HOST = "node1"
RAIL = "$(grep -l {mac} /sys/class/net/*/address | cut -d/ -f5)"
BREAK = """
ip route add default via 192.168.100.254 dev {rail} metric 9999
cp --no-dereference --preserve=all /etc/resolv.conf /root/resolv.conf
rm /etc/resolv.conf; echo nameserver 192.168.100.53 > /etc/resolv.conf
sysctl --quiet --write net.ipv4.ip_forward=1
"""
REPAIR = """
ip route del default via 192.168.100.254
rm /etc/resolv.conf; mv /root/resolv.conf /etc/resolv.conf
sysctl --quiet --write net.ipv4.ip_forward=0
"""


def run(lab: Lab, script: str) -> None:
    node = lab.plan.node(HOST)
    done = remote.execute(node, lab.folder, script.format(rail=RAIL.format(mac=node.rails[0].mac)))
    assert done.status == 0, done


@pytest.fixture(scope="module")
def lab() -> Lab:
    return cluster.load("policies")


def planes(lab: Lab, folder: Path) -> dict[str, tuple[str, str]]:
    """Check → status and what was seen on the host."""
    site = Site(lab.folder.inventory, folder)
    done = site.run("validate", "--limit", HOST, "-e", REPORT)
    assert "PLAY RECAP" in done.stdout, done.stdout
    found = {
        line["check"]: (line["status"], line["observed"]) for line in site.lines("findings.jsonl") if line["check"].startswith("planes.")
    }
    assert len(found) == 4, done.stdout
    return found


def test_management_that_comes_to_depend_on_a_rail_is_named(lab: Lab, tmp_path: Path) -> None:
    before = planes(lab, tmp_path / "before")
    assert {status for status, _seen in before.values()} == {"ok"}, before
    # The address of the rail, as the network stage would set it.
    address = lab.plan.node(HOST).rails[0].address
    try:
        run(lab, "ip link set {rail} up; ip addr add " + address + " dev {rail}\n" + BREAK)
        broken = planes(lab, tmp_path / "broken")
    finally:
        run(lab, REPAIR + "ip addr del " + address + " dev {rail}; ip link set {rail} down\n")
    assert {check: status for check, (status, _seen) in broken.items()} == {
        "planes.route": "error",
        "planes.dns": "error",
        "planes.forward": "warning",
        "planes.ssh": "ok",
    }, broken
    assert broken["planes.dns"][1].startswith("192.168.100.53 is reached through ")
    assert broken["planes.route"][1].endswith(", which is rail0")
    assert planes(lab, tmp_path / "after") == before
