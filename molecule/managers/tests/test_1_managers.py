# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with systemd-networkd, NetworkManager and netplan: the same rails, and one owner for each."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab import cluster
from lab.cluster import Lab
from lab.plan import HOST, Node
from tests.verify.driver import Hosts
from tests.verify.nodes import assert_rails, say
from tests.verify.nodes import run_with_netdev as run
from tests.verify.site import Site

#: Host → its manager, and the file of rail 0 for it.
MANAGERS = {
    "node1": ("networkd", "/etc/systemd/network/60-rdma-rail0.network"),
    "node2": ("networkmanager", "/etc/NetworkManager/system-connections/60-rdma-rail0.nmconnection"),
    "node3": ("netplan", "/etc/netplan/90-rdma-rail0.yaml"),
}
#: Longer than NetworkManager waits before it takes a link without carrier down.
CARRIER_SECONDS = 15


def findings(site: Site, check: str) -> dict[tuple[str, str], tuple[str, str]]:
    """(host, rail) → status and what was seen, of a check in the last run."""
    lines = [line for line in site.lines("findings.jsonl") if line["check"] == check]
    return {(line["host"], line["subject"].split("(")[1].split(",")[0]): (line["status"], line["observed"]) for line in lines}


@contextmanager
def watched(lab: Lab, node: Node) -> Iterator[list[str]]:
    """What the kernel says of addresses while something happens: the lines of `ip monitor`, of all interfaces."""
    lines: list[str] = []
    say(lab, node, "systemd-run --quiet --unit=watch sh -c 'exec ip -4 monitor address > /run/watch'; sleep 1")
    try:
        yield lines
    finally:
        say(lab, node, "systemctl stop watch")
        lines += say(lab, node, "cat /run/watch").splitlines()


def lost_management(lines: list[str]) -> list[str]:
    """The lines that say that the management interface has lost an address."""
    return [line for line in lines if line.startswith("Deleted") and " enp0s2 " in line]


def test_each_host_keeps_its_manager(lab: Lab, site: Site) -> None:
    done = site.run("network")
    assert done.returncode == 0, done.stdout
    assert site.lines("changes.jsonl") == []
    names = {"networkd": "systemd-networkd", "networkmanager": "NetworkManager", "netplan": "systemd-networkd"}
    expected = {(host, rail): ("ok", names[manager]) for host, (manager, _file) in MANAGERS.items() for rail in ("rail0", "rail1")}
    assert findings(site, "network.manager") == expected
    assert {status for status, _seen in findings(site, "network.boot").values()} == {"ok"}
    for node in lab.plan.nodes:
        assert_rails(lab, node)
        others = [file for host, (_manager, file) in MANAGERS.items() if host != node.name]
        say(lab, node, f"test -f {MANAGERS[node.name][1]}; {' && '.join(f'test ! -e {file}' for file in others)}")


def test_drift_of_file_and_interface_is_named_and_corrected(lab: Lab, site: Site) -> None:
    for node in lab.plan.nodes:
        say(lab, node, f"sed -i s/9000/1500/ {MANAGERS[node.name][1]}")
        run(lab, node, "ip address flush dev $netdev scope global; ip link set dev $netdev mtu 2000", rail=1)
    named = {(line["host"], line["subject"]) for line in site.drift() if line["stage"] == "network"}
    netdevs = {node.name: run(lab, node, "echo $netdev", rail=1) for node in lab.plan.nodes}
    assert named >= {(host, file) for host, (_manager, file) in MANAGERS.items()} | set(netdevs.items()), named
    done = site.run("network")
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        assert_rails(lab, node)
    assert site.run("network").returncode == 0
    assert site.lines("changes.jsonl") == []


def test_check_mode_touches_nothing(lab: Lab, site: Site) -> None:
    node = lab.plan.node("node2")
    run(lab, node, "ip link set dev $netdev mtu 2000")
    before = say(lab, node, "find /etc -newer /proc/1 -type f | sort | xargs stat --format '%n %Y %i'; nmcli connection")
    done = site.run("network", "--check", "--diff")
    assert "+MTU 9000 bytes" in done.stdout
    assert say(lab, node, "find /etc -newer /proc/1 -type f | sort | xargs stat --format '%n %Y %i'; nmcli connection") == before
    assert run(lab, node, "cat /sys/class/net/$netdev/mtu") == "2000"
    assert site.run("network", "--limit", "node2").returncode == 0
    assert_rails(lab, node)


@pytest.mark.parametrize("host", MANAGERS)
def test_a_cable_that_is_out_for_a_while_costs_no_address(lab: Lab, host: str) -> None:
    """The GID of a job would go with it. Without our settings, NetworkManager removes the addresses after 6 s."""
    node = lab.plan.node(host)
    with watched(lab, node) as lines:
        cluster.cable(lab.plan.name, host, 0, {"cut": True})
        try:
            time.sleep(CARRIER_SECONDS)
            run(lab, node, "test $(cat /sys/class/net/$netdev/carrier) = 0")
        finally:
            cluster.cable(lab.plan.name, host, 0, {"restore": True})
        time.sleep(2)
    assert [line for line in lines if line.startswith("Deleted")] == []
    assert_rails(lab, node)


@pytest.mark.parametrize("host", MANAGERS)
def test_a_restart_of_the_manager_changes_nothing(lab: Lab, host: str) -> None:
    node = lab.plan.node(host)
    unit = "NetworkManager" if MANAGERS[host][0] == "networkmanager" else "systemd-networkd"
    with watched(lab, node) as lines:
        say(lab, node, f"systemctl restart {unit}; sleep 5")
    # Management has its address by DHCP, which is the manager's own business.
    assert [line for line in lines if line.startswith("Deleted") and " enp0s2 " not in line] == []
    assert_rails(lab, node)


def test_a_mistake_in_a_file_of_others_is_named(lab: Lab, site: Site) -> None:
    node = lab.plan.node("node3")
    bad = "/etc/netplan/60-site.yaml"
    say(lab, node, f"printf 'network:\\n  version: 2\\n  ethernets:\\n    eth9:\\n      dhcpx: true\\n' > {bad}; chmod 600 {bad}")
    run(lab, node, "ip link set dev $netdev mtu 2000")
    try:
        done = site.run("network", "--limit", "node3")
    finally:
        say(lab, node, f"rm {bad}")
    assert done.returncode != 0
    assert f"netplan refuses {bad}, line 5: Error in network definition: unknown key 'dhcpx'" in done.stdout
    assert site.run("network", "--limit", "node3").returncode == 0
    assert_rails(lab, node)


#: Host → the managers that take its rails over in turn, by name; the last is its own.
TURNS = [("node2", "networkd"), ("node2", "networkmanager"), ("node3", "networkd"), ("node3", "netplan")]


@pytest.mark.parametrize(("host", "backend"), TURNS)
def test_a_switch_of_managers_leaves_one_owner(lab: Lab, site: Site, host: str, backend: str) -> None:
    """Management, which stays with its own manager, loses no address meanwhile."""
    node = lab.plan.node(host)
    words = ["--limit", host, "-e", json.dumps({"rdma_host": {**HOST, "network": {"backend": backend}}})]
    with watched(lab, node) as lines:
        done = site.run("network", *words)
    assert done.returncode == 0, done.stdout
    assert lost_management(lines) == []
    assert_rails(lab, node)
    name = "NetworkManager" if backend == "networkmanager" else "systemd-networkd"
    assert set(findings(site, "network.manager").values()) == {("ok", name)}
    assert {status for status, _seen in findings(site, "network.boot").values()} == {"ok"}
    again = site.run("network", *words)
    assert again.returncode == 0, again.stdout
    assert site.lines("changes.jsonl") == []


@pytest.mark.parametrize("host", MANAGERS)
def test_after_a_reboot_everything_is_back_by_itself(lab: Lab, hosts: Hosts, host: str) -> None:
    hosts.reboot(host)
    node = lab.plan.node(host)
    say(lab, node, "systemctl is-system-running --wait || systemctl --failed --plain --no-legend")
    assert_rails(lab, node)


def test_the_run_after_it_changes_nothing(lab: Lab, site: Site) -> None:
    done = site.run("network")
    assert done.returncode == 0, done.stdout
    assert site.lines("changes.jsonl") == []
