# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails on VLANs, with every manager: the tag is counted on the cable, and the NIC's interface has no address."""

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
