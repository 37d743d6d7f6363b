# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The snippet of common guides, as printed: what it lacks, by FRR itself and by our checks. Then our plan on the same cables."""

from __future__ import annotations

from datetime import datetime

import pytest

from lab import clos
from lab.clos import Clos
from lab.clos_plan import ClosShape
from tests.verify.clos import SETTLED, address_hosts, are_established, datagram, findings, is_clean, paths, plan_of, summary, texts, until
from tests.verify.clos_start import start

#: Loopbacks and ASNs are those of our plan, so that only what the snippet lacks is found.
SNIPPET = """frr defaults {profile}
hostname {name}
interface lo
 ip address {loopback}/32
{ports}router bgp {asn}
 bgp router-id {loopback}
{neighbors}
 address-family ipv4 unicast
  redistribute connected
 exit-address-family
"""


def snippet(network: Clos, profile: str) -> dict[str, str]:
    return {
        name: SNIPPET.format(
            profile=profile,
            name=name,
            loopback=router.loopback,
            asn=router.asn,
            ports="".join(f"interface {port.port}\n ip address {port.address}\n" for port in router.host_ports),
            # The timer is no part of the snippet: it only makes the sessions come up soon.
            neighbors="\n".join(
                f" neighbor {each.port} interface remote-as external\n neighbor {each.port} timers connect 1" for each in router.neighbors
            ),
        )
        for name, router in plan_of(network).routers.items()
    }


def test_the_traditional_profile_has_sessions_and_no_route(network: Clos) -> None:
    plane = plan_of(network)
    start(network, snippet(network, "traditional"))
    until(lambda: are_established(network, plane), 30)
    assert {(peer["peerState"], peer["pfxRcd"]) for name in plane.routers for peer in summary(network, name).values()} == {("Policy", 0)}
    assert paths(network, "leaf1", "10.1.1.66/31") == []
    policy = [subject for _status, subject, observed in findings(network, plane) if "Established (Policy)" in observed]
    assert sorted(policy) == [
        "leaf1 swp1 to spine1 swp1",
        "leaf1 swp2 to spine2 swp1",
        "leaf2 swp1 to spine1 swp2",
        "leaf2 swp2 to spine2 swp2",
    ]


def test_the_datacenter_profile_uses_one_of_two_paths(network: Clos) -> None:
    plane = plan_of(network)
    start(network, snippet(network, "datacenter"))
    until(lambda: are_established(network, plane), 30)
    until(lambda: paths(network, "leaf1", "10.1.1.66/31") and paths(network, "leaf2", "10.1.0.66/31"), 10)
    assert len(paths(network, "leaf1", "10.1.1.66/31")) == 1
    narrow = [(subject, observed) for _status, subject, observed in findings(network, plane) if "1 of 2 paths" in observed]
    assert [subject for subject, _observed in narrow] == ["leaf1", "leaf2"]
    assert "multipath-relax` is not set" in narrow[0][1]


def test_the_plan_is_up_within_5_s_and_uses_all_paths(network: Clos) -> None:
    plane = plan_of(network)
    clos.route(network, texts(plane))
    until(lambda: is_clean(findings(network, plane)), 30)
    for name, router in plane.routers.items():
        log = (network.folder.node(name) / "run/log").read_text().splitlines()
        began = _at([line for line in log if "bgpd 8" in line and "starting" in line][-1])
        up = [_at(line) for line in log if "%ADJCHANGE" in line and line.endswith("Up") and _at(line) >= began]
        assert len(up) >= len(router.neighbors)
        assert (max(up) - began).total_seconds() <= 5, name
    assert paths(network, "leaf1", "10.1.1.66/31") == ["swp1", "swp2"]
    SETTLED.add(network.name)


def _at(line: str) -> datetime:
    return datetime.strptime(line[:19], "%Y/%m/%d %H:%M:%S")


def test_a_second_reload_finds_no_difference_and_frr_accepts_the_files(routed: Clos) -> None:
    for name in plan_of(routed).routers:
        assert routed.run(name, "vtysh", "-C", "-f", "/etc/frr/frr.conf") is not None
        shown = routed.run(name, "/usr/lib/frr/frr-reload.py", "--test", "--stdout", "/etc/frr/frr.conf")
        assert "Lines To" not in shown, shown
    SETTLED.add(routed.name)


def test_a_host_reaches_another_with_its_whole_mtu(routed: Clos) -> None:
    address_hosts(routed, plan_of(routed))
    assert datagram(routed) == "10.1.0.67 8972\n"
    SETTLED.add(routed.name)


@pytest.fixture
def four() -> Clos:
    return clos.up("mrouted4", ClosShape(4, 4, 1))


def test_four_by_four_has_four_paths(four: Clos) -> None:
    try:
        plane = plan_of(four)
        start(four, texts(plane))
        until(lambda: is_clean(findings(four, plane)), 50, 0.5)
        assert paths(four, "leaf1", "10.1.3.66/31") == ["swp1", "swp2", "swp3", "swp4"]
    finally:
        clos.down("mrouted4")
