# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Management and data plane: what comes to depend on a rail is named, and the management goes on with all rails down.

The name server on a rail is a program on another node, which gives every query an answer without records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from lab import remote
from lab.cluster import Lab
from lab.plan import Node
from tests.verify.nodes import run_with_netdev as run
from tests.verify.nodes import say
from tests.verify.site import Site

#: Each with what it takes back.
FAULTS = {
    "planes.route": ("ip route add default via 192.168.100.254 dev $netdev metric 9999", "ip route del default via 192.168.100.254"),
    "planes.dns": (
        "cp --no-dereference --preserve=all /etc/resolv.conf /root/resolv.conf; rm /etc/resolv.conf; "
        "echo nameserver 192.168.100.53 > /etc/resolv.conf",
        "rm /etc/resolv.conf; mv /root/resolv.conf /etc/resolv.conf",
    ),
    "planes.services": (
        "mkdir --parents /etc/chrony/conf.d; echo server 192.168.100.5 > /etc/chrony/conf.d/rail.conf",
        "rm /etc/chrony/conf.d/rail.conf; rmdir --parents --ignore-fail-on-non-empty /etc/chrony/conf.d",
    ),
    "planes.forward": ("sysctl --quiet --write net.ipv4.ip_forward=1", "sysctl --quiet --write net.ipv4.ip_forward=0"),
    # A second daemon: that of the lab goes on listening on all addresses.
    "planes.listeners": (
        "/usr/sbin/sshd -o Port=2222 -o ListenAddress={address} -o PidFile=/run/sshd-rail.pid",
        "kill $(cat /run/sshd-rail.pid)",
    ),
}
STATUS = {"planes.forward": "warning", "planes.listeners": "warning"}
SEEN = {
    "planes.route": "which is rail0",
    "planes.dns": "192.168.100.53 is reached through ",
    "planes.services": "192.168.100.5 is reached through ",
    "planes.forward": "net.ipv4.ip_forward is 1",
    "planes.listeners": "port 2222 listens on {address}, the address of rail0",
}
CHECKS = {*FAULTS, "planes.ssh", "planes.nfs"}
ALLOWED = ("-e", "planes_proof_allowed=true")
#: Answers each query with its number, and no records.
DNS = """import socket
port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
port.bind(("{address}", 53))
while True:
    query, client = port.recvfrom(512)
    port.sendto(query[:2] + bytes([0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]) + query[12:], client)
"""


def address_of(node: Node) -> str:
    return node.rails[0].address.partition("/")[0]


def planes(site: Site, host: str) -> dict[str, tuple[str, str]]:
    """Check → status and what was seen on the host."""
    done = site.run("network", "--check", "--limit", host)
    lines = [line for line in site.lines("findings.jsonl") if line["check"].startswith("planes.")]
    assert {line["check"] for line in lines} == CHECKS, done.stdout
    return {line["check"]: (line["status"], line["observed"]) for line in lines}


def network_of(lab: Lab, node: Node) -> dict[str, list[str]]:
    """The interfaces that are up with their addresses, and the routes and rules, of both families."""
    shown = json.loads(say(lab, node, "ip -json address show up"))
    found = {each["ifname"]: sorted(info["local"] for info in each["addr_info"]) for each in shown}
    for words in ("-4 route show table all", "-6 route show table all", "-4 rule show"):
        lines = say(lab, node, f"ip {words}").splitlines()
        found[words] = sorted(line.partition(" expires ")[0].replace(" linkdown", "").strip() for line in lines)
    return found


@contextmanager
def watched(lab: Lab, nodes: Sequence[Node]) -> Iterator[Callable[[Node], bool]]:
    """Give a function that returns whether rail 0 of a node has been down since: a virtio NIC does not count it as a loss of carrier."""
    for node in nodes:
        say(lab, node, "systemd-run --quiet --unit=lab-links sh -c 'exec ip -o monitor link > /run/lab-links'")
    try:
        yield lambda node: "down" in run(lab, node, 'grep -q ": $netdev:.* state DOWN" /run/lab-links && echo down || echo up')
    finally:
        for node in nodes:
            say(lab, node, "systemctl stop lab-links; rm /run/lab-links")


@pytest.mark.fault("planes-on-a-rail")
@pytest.mark.parametrize("check", FAULTS)
def test_what_depends_on_a_rail_is_named_and_nothing_else(lab: Lab, site: Site, check: str) -> None:
    node = lab.plan.nodes[0]
    address = address_of(node)
    breaks, repairs = FAULTS[check]
    try:
        run(lab, node, breaks.format(address=address))
        found = planes(site, node.name)
    finally:
        run(lab, node, repairs)
    bad = {name: status for name, (status, _seen) in found.items() if status != "ok"}
    assert bad == {check: STATUS.get(check, "error")}, found
    assert SEEN[check].format(address=address) in found[check][1]


def test_hosts_are_well_again(lab: Lab, site: Site) -> None:
    for node in lab.plan.nodes:
        found = planes(site, node.name)
        assert {status for status, _seen in found.values()} == {"ok"}, found


def test_the_proof_waits_for_permission_and_check_mode_lists_the_rails(lab: Lab, site: Site) -> None:
    before = {node.name: network_of(lab, node) for node in lab.plan.nodes}
    done = site.run("planes")
    assert done.returncode == 0, done.stdout
    assert {line["effect"] for line in site.json("summary.json")["withheld"]} == {"planes_proof"}
    done = site.run("planes", "--check", "--diff", *ALLOWED)
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        for rail in range(2):
            assert run(lab, node, "echo $netdev", rail=rail) in done.stdout
        assert network_of(lab, node) == before[node.name]


def test_the_management_goes_on_with_all_rails_down(lab: Lab, site: Site) -> None:
    before = {node.name: network_of(lab, node) for node in lab.plan.nodes}
    with watched(lab, lab.plan.nodes) as was_down:
        done = site.run("planes", *ALLOWED)
        assert [node.name for node in lab.plan.nodes if not was_down(node)] == []
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        assert f"planes.survive: {node.name} answered by SSH while " in done.stdout
        assert network_of(lab, node) == before[node.name]
        assert remote.execute(node, lab.folder, "systemctl is-active rdma-planes-restore.timer").stdout.strip() == "inactive"


@pytest.fixture
def server_on_a_rail(lab: Lab) -> Iterator[str]:
    """The address of a name server on node2's rail, which node1 uses, and which nothing else answers for."""
    node, other = lab.plan.nodes[:2]
    address = address_of(other)
    say(
        lab,
        other,
        f"cat > /root/dns.py <<'END'\n{DNS.format(address=address)}\nEND\nsystemd-run --quiet --unit=lab-dns python3 /root/dns.py",
    )
    breaks, repairs = FAULTS["planes.dns"]
    run(lab, node, breaks.replace("192.168.100.53", address))
    # Without the rail the query would leave by the default route, to a network that may answer for any name server.
    say(lab, node, "ip route add unreachable 192.168.100.0/24 metric 9999")
    yield address
    say(lab, node, "ip route del unreachable 192.168.100.0/24 metric 9999")
    run(lab, node, repairs)
    say(lab, other, "systemctl stop lab-dns; rm /root/dns.py")


def test_a_name_server_on_a_rail_fails_the_proof_and_the_rails_come_back(lab: Lab, site: Site, server_on_a_rail: str) -> None:
    node = lab.plan.nodes[0]
    before = network_of(lab, node)
    done = site.run("planes", "--limit", node.name, *ALLOWED)
    assert done.returncode != 0, done.stdout
    assert f"planes.survive: {node.name}: without its rails, name server {server_on_a_rail} no longer answers." in done.stdout
    assert network_of(lab, node) == before


def test_a_host_in_use_keeps_its_rails(lab: Lab, site: Site) -> None:
    """A process with the name of a Slurm job's is enough."""
    node = lab.plan.nodes[0]
    say(lab, node, "cp /bin/sleep /root/slurmstepd; systemd-run --quiet --unit=lab-job /root/slurmstepd 600")
    try:
        with watched(lab, [node]) as was_down:
            done = site.run("planes", "--limit", node.name, *ALLOWED)
            assert not was_down(node)
    finally:
        say(lab, node, "systemctl stop lab-job; rm /root/slurmstepd")
    assert "slurmstepd" in done.stdout
