# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node of a built lab has, asked over SSH, not by our own facts."""

from __future__ import annotations

import json
import time

from lab import remote
from lab.cluster import Lab
from lab.plan import Node
from tests.verify.drifts import NETDEV

MODULES = ["ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "rdma_rxe"]


def say(lab: Lab, node: Node, command: str) -> str:
    answer = remote.execute(node, lab.folder, command)
    assert answer.status == 0, f"{node.name}: `{command}`: {answer.stderr}"
    return answer.stdout


def run_with_netdev(lab: Lab, node: Node, command: str, *, rail: int = 0) -> str:
    """Return what a command prints on a node. netdev is the interface of the rail."""
    done = remote.execute(node, lab.folder, f"set -e; {NETDEV.format(mac=node.rails[rail].mac)}; {command}", timeout_seconds=120)
    assert done.status == 0, f"{node.name}: {command}: {done.stderr}"
    return done.stdout.strip()


def assert_rails(lab: Lab, node: Node) -> None:
    links = {link["ifname"]: link for link in json.loads(say(lab, node, "rdma -j link show"))}
    addresses = {item["address"]: item for item in json.loads(say(lab, node, "ip -j address show"))}
    for rail in node.rails:
        nic = addresses[rail.mac]
        link = links[f"rxe_{rail.name}"]
        assert (link["state"], link["physical_state"], link["netdev"]) == ("ACTIVE", "LINK_UP", nic["ifname"])
        assert nic["mtu"] == 9000
        there = [f"{item['local']}/{item['prefixlen']}" for item in nic["addr_info"] if item["family"] == "inet"]
        assert there == [rail.address]


def assert_modules(lab: Lab, node: Node) -> None:
    loaded = {line.split()[0] for line in say(lab, node, "cat /proc/modules").splitlines()}
    assert loaded >= set(MODULES)


def assert_identity(lab: Lab, node: Node) -> None:
    """Machines start from one saved state: each is one of its own, and its clock is right within a second."""
    name, machine_id, key, *macs = say(
        lab, node, "hostname; cat /etc/machine-id; cut -d' ' -f2 /etc/ssh/ssh_host_ed25519_key.pub; cat /sys/class/net/e*/address"
    ).split()
    assert (name, machine_id) == (node.name, node.machine_id)
    assert f"[127.0.0.1]:{node.ssh_port} ssh-ed25519 {key}" in lab.folder.known_hosts.read_text().splitlines()
    assert set(macs) == {node.management_mac, *(rail.mac for rail in node.rails)}
    before = time.time()
    now = float(say(lab, node, "date +%s.%N"))
    assert before - 1 < now < time.time() + 1


def host_keys(lab: Lab) -> set[str]:
    """The SSH host keys by which the nodes are known: one each, or the image's where KVM boots them."""
    return {line.split()[2] for line in lab.folder.known_hosts.read_text().splitlines()}
