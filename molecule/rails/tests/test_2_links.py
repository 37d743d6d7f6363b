# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails on VLANs and bonds, with every manager: the tag is counted on the cable, and LACP runs between two machines.

A bridge forwards LACP only where the port allows it (group_fwd_mask, bit 2). The bonds of node1 and node2 are then partners of each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster import Lab
from lab.plan import Node
from lab.shell import run as run_here
from tests.verify.driver import Hosts
from tests.verify.nodes import assert_rails, say
from tests.verify.nodes import run_with_netdev as run
from tests.verify.site import Site

VLAN = 100
TABLE = "lab_tags"
#: Host → the files of rail 0 and of its VLAN.
FILES = {
    "node1": ("/etc/systemd/network/60-rdma-rail0.network", "/etc/systemd/network/60-rdma-rail0@vlan.network"),
    "node2": (
        "/etc/NetworkManager/system-connections/60-rdma-rail0.nmconnection",
        "/etc/NetworkManager/system-connections/60-rdma-rail0@vlan.nmconnection",
    ),
    "node3": ("/etc/netplan/90-rdma-rail0.yaml", "/etc/netplan/90-rdma-rail0@vlan.yaml"),
}


def written(lab: Lab, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The lab's inventory with a change of rail 0 of each node."""
    inventory = yaml.safe_load(lab.folder.inventory.read_text())
    for node in lab.plan.nodes:
        change(inventory["all"]["hosts"][node.name]["rdma_rails"][0])
    path = folder / "hosts.yml"
    path.write_text(yaml.safe_dump(inventory))
    return path


@pytest.fixture(scope="module")
def tagged(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The lab with rail 0 of each node on a VLAN."""
    folder = tmp_path_factory.mktemp("tagged")
    return Site(written(lab, folder, lambda rail: rail.update(vlan={"id": VLAN})), folder)


@pytest.fixture
def tags(lab: Lab) -> Iterator[Callable[[], int]]:
    """Return how many frames with the tag have crossed the bridge of rail 0: seen from outside the hosts."""
    chain = f"add chain bridge {TABLE} forward {{ type filter hook forward priority 0 ; }}"
    rule = f"add rule bridge {TABLE} forward ether type vlan vlan id {VLAN} counter"
    nft = ["ip", "netns", "exec", lab.plan.namespace, "nft"]
    run_here([*nft, "-f", "-"], stdin="\n".join([f"add table bridge {TABLE}", chain, rule]))

    def count() -> int:
        shown = json.loads(run_here([*nft, "--json", "list", "table", "bridge", TABLE]))["nftables"]
        expressions = next(each["rule"]["expr"] for each in shown if "rule" in each)
        return int(next(each["counter"]["packets"] for each in expressions if "counter" in each))

    yield count
    run_here([*nft, "delete", "table", "bridge", TABLE])


def interfaces(lab: Lab, node: Node) -> tuple[dict[str, Any], dict[str, Any]]:
    """The interface of the NIC of rail 0, and that of its VLAN, as `ip` shows them."""
    netdev = run(lab, node, "echo $netdev")
    shown = {each["ifname"]: each for each in json.loads(say(lab, node, "ip -j -d address show"))}
    return shown[netdev], shown.get(f"{netdev}.{VLAN}", {})


def addresses(shown: dict[str, Any]) -> list[str]:
    return [f"{each['local']}/{each['prefixlen']}" for each in shown["addr_info"] if each["family"] == "inet"]


def assert_tagged(lab: Lab, node: Node) -> None:
    nic, vlan = interfaces(lab, node)
    assert vlan, f"{node.name} has no VLAN {VLAN} on {nic['ifname']}"
    assert (vlan["linkinfo"]["info_kind"], vlan["linkinfo"]["info_data"]["id"], vlan["link"]) == ("vlan", VLAN, nic["ifname"])
    assert (addresses(nic), addresses(vlan)) == ([], [node.rails[0].address])
    assert (nic["mtu"], vlan["mtu"]) == (9000, 9000)
    for file in FILES[node.name]:
        say(lab, node, f"test -f {file}")


def test_rails_move_to_a_vlan(lab: Lab, tagged: Site, tags: Callable[[], int]) -> None:
    done = tagged.run("network", "-e", "network_change_allowed=true")
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        assert_tagged(lab, node)
    found = {(line["host"], line["status"]) for line in tagged.lines("findings.jsonl") if line["check"] == "network.vlan"}
    assert found == {(node.name, "ok") for node in lab.plan.nodes}
    assert {line["status"] for line in tagged.lines("findings.jsonl") if line["check"] == "network.boot"} == {"ok"}
    before = tags()
    peer = lab.plan.node("node2").rails[0].address.split("/")[0]
    say(lab, lab.plan.node("node1"), f"ping -c 3 -W 2 -q {peer}")
    assert tags() - before >= 6


def test_a_second_run_changes_nothing(tagged: Site) -> None:
    assert tagged.run("network").returncode == 0
    assert tagged.lines("changes.jsonl") == []


def test_a_lost_vlan_is_named_and_comes_back(lab: Lab, tagged: Site) -> None:
    for node in lab.plan.nodes:
        run(lab, node, f"ip link delete dev $netdev.{VLAN}")
    missing = {line["host"] for line in tagged.drift() if line["stage"] == "network"}
    assert missing == {node.name for node in lab.plan.nodes}
    assert tagged.run("network").returncode == 0
    for node in lab.plan.nodes:
        assert_tagged(lab, node)


@pytest.mark.parametrize("host", ["node1", "node2", "node3"])
def test_the_vlan_is_back_after_a_reboot(lab: Lab, hosts: Hosts, tagged: Site, host: str) -> None:
    assert tagged.evidence.exists()
    hosts.reboot(host)
    assert_tagged(lab, lab.plan.node(host))


def test_soft_roce_on_the_nic_is_measured_through_the_vlan(lab: Lab, tagged: Site, tags: Callable[[], int]) -> None:
    """The kernel's source says that the GID of the VLAN's address is in the table of the NIC's device, and chooses the VLAN."""
    before = tags()
    done = tagged.run("pairs", "-e", "rdma_measure=true")
    assert done.returncode == 0, done.stdout
    assert len(tagged.results()) == 2 * 3
    assert tags() - before > 1000, lab.plan.name


def test_without_vlan_the_interface_goes(lab: Lab, site: Site, tagged: Site) -> None:
    assert tagged.evidence.exists()
    done = site.run("network", "-e", "network_change_allowed=true")
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        assert interfaces(lab, node)[1] == {}
        say(lab, node, f"test ! -e {FILES[node.name][1]}")
        assert_rails(lab, node)
    assert site.run("network").returncode == 0
    assert site.lines("changes.jsonl") == []


#: The bit of 01:80:c2:00:00:02 in the mask of a bridge port.
LACP_BIT = 0x4
PARTNERS = ("node1", "node2")


@pytest.fixture(scope="module")
def bonded(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """node1 and node2 with one rail, a bond of both NICs. The NICs of virtio have no speed, without which LACP does not begin."""
    inventory = yaml.safe_load(lab.folder.inventory.read_text())
    every = inventory["all"]["hosts"]
    inventory["all"]["hosts"] = {name: every[name] for name in PARTNERS}
    for name in PARTNERS:
        one, other = every[name]["rdma_rails"]
        every[name]["rdma_rails"] = [{**one, "bond": {"members": [one["nic"], other["nic"]]}}]
    folder = tmp_path_factory.mktemp("bonded")
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))

    def forward(mask: int) -> None:
        for name in PARTNERS:
            for rail in lab.plan.node(name).rails:
                argv = ["ip", "-n", lab.plan.namespace, "link", "set", rail.cable, "type", "bridge_slave", "group_fwd_mask", str(mask)]
                run_here(argv)

    forward(LACP_BIT)
    for name in PARTNERS:
        for rail in range(2):
            run(lab, lab.plan.node(name), "ethtool -s $netdev speed 10000 duplex full", rail=rail)
    yield Site(folder / "hosts.yml", folder)
    forward(0)


def test_without_permission_no_bond_is_made(lab: Lab, bonded: Site) -> None:
    done = bonded.run("network")
    assert "network_change_allowed, which is not set" in done.stdout
    for name in PARTNERS:
        assert "bond-rail0" not in say(lab, lab.plan.node(name), "ip -j link show")


def test_a_bond_with_lacp_between_two_machines(lab: Lab, bonded: Site) -> None:
    # Each is the other's partner, so the gate can pass only after both have their bond.
    done = bonded.run("network", "-e", "network_change_allowed=true", "-e", "rdma_serial=2")
    assert done.returncode == 0, done.stdout
    found = [line for line in bonded.lines("findings.jsonl") if line["check"] == "network.bond"]
    assert {(line["host"], line["status"]) for line in found} == {(name, "ok") for name in PARTNERS}, found
    for name in PARTNERS:
        node = lab.plan.node(name)
        shown = {each["ifname"]: each for each in json.loads(say(lab, node, "ip -j address show"))}
        assert addresses(shown["bond-rail0"]) == [node.rails[0].address]
        assert say(lab, node, "cat /sys/class/net/bond-rail0/bonding/ad_num_ports").strip() == "2"
    peer = lab.plan.node("node2").rails[0].address.split("/")[0]
    say(lab, lab.plan.node("node1"), f"ping -c 3 -W 2 -q -I bond-rail0 {peer}")


def test_a_second_run_leaves_the_bond(bonded: Site) -> None:
    assert bonded.run("network").returncode == 0
    assert bonded.lines("changes.jsonl") == []


def test_a_member_without_partner_is_named(lab: Lab, bonded: Site) -> None:
    # The port of the bridge goes, so the NIC keeps its carrier.
    cable = lab.plan.node("node1").rails[1].cable
    run_here(["ip", "-n", lab.plan.namespace, "link", "set", cable, "down"])
    try:
        bonded.run("network", "--check")
        [line] = [each for each in bonded.lines("findings.jsonl") if each["check"] == "network.bond" and each["host"] == "node1"]
        assert line["status"] == "error"
        assert f"{run(lab, lab.plan.node('node1'), 'echo $netdev', rail=1)} hears no LACP partner" in line["observed"]
    finally:
        run_here(["ip", "-n", lab.plan.namespace, "link", "set", cable, "up"])


def test_without_bond_the_nics_are_rails_again(lab: Lab, site: Site, bonded: Site) -> None:
    assert bonded.evidence.exists()
    done = site.run("network", "-e", "network_change_allowed=true")
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        assert "bond-rail0" not in say(lab, node, "ip -j link show")
        assert_rails(lab, node)
