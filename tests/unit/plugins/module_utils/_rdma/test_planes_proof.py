# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proof of the planes: nothing goes down without an armed timer, what is lost is named, and what a rail had comes back.

The host is a stand-in of `ip`, systemd and chrony. The texts of `ip` are those of iproute2 6.1 on veth devices.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session
from ansible_collections.rdma.cluster.plugins.module_utils._rdma import planes_proof
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.planes_proof import (
    SCRIPT,
    STATE,
    answers,
    bring_up,
    interfaces_on,
    parse_addresses,
    parse_own_routes,
    parse_sources,
    refuse_session,
    take_down,
)

ROUTES_OF_IPV4 = """\
192.168.100.0/24 proto kernel scope link src 192.168.100.1 linkdown
local 192.168.100.1 table local proto kernel scope host src 192.168.100.1
broadcast 192.168.100.255 table local proto kernel scope link src 192.168.100.1
default via 192.168.100.254 table 1000 proto static
192.168.100.0/24 table 1000 proto static scope link src 192.168.100.1
"""
ROUTES_OF_IPV6 = """\
fd00:1::/64 proto kernel metric 256 pref medium
fd00:9::/48 via fd00:1::fe proto static metric 77 pref medium
default via fe80::1 proto ra metric 1024 expires 1790sec pref medium
multicast ff00::/8 table local proto kernel metric 256 pref medium
"""
KEPT_OF_IPV4 = [
    "192.168.100.0/24 table 1000 proto static scope link src 192.168.100.1",
    "default via 192.168.100.254 table 1000 proto static",
]
SOURCES = "^,*,192.0.2.5,2,6,377,{},-0.000012,-0.000012,0.000345\n^,?,192.0.2.6,0,6,0,4294967295,0,0,0\n#,-,PPS0,0,4,377,11,0,0,0\n"
TIMER = "rdma-planes-restore.timer"


def address(local: str, prefixlen: int, **more: object) -> dict[str, object]:
    return {"local": local, "prefixlen": prefixlen, "scope": "global", **more}


class Rails:
    """Two rails, ens1 and ens2: an interface that is down loses its addresses of IPv6 and its routes. Each attribute is a fault."""

    def __init__(self, root: Path) -> None:
        self.root, self.ran, self.armed = root, [], False
        self.can_arm, self.arms, self.keeps_up, self.forgets, self.heard_seconds = True, True, "", "", 0
        self.six, self.routed = {"ens1"}, {"ens1"}
        for name in ("ens1", "ens2"):
            (root / f"sys/class/net/{name}").mkdir(parents=True)
            self.flag(name, up=True)

    def flag(self, name: str, *, up: bool) -> None:
        (self.root / f"sys/class/net/{name}/flags").write_text("0x1003\n" if up else "0x1002\n")

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words = tuple(argv)
        self.ran.append(" ".join(words))
        if words[0] == "systemd-run" and not self.can_arm:
            raise CommandError("command not found: systemd-run")
        return Completed(words, 0, self.answer(words), "")

    def answer(self, words: Sequence[str]) -> str:
        if words[0] == "systemd-run":
            self.armed = self.arms
        elif words[:2] == ("systemctl", "stop"):
            self.armed = False
        elif words[0] == "systemctl":
            return f"Id={TIMER}\nActiveState={'active' if self.armed else 'inactive'}\nUnitFileState=\n"
        elif words[:4] == ("ip", "link", "set", "dev"):
            self.link(words[4], words[5])
        elif words[:2] == ("ip", "-json"):
            infos = [address("192.168.100.1", 24, broadcast="192.168.100.255")] if words[-1] == "ens1" else []
            return json.dumps([{"addr_info": [*infos, *([address("fd00:1::1", 64)] if words[-1] in self.six else [])]}])
        elif words[1:4] in (("-4", "route", "show"), ("-6", "route", "show")):
            return {"-4": ROUTES_OF_IPV4, "-6": ROUTES_OF_IPV6}[words[1]] if words[-1] in self.routed else ""
        elif words[:3] == ("ip", "address", "replace") and words[3] == "fd00:1::1/64" and self.forgets != "address":
            self.six.add(words[-1])
        elif words[1:4] == ("-4", "route", "replace"):
            self.routed.add(words[-1])
        elif words[:2] == ("chronyc", "-n"):
            return SOURCES.format(self.heard_seconds)
        return ""

    def link(self, name: str, state: str) -> None:
        if state == "up" or name != self.keeps_up:
            self.flag(name, up=state == "up")
        if state == "down":
            self.six.discard(name)
            self.routed.discard(name)


@pytest.fixture
def rails(tmp_path: Path) -> Rails:
    return Rails(tmp_path / "host")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BACK_SECONDS", "NTP_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(planes_proof, name, 0.01)


def down(rails: Rails, *, chrony: bool = False, dns: bool = True) -> None:
    if chrony:
        (rails.root / "run/chrony").mkdir(parents=True)
        (rails.root / "run/chrony/chronyd.pid").write_text("7\n")
    take_down(
        ["ens1", "ens2"], runner=rails, sys=SysRoot(str(rails.root)), name_servers=["10.0.0.53"], asks=lambda _server: dns,
        folder=rails.root / "proof",
    )  # fmt: skip


def up(rails: Rails, *, dns: bool = True) -> planes_proof.Outcome:
    return bring_up(runner=rails, sys=SysRoot(str(rails.root)), asks=lambda _server: dns, folder=rails.root / "proof")


def test_a_host_that_needs_no_rail(rails: Rails) -> None:
    down(rails, chrony=True)
    set_down = rails.ran.index("ip link set dev ens1 down")
    assert next(each for each in rails.ran if each.startswith("systemd-run")).startswith(
        "systemd-run --unit=rdma-planes-restore --on-active=60s --timer-property=AccuracySec=1s"
    )
    assert any(each.startswith("systemctl show") for each in rails.ran[:set_down]), "the timer is looked at before"
    assert (rails.root / "proof" / SCRIPT).stat().st_mode & 0o777 == 0o600
    outcome = up(rails)
    assert (outcome.lost, outcome.answered) == ([], ["name server 10.0.0.53", "NTP server 192.0.2.5"])
    assert (rails.six, rails.routed, rails.armed) == ({"ens1"}, {"ens1"}, False)
    assert rails.ran[-1] == f"systemctl stop {TIMER}"
    assert list((rails.root / "proof").iterdir()) == []


def test_the_script_of_the_timer_brings_all_back(rails: Rails) -> None:
    down(rails)
    lines = (rails.root / "proof" / SCRIPT).read_text().splitlines()
    assert lines[:8] == [
        "#!/bin/sh",
        "ip link set dev ens1 up",
        "ip link set dev ens2 up",
        "ip address replace 192.168.100.1/24 brd 192.168.100.255 dev ens1",
        "ip address replace fd00:1::1/64 dev ens1",
        *(f"ip -4 route replace {route} dev ens1" for route in KEPT_OF_IPV4),
        "ip -6 route replace fd00:9::/48 via fd00:1::fe proto static metric 77 dev ens1",
    ]


@pytest.mark.parametrize("fault", ["can_arm", "arms"])
def test_without_an_armed_timer_no_rail_goes_down(rails: Rails, fault: str) -> None:
    setattr(rails, fault, False)
    with pytest.raises(ApplyError, match="no rail was set down"):
        down(rails)
    assert not any(each.endswith(" down") for each in rails.ran)


def test_a_rail_that_stays_up_ends_the_proof_and_the_others_come_back(rails: Rails) -> None:
    rails.keeps_up = "ens2"
    with pytest.raises(ApplyError, match="still up after `ip link set dev ens2 down`: ens2"):
        down(rails)
    assert rails.ran.index("ip link set dev ens1 up") > rails.ran.index("ip link set dev ens1 down")


def test_servers_that_fall_silent_are_named(rails: Rails) -> None:
    down(rails, chrony=True)
    rails.heard_seconds = 40
    assert up(rails, dns=False).lost == ["name server 10.0.0.53 no longer answers", "NTP server 192.0.2.5 no longer answers"]
    assert rails.armed is False, "the rails are back"


def test_a_server_that_was_silent_before_is_not_lost(rails: Rails) -> None:
    down(rails, dns=False)
    assert up(rails, dns=False) == planes_proof.Outcome([], [])


def test_a_timer_that_has_fired_is_no_proof(rails: Rails) -> None:
    down(rails)
    rails.armed = False
    assert "before the host was reached" in up(rails).lost[0]


def test_what_does_not_come_back_is_named_and_the_timer_stays(rails: Rails) -> None:
    down(rails)
    rails.forgets = "address"
    assert up(rails).lost == ["ens1 has lost its address fd00:1::1/64"]
    assert rails.armed is True
    assert (rails.root / "proof" / STATE).exists()


def test_without_a_proof_under_way_nothing_is_set_up(rails: Rails) -> None:
    with pytest.raises(ApplyError, match="No proof is under way"):
        up(rails)


def test_interfaces_above_a_rail_belong_to_it(tmp_path: Path) -> None:
    for name in ("ens1/upper_ens1.7", "ens1.7/upper_br0", "br0/lower_ens1.7"):
        (tmp_path / "sys/class/net" / name).mkdir(parents=True)
    assert interfaces_on(["ens1"], SysRoot(str(tmp_path))) == ["ens1", "ens1.7", "br0"]


def test_a_session_on_a_rail_and_an_unknown_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "sys/class/net/ens1/upper_ens1.7").mkdir(parents=True)
    sys = SysRoot(str(tmp_path))
    refuse_session(Session("10.0.2.15", "enp0s2"), ["ens1"], sys)
    for session, words in (
        (Session("192.168.100.1", "ens1.7"), "uses ens1.7"),
        (Session("10.9.9.9", None), "no single interface has its address 10.9.9.9"),
        (Session(None, None), "the connection is not SSH"),
    ):
        with pytest.raises(ApplyError, match=words):
            refuse_session(session, ["ens1"], sys)


def test_only_static_addresses_for_other_hosts_are_restored() -> None:
    infos = [
        address("192.168.100.1", 24, broadcast="192.168.100.255"),
        address("192.168.100.77", 24, dynamic=True),
        address("fd00::5", 64, temporary=True, dynamic=True),
        {"local": "fe80::1", "prefixlen": 64, "scope": "link"},
    ]
    assert parse_addresses(json.dumps([{"addr_info": infos}, {}])) == [("192.168.100.1/24", "brd", "192.168.100.255")]
    with pytest.raises(ParseError, match="not the JSON of"):
        parse_addresses("ens1: no JSON")


def test_routes_that_come_back_by_themselves_are_left_out() -> None:
    assert parse_own_routes(ROUTES_OF_IPV4) == KEPT_OF_IPV4
    assert parse_own_routes(ROUTES_OF_IPV6) == ["fd00:9::/48 via fd00:1::fe proto static metric 77"]


def test_sources_of_chrony_without_reference_clocks() -> None:
    assert parse_sources(SOURCES.format(35)) == {"192.0.2.5": ("*", 35.0), "192.0.2.6": ("?", 4294967295.0)}
    with pytest.raises(ParseError, match="not a source of chronyc"):
        parse_sources("506 Cannot talk to daemon\n")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, list[bytes]]]:
    """A name server on this machine that gives these answers, the number of the query before each."""
    monkeypatch.setattr(planes_proof, "DNS_SECONDS", 0.5)
    replies: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.bind(("127.0.0.1", 0))
        port.settimeout(5.0)

        def serve() -> None:
            query, client = port.recvfrom(512)
            for reply in replies:
                port.sendto(query[:2] + reply, client)

        thread = threading.Thread(target=serve)
        thread.start()
        yield port.getsockname()[1], replies
        thread.join()


@pytest.mark.parametrize(("code", "is_answer"), [(0, True), (5, True), (2, False), (None, False)])
def test_a_name_server_answers_with_anything_but_its_own_failure(
    server: tuple[int, list[bytes]], code: int | None, is_answer: bool
) -> None:
    number, replies = server
    replies.extend([] if code is None else [struct.pack(">5H", 0x8180 | code, 1, 0, 0, 0)])
    assert answers("127.0.0.1", number) is is_answer
