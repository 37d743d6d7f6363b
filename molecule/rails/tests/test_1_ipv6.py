# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails with IPv6, alone and beside a further IPv4 address: RDMA uses the GID of the IPv6 address, with every manager."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from lab.cluster import Lab
from lab.plan import Node
from tests.verify.driver import Hosts
from tests.verify.nodes import assert_rails
from tests.verify.nodes import run_with_netdev as run
from tests.verify.site import Site

CHECKS = ("network.address", "network.gid", "network.boot", "network.duplicate")


def ip(rail: int, node: Node) -> str:
    return f"2001:db8:{100 + rail}::{node.index:x}"


def with_ipv6(lab: Lab, folder: Path, *, further: bool) -> Site:
    """The lab with IPv6 addresses on its rails. further: whether the old address stays as a further one."""
    inventory = yaml.safe_load(lab.folder.inventory.read_text())
    for node in lab.plan.nodes:
        for number, rail in enumerate(inventory["all"]["hosts"][node.name]["rdma_rails"]):
            rail.update(address=f"{ip(number, node)}/64", addresses=[rail["address"]] if further else [])
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return Site(folder / "hosts.yml", folder)


@pytest.fixture(scope="module")
def alone(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return with_ipv6(lab, tmp_path_factory.mktemp("alone"), further=False)


@pytest.fixture(scope="module")
def both(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return with_ipv6(lab, tmp_path_factory.mktemp("both"), further=True)


def addresses(lab: Lab, node: Node, rail: int, family: str) -> set[str]:
    """The global addresses of a rail's interface, "2001:db8:100::1/64"."""
    shown = json.loads(run(lab, node, "ip -j address show dev $netdev", rail=rail))[0]["addr_info"]
    return {f"{each['local']}/{each['prefixlen']}" for each in shown if each["family"] == family and each["scope"] == "global"}


def gids(lab: Lab, node: Node, rail: int) -> str:
    return run(
        lab,
        node,
        f"cat /sys/class/infiniband/rxe_rail{rail}/ports/1/gids/* 2>/dev/null | grep -v ^0000:0000:0000:0000:0000:0000",
        rail=rail,
    )


def statuses(site: Site) -> dict[tuple[str, str], set[str]]:
    """(host, check) → the statuses of CHECKS in the last run."""
    found: dict[tuple[str, str], set[str]] = {}
    for line in site.lines("findings.jsonl"):
        if line["check"] in CHECKS:
            found.setdefault((line["host"], line["check"]), set()).add(line["status"])
    return found


def all_ok(lab: Lab) -> dict[tuple[str, str], set[str]]:
    return {(node.name, check): {"ok"} for node in lab.plan.nodes for check in CHECKS}


def test_rails_of_ipv6_alone(lab: Lab, alone: Site) -> None:
    done = alone.run("network", "-e", "network_change_allowed=true")
    assert done.returncode == 0, done.stdout
    assert statuses(alone) == all_ok(lab)
    for node in lab.plan.nodes:
        for rail in range(2):
            assert addresses(lab, node, rail, "inet6") == {f"{ip(rail, node)}/64"}
            assert addresses(lab, node, rail, "inet") == set()
            assert f"2001:0db8:{100 + rail:04d}:" in gids(lab, node, rail)
            peers = [ip(rail, other) for other in lab.plan.nodes if other != node]
            run(lab, node, "; ".join(f"ping -6 -c 2 -W 2 -q -I {ip(rail, node)} {peer}" for peer in peers), rail=rail)


def test_a_further_address_of_ipv4(lab: Lab, both: Site) -> None:
    done = both.run("network")
    assert done.returncode == 0, done.stdout
    assert statuses(both) == all_ok(lab)
    for node in lab.plan.nodes:
        for rail in range(2):
            assert addresses(lab, node, rail, "inet6") == {f"{ip(rail, node)}/64"}
            assert addresses(lab, node, rail, "inet") == {f"192.168.{100 + rail}.{node.index}/24"}


def test_a_second_run_changes_nothing(both: Site) -> None:
    assert both.run("network").returncode == 0
    assert both.lines("changes.jsonl") == []


def test_a_lost_address_is_named_and_comes_back(lab: Lab, both: Site) -> None:
    for node in lab.plan.nodes:
        run(lab, node, f"ip address del {ip(0, node)}/64 dev $netdev")
    named = [(line["host"], line["should_be"]) for line in both.drift() if line["stage"] == "network"]
    for node in lab.plan.nodes:
        assert (node.name, f"address {ip(0, node)}/64") in named, named
    assert both.run("network").returncode == 0
    assert statuses(both) == all_ok(lab)
    for node in lab.plan.nodes:
        assert f"{ip(0, node)}/64" in addresses(lab, node, 0, "inet6")


def test_a_foreign_address_in_the_subnet_of_another_rail_is_named_and_stays(lab: Lab, both: Site) -> None:
    node = lab.plan.nodes[0]
    foreign = f"2001:db8:101::99{node.index}/64"
    run(lab, node, f"ip address add {foreign} nodad dev $netdev")
    try:
        assert both.run("network").returncode != 0
        bad = [line for line in both.lines("findings.jsonl") if line["check"] == "network.address" and line["status"] == "error"]
        assert [line["host"] for line in bad] == [node.name]
        assert f"{foreign} on " in bad[0]["observed"]
        assert "is in rail1's subnet" in bad[0]["observed"]
        assert foreign in addresses(lab, node, 0, "inet6")
    finally:
        run(lab, node, f"ip address del {foreign} dev $netdev")


def test_an_address_that_another_host_has_is_named(lab: Lab, both: Site) -> None:
    """The second holder looks for duplicates, as a program of others would, and its kernel then does not use the address."""
    first, second = lab.plan.nodes[:2]
    address = f"{ip(0, first)}/64"
    run(lab, second, f"ip address add {address} dev $netdev; sleep 3")
    try:
        both.run("network", "--check")
        seen = [line for line in both.lines("findings.jsonl") if line["check"] == "network.address" and line["host"] == second.name]
        assert any(f"{address} on " in line["observed"] and "failed duplicate address detection" in line["observed"] for line in seen), seen
    finally:
        run(lab, second, f"ip address del {address} dev $netdev")


@pytest.mark.parametrize("host", ["node1", "node2", "node3"])
def test_the_addresses_are_back_after_a_reboot(lab: Lab, hosts: Hosts, both: Site, host: str) -> None:
    assert both.evidence.exists()
    hosts.reboot(host)
    node = lab.plan.node(host)
    for rail in range(2):
        assert addresses(lab, node, rail, "inet6") == {f"{ip(rail, node)}/64"}
        assert addresses(lab, node, rail, "inet") == {f"192.168.{100 + rail}.{node.index}/24"}
        assert run(lab, node, "cat /proc/sys/net/ipv6/conf/$netdev/accept_ra", rail=rail).strip() == "0"


def test_pairs_are_measured_by_the_gids_of_ipv6(lab: Lab, both: Site) -> None:
    done = both.run("pairs", "-e", "rdma_measure=true")
    assert done.returncode == 0, done.stdout
    assert len(both.results()) == 2 * 3
    plan = both.json("pairs/plan.json")
    assert all(profile["gid_index"] is not None for profile in plan["profiles"])
    assert {line["status"] for line in both.lines("findings.jsonl") if line["check"] == "network.path_mtu"} == {"ok"}, lab.plan.name


def test_the_old_rails_return(lab: Lab, site: Site, both: Site) -> None:
    assert both.evidence.exists()
    done = site.run("network", "-e", "network_change_allowed=true")
    assert done.returncode == 0, done.stdout
    for node in lab.plan.nodes:
        assert_rails(lab, node)
        for rail in range(2):
            assert addresses(lab, node, rail, "inet6") == set()
    assert site.run("network").returncode == 0
    assert site.lines("changes.jsonl") == []
