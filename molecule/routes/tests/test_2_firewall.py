# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts whose firewalls drop what they do not know: closed, they are named; opened by permission, pairs pass, and other rules stay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab import remote
from lab.cluster import Lab
from lab.plan import Node
from tests.verify.nodes import run_with_netdev as run
from tests.verify.nodes import say
from tests.verify.site import Site

#: What an administrator has written for nftables: SSH, what belongs to connections, and nothing else.
RULES = """flush ruleset
table inet site {
    chain input {
        type filter hook input priority filter; policy drop;
        ct state established,related accept
        iif "lo" accept
        tcp dport 22 accept
    }
    chain output {
        type filter hook output priority filter; policy accept;
    }
}
"""
#: Host → how its firewall is set up and switched on; it must never lock us out, so SSH is first.
START = {
    "node1": f"printf '{RULES}' > /etc/nftables.conf; systemctl enable --quiet --now nftables; systemctl reload nftables",
    "node2": "systemctl unmask --quiet firewalld; systemctl start firewalld; firewall-cmd --quiet --add-service=ssh; "
    "firewall-cmd --quiet --permanent --add-service=ssh; systemctl enable --quiet firewalld",
    "node3": "ufw allow 22/tcp; ufw --force enable; systemctl enable --quiet --now ufw",
}
STOP = {
    "node1": "systemctl disable --quiet --now nftables; nft flush ruleset",
    "node2": "systemctl disable --quiet --now firewalld",
    "node3": "ufw --force disable; systemctl disable --quiet --now ufw",
}
PACKAGES = {"node1": "nftables", "node2": "firewalld netbase", "node3": "ufw"}
BACKENDS = {"node1": "nftables", "node2": "firewalld", "node3": "ufw"}
#: Shell: all rules as the firewall shows them, without ours.
FOREIGN = {
    "node1": "nft list ruleset | grep -v 'comment \"rdma.cluster '",
    "node2": 'firewall-cmd --list-all-zones | grep -v \'rule family="ipv4" source address="192.168.10\'',
    "node3": "ufw show added | grep -v rdma.cluster",
}


@pytest.fixture(scope="module")
def filtered(lab: Lab) -> Iterator[dict[str, str]]:
    """Host → its foreign rules, with its firewall on."""
    rules = {}
    for node in lab.plan.nodes:
        # Installing firewalld or ufw must not start it before SSH is allowed.
        hold = "systemctl mask --quiet firewalld; " if node.name == "node2" else ""
        say(lab, node, f"{hold}DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends {PACKAGES[node.name]}")
        say(lab, node, START[node.name])
        rules[node.name] = say(lab, node, FOREIGN[node.name])
    yield rules
    for node in lab.plan.nodes:
        remote.execute(node, lab.folder, STOP[node.name])


def open_port(lab: Lab, node: Node, other: Node, port: int) -> bool:
    """Whether a TCP port of a node is reached on rail 0 from another node: refused is reached."""
    address = node.rails[0].address.partition("/")[0]
    code = f"import socket; s = socket.socket(); s.settimeout(3); print(s.connect_ex(('{address}', {port})))"
    # 111: connection refused, by the kernel and not by the firewall.
    return run(lab, other, f'python3 -c "{code}"') == "111"


@pytest.mark.fault("closed-firewall")
def test_what_is_closed_is_named_and_nothing_is_opened_unasked(lab: Lab, site: Site, filtered: dict[str, str]) -> None:
    nodes = lab.plan.nodes
    assert not any(open_port(lab, node, nodes[index - 1], 20000) for index, node in enumerate(nodes))
    done = site.run("network")
    assert done.returncode == 0, done.stdout
    for node in nodes:
        assert f"{BACKENDS[node.name]} has no rules for TCP ports 1024 to 65535 from 192.168.100.0/24" in done.stdout
        assert say(lab, node, FOREIGN[node.name]) == filtered[node.name]
    assert "To allow it: firewall_allowed: true" in done.stdout
    site.run("preflight")
    found = {line["host"]: line["status"] for line in site.lines("findings.jsonl") if line["check"] == "preflight.firewall"}
    assert found == {node.name: "warning" for node in nodes}


def test_it_is_opened_by_permission_and_other_rules_stay_byte_for_byte(lab: Lab, site: Site, filtered: dict[str, str]) -> None:
    nodes = lab.plan.nodes
    shown = site.run("network", "--check", "--diff", "-e", "firewall_allowed=true")
    assert "TCP ports 1024 to 65535 from 192.168.101.0/24" in shown.stdout
    assert not any(open_port(lab, node, nodes[index - 1], 20000) for index, node in enumerate(nodes))
    done = site.run("network", "-e", "firewall_allowed=true")
    assert done.returncode == 0, done.stdout
    assert all(open_port(lab, node, nodes[index - 1], 20000) for index, node in enumerate(nodes))
    for node in nodes:
        assert say(lab, node, FOREIGN[node.name]) == filtered[node.name]
    # Ports below 1024 stay closed.
    assert not any(open_port(lab, node, nodes[index - 1], 111) for index, node in enumerate(nodes))
    site.run("preflight")
    found = {line["host"]: line["status"] for line in site.lines("findings.jsonl") if line["check"] == "preflight.firewall"}
    assert found == {node.name: "ok" for node in nodes}


def test_a_second_run_changes_nothing(site: Site, filtered: dict[str, str]) -> None:
    assert filtered
    assert site.run("network", "-e", "firewall_allowed=true").returncode == 0
    assert site.lines("changes.jsonl") == []


def test_pairs_pass(site: Site, filtered: dict[str, str]) -> None:
    assert filtered
    done = site.run("pairs", "-e", "rdma_measure=true")
    assert done.returncode == 0, done.stdout
    assert len(site.results()) == 2 * 3


@pytest.mark.parametrize("host", ["node1", "node2", "node3"])
def test_the_rules_survive_a_reload_of_the_firewall(lab: Lab, filtered: dict[str, str], host: str) -> None:
    reload = {"node1": "systemctl reload nftables", "node2": "firewall-cmd --quiet --reload", "node3": "ufw reload"}
    nodes = lab.plan.nodes
    node = lab.plan.node(host)
    say(lab, node, reload[host])
    assert open_port(lab, node, next(each for each in nodes if each != node), 20000)
    assert say(lab, node, FOREIGN[host]) == filtered[host]
