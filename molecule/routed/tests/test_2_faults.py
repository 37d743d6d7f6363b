# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of a routed fabric, made by real means: exactly the right findings, by name, and none after the repair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from lab import clos, clos_lldp
from lab.clos import Clos
from lab.shell import run
from tests.verify import clos_start
from tests.verify.clos import findings, paths, plan_of, settle, texts, until
from tests.verify.clos_lldp import cabling, ends, of_hosts, of_switches

Do = Callable[[Clos], object]
Brief = list[tuple[str, str]]


def configure(switch: str, *lines: str) -> Do:
    words = [word for line in ("configure terminal", f"{clos_start.DELAY} 1", *lines) for word in ("-c", line)]
    return lambda network: network.run(switch, "vtysh", *words)


def reload(*switches: str) -> Do:
    """The repair of the role: FRR's own reload of the planned file, which keeps good sessions."""

    def do(network: Clos) -> None:
        for name in switches:
            clos_start.reload(network, name)

    return do


def together(*steps: Do) -> Do:
    return lambda network: [step(network) for step in steps]


def ip(switch: str, *words: str) -> Do:
    return lambda network: run(["ip", "-n", f"rdma-clos-{network.name}-{switch}", *words])


def sysctl(switch: str, setting: str) -> Do:
    return lambda network: network.run(switch, "sysctl", "-qw", setting)


def planned(switch: str) -> Do:
    return lambda network: clos_start.start(network, {switch: texts(plan_of(network))[switch]})


def other_asn(network: Clos) -> None:
    """leaf1 with the ASN of another leaf, and all else as planned."""
    clos_start.start(network, {"leaf1": texts(plan_of(network))["leaf1"].replace("4200000101", "4200000199")})


BGP1, BGP3 = "router bgp 4200000101", "router bgp 4200000001"
FAMILY = "address-family ipv4 unicast"
#: Faults that are made together, each with what is done, how it is repaired, and the subject and a part of the text of its findings.
FAULTS: dict[str, tuple[Do, Do, Brief]] = {
    "a cut uplink": (
        lambda network: clos.cut(network, "leaf2/1"),
        lambda network: clos.restore(network, "leaf2/1"),
        [("leaf2 swp1 to spine1 swp2", "swp1 of leaf2 has no carrier or is disabled")],
    ),
    "a filtered prefix": (
        configure("leaf2", "no ip prefix-list OWN seq 10"),
        reload("leaf2"),
        [("leaf2", "10.1.1.66/31 of leaf2 is missing on leaf1, spine1, spine2")],
    ),
    "hash policy 0": (
        sysctl("spine1", "net.ipv4.fib_multipath_hash_policy=0"),
        sysctl("spine1", "net.ipv4.fib_multipath_hash_policy=1"),
        [("spine1", "net.ipv4.fib_multipath_hash_policy is 0, planned 1: all flows of a pair of hosts use one spine")],
    ),
    "a switch that does not forward": (
        sysctl("spine2", "net.ipv4.ip_forward=0"),
        sysctl("spine2", "net.ipv4.ip_forward=1"),
        [("spine2", "net.ipv4.ip_forward is 0, planned 1: it does not forward")],
    ),
    "IPv6 off on an uplink": (
        sysctl("leaf1", "net.ipv6.conf.swp1.disable_ipv6=1"),
        together(
            sysctl("leaf1", "net.ipv6.conf.swp1.disable_ipv6=0"),
            ip("leaf1", "link", "set", "swp1", "down"),
            ip("leaf1", "link", "set", "swp1", "up"),
        ),
        [("leaf1 swp1 to spine1 swp1", "swp1 of leaf1 has no IPv6 link-local address")],
    ),
    "an uplink of MTU 1500": (
        lambda network: clos.set_mtu(network, "leaf1/2", 1500),
        lambda network: clos.restore(network, "leaf1/2"),
        [("leaf1 swp2", "its MTU is 1500; the rails have 9000")],
    ),
    "a default route": (
        configure("spine1", BGP3, "no bgp network import-check", FAMILY, "network 0.0.0.0/0"),
        reload("spine1"),
        [("spine1", "announces 0.0.0.0/0 (a default route")],
    ),
    "one of two paths": (
        configure("leaf1", BGP1, "no bgp bestpath as-path multipath-relax"),
        reload("leaf1"),
        [("leaf1", "1 of 2 paths to leaf2 (10.0.0.102/32, 10.1.1.66/31); `bgp bestpath as-path multipath-relax` is not set")],
    ),
    "the management network is announced": (
        together(
            ip("leaf2", "address", "add", "172.31.0.5/24", "dev", "lo"),
            configure("leaf2", "router bgp 4200000102", FAMILY, "no redistribute connected", "redistribute connected"),
        ),
        together(reload("leaf2"), ip("leaf2", "address", "del", "172.31.0.5/24", "dev", "lo")),
        [("leaf2", "announces 172.31.0.0/24 (the management network)")],
    ),
    "BFD is off": (
        configure("spine2", "router bgp 4200000002", "no neighbor FABRIC bfd"),
        reload("spine2"),
        [
            ("spine2", "BFD is not up on swp1 (no session), swp2 (no session)"),
            ("leaf1", "BFD is not up on swp2"),
            ("leaf2", "BFD is not up on swp2"),
        ],
    ),
    "another ASN": (other_asn, planned("leaf1"), [("leaf1", "ASN 4200000199, router ID 10.0.0.101; planned: ASN 4200000101")]),
}
TOGETHER = [
    ("another ASN", "a filtered prefix", "hash policy 0", "a switch that does not forward"),
    ("IPv6 off on an uplink", "an uplink of MTU 1500", "a default route", "a cut uplink"),
    ("one of two paths", "the management network is announced", "BFD is off"),
]


def test_each_fault_is_made() -> None:
    assert sorted(name for names in TOGETHER for name in names) == sorted(FAULTS)


@pytest.mark.parametrize("names", TOGETHER, ids=", ".join)
def test_each_fault_is_named_and_nothing_else(routed: Clos, names: tuple[str, ...]) -> None:
    plane = plan_of(routed)
    expected = [each for name in names for each in FAULTS[name][2]]
    for name in names:
        FAULTS[name][0](routed)
    try:
        until(lambda: are_named(findings(routed, plane), expected), 20, 0.5)
    except AssertionError:
        pytest.fail(f"{names}: {findings(routed, plane)}")
    finally:
        for name in names:
            FAULTS[name][1](routed)
    settle(routed)


def are_named(found: list[tuple[str, str, str]], expected: Brief) -> bool:
    """Return whether each finding is one of the expected errors, and each of these is there once."""
    matches = [
        [at for at, (wanted, words) in enumerate(expected) if (subject, words in observed) == (wanted, True)]
        for status, subject, observed in found
        if status == "error"
    ]
    return len(found) == len(expected) and sorted(at for each in matches for at in each) == list(range(len(expected)))


@pytest.fixture
def with_lldp(routed: Clos) -> Iterator[Clos]:
    clos_lldp.start(routed)
    yield routed
    clos_lldp.stop(routed)


def test_two_swapped_cables_are_named_by_bgp_and_by_lldp(with_lldp: Clos) -> None:
    """BGP names the switch that each cable leads to. LLDP of switches and hosts gives both ends of each cable, and so the repair."""
    routed, plane = with_lldp, plan_of(with_lldp)

    def swap() -> None:
        clos.stop_daemons(routed, "leaf1")
        for was, new in (("swp1", "swap"), ("swp2", "swp1"), ("swap", "swp2")):
            for words in (["set", was, "down"], ["set", was, "name", new], ["set", new, "up"]):
                ip("leaf1", "link", *words)(routed)
        planned("leaf1")(routed)

    uplinks = {("leaf1 swp1", "spine1 swp1"), ("leaf1 swp2", "spine2 swp1"), ("leaf2 swp1", "spine1 swp2"), ("leaf2 swp2", "spine2 swp2")}
    rails = {("host1 rail0", "leaf1 swp33"), ("host2 rail0", "leaf2 swp33")}
    until(lambda: ends(of_switches(routed)) == uplinks | rails and ends(of_hosts(routed)) == rails, 5)
    assert cabling(routed) == {"plane fab": ["4 switches, 2 HCAs, 6 links (by lldp)", "all 6 planned cables are in place"]}

    swap()
    try:
        until(lambda: len([each for each in findings(routed, plane) if "the neighbor is" in each[2]]) == 2, 20, 0.3)
        found = {subject: observed for _status, subject, observed in findings(routed, plane)}
        assert found == {
            "leaf1 swp1 to spine1 swp1": "the neighbor is spine2 (router ID 10.0.0.2, ASN 4200000002), planned is spine1",
            "leaf1 swp2 to spine2 swp1": "the neighbor is spine1 (router ID 10.0.0.1, ASN 4200000001), planned is spine2",
        }
        remedy = "This costs no bandwidth. Move the cables, or correct the plan."
        moved = "1 cable between leaf1 and spine{0} on other ports: leaf1 port {1} to spine{0} port 1; planned leaf1 port {0} to spine{0} "
        exchanged = {f"leaf1 and spine{spine}": [f"{moved.format(spine, 3 - spine)}port 1. {remedy}"] for spine in (1, 2)}
        # Until the earlier neighbors are forgotten, a port has two.
        until(lambda: cabling(routed) == {"plane fab": ["4 switches, 2 HCAs, 6 links (by lldp)"], **exchanged}, 10, 0.3)
    finally:
        swap()
    settle(routed)
    until(lambda: cabling(routed)["plane fab"][-1] == "all 6 planned cables are in place", 10, 0.3)


def test_a_silent_cable_is_noticed_within_a_second_by_bfd(routed: Clos) -> None:
    """The carrier stays. Without BFD the hold time decides, 9 s."""
    plane = plan_of(routed)
    clos.silence(routed, "leaf1/1")
    try:
        seconds = until(lambda: paths(routed, "leaf1", "10.1.1.66/31") == ["swp2"], 9)
        print(f"the path of a silent cable was gone after {seconds:.2f} s")
        assert seconds <= 2, "BFD takes 0.9 s, and a busy machine some more"
        until(lambda: [each[1] for each in findings(routed, plane)] == ["leaf1 swp1 to spine1 swp1"], 5)
    finally:
        clos.restore(routed, "leaf1/1")
    settle(routed)


def test_the_kernel_uses_all_paths_again_after_a_cable_had_no_carrier(routed: Clos) -> None:
    """FRR's own table shows them in any case, so the kernel is read. Without `no zebra nexthop kernel enable` one path is left."""
    clos.cut(routed, "leaf1/1")
    try:
        until(lambda: paths(routed, "leaf1", "10.1.1.66/31") == ["swp2"], 9)
    finally:
        clos.restore(routed, "leaf1/1")
    settle(routed)
    until(lambda: paths(routed, "leaf1", "10.1.1.66/31") == ["swp1", "swp2"], 10)


def test_a_path_that_the_kernel_lost_is_named_although_frr_shows_it(routed: Clos) -> None:
    """A next hop is taken from the kernel's route behind FRR's back. The remedy of the finding repairs it."""
    plane, prefix = plan_of(routed), "10.1.0.66/31"
    (route,) = json.loads(routed.run("leaf2", "ip", "-j", "route", "show", prefix))
    kept = next(hop for hop in route["nexthops"] if hop["dev"] == "swp1")
    words = ["via", kept["gateway"], "dev", "swp1", "onlink", "proto", "bgp", "metric", str(route["metric"])]
    ip("leaf2", "route", "replace", prefix, *words)(routed)
    try:
        lost = f"the kernel has 1 of 2 paths that FRR shows to {prefix}; missing: swp2 to spine2"
        assert findings(routed, plane) == [("error", "leaf2", lost)]
        (shown,) = json.loads(routed.run("leaf2", "vtysh", "-c", f"show ip route {prefix} json"))[prefix]
        assert sorted(hop["interfaceName"] for hop in shown["nexthops"] if hop.get("fib")) == ["swp1", "swp2"]
    finally:
        routed.run("leaf2", "vtysh", "-c", "clear bgp swp2")
    settle(routed)


def test_a_stopped_router_is_unknown(routed: Clos) -> None:
    plane = plan_of(routed)
    clos.stop_daemons(routed, "spine2")
    try:
        found = findings(routed, plane)
        assert ("unknown", "spine2") in [(status, subject) for status, subject, _observed in found]
        assert not [each for each in found if each[0] == "ok"]
    finally:
        planned("spine2")(routed)
    settle(routed)
