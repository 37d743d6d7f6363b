# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine whose routes, name server and SSH daemon come to depend on a rail: each is named, and nothing of it stays."""

from __future__ import annotations

from lab.cluster import Lab
from tests.verify.nodes import run_with_netdev
from tests.verify.site import Site

BREAK = """
ip route add default via 192.168.100.254 dev $netdev metric 9999
cp --no-dereference --preserve=all /etc/resolv.conf /root/resolv.conf
rm /etc/resolv.conf; echo nameserver 192.168.100.53 > /etc/resolv.conf
sysctl --quiet --write net.ipv4.ip_forward=1
"""
REPAIR = """
ip route del default via 192.168.100.254
rm /etc/resolv.conf; mv /root/resolv.conf /etc/resolv.conf
sysctl --quiet --write net.ipv4.ip_forward=0
"""


def planes(site: Site, host: str) -> dict[str, tuple[str, str]]:
    """Check → status and what was seen on the host."""
    done = site.run("network", "--check", "--limit", host)
    found = {
        line["check"]: (line["status"], line["observed"]) for line in site.lines("findings.jsonl") if line["check"].startswith("planes.")
    }
    assert len(found) == 7, done.stdout
    return found


def test_management_that_comes_to_depend_on_a_rail_is_named(lab: Lab, site: Site) -> None:
    node = lab.plan.nodes[0]
    before = planes(site, node.name)
    assert {status for status, _seen in before.values()} == {"ok"}, before
    try:
        run_with_netdev(lab, node, BREAK)
        broken = planes(site, node.name)
    finally:
        run_with_netdev(lab, node, REPAIR)
    assert {check: status for check, (status, _seen) in broken.items()} == {
        "planes.route": "error",
        "planes.dns": "error",
        "planes.services": "ok",
        "planes.nfs": "ok",
        "planes.forward": "warning",
        "planes.ssh": "ok",
        "planes.listeners": "ok",
    }, broken
    assert broken["planes.dns"][1].startswith("192.168.100.53 is reached through ")
    assert broken["planes.route"][1].endswith(", which is rail0")
    assert planes(site, node.name) == before
