# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The faults of a drill on a switch that keeps its state in files: the order of timer and fault, what is refused, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._drill import fault
from ansible_collections.rdma.cluster.plugins.module_utils._drill.fault import CUT, KINDS, PORTS_DOWN, SILENCE, STOP_FRR
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session

TOKEN = "00112233aabbccdd"
TIMER = f"rdma-drill-restore-{TOKEN}"
ADDRESS = '[{"addr_info": [{"family": "inet", "local": "192.0.2.1", "prefixlen": 31, "scope": "global"}]}]'
ROUTES = "10.9.0.0/16 via 192.0.2.0 proto static\n10.1.1.0/24 via inet6 fe80::2 proto bgp metric 20\n192.0.2.0/31 proto kernel scope link\n"


class Switch:
    """A Runner with two uplinks, nftables, frr.service and systemd-run. Any other command fails the test."""

    def __init__(self, root: Path) -> None:
        self.root, self.ran = root, list[str]()
        self.rules = self.armed = False
        self.frr, self.can_arm, self.goes_down, self.comes_up = True, True, True, True
        for name in ("swp1", "swp2"):
            self.flag(name, up=True)

    def flag(self, name: str, *, up: bool) -> None:
        folder = self.root / "sys/class/net" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "flags").write_text("0x1003\n" if up else "0x1002\n")
        (folder / "carrier").write_text("1\n" if up else "0\n")

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words = tuple(argv)
        self.ran.append(" ".join(words))
        rc, text = self.answer(words)
        return Completed(words, rc, text, "")

    def answer(self, words: tuple[str, ...]) -> tuple[int, str]:  # noqa: C901, PLR0912 (one branch for each command)
        if words[:3] == ("ip", "link", "set"):
            up = words[5] == "up"
            if self.comes_up if up else self.goes_down:
                self.flag(words[4], up=up)
        elif words[:4] == ("ip", "-json", "address", "show"):
            return 0, ADDRESS
        elif words[2:4] == ("route", "show"):
            return 0, ROUTES if words[1] == "-4" else ""
        elif words[:3] == ("ip", "address", "replace") or words[1:4] == ("-4", "route", "replace") or words == ("nft", "--version"):
            pass
        elif words[:2] == ("nft", "-f"):
            self.rules = "drop" in Path(words[2]).read_text()
        elif words == ("nft", "delete", "table", "inet", "rdma_drill"):
            self.rules, there = False, self.rules
            return 0 if there else 1, ""
        elif words == ("nft", "list", "table", "inet", "rdma_drill"):
            return 0 if self.rules else 1, ""
        elif words[:2] == ("systemctl", "show"):
            active = self.frr if words[-1] == "frr.service" else self.armed
            return 0, f"Id={words[-1]}\nActiveState={'active' if active else 'inactive'}\nUnitFileState=transient\n"
        elif words[0] == "systemctl" and words[2] == "frr.service":
            self.frr = words[1] == "start" and self.comes_up
        elif words == ("systemctl", "stop", f"{TIMER}.timer"):
            self.armed = False
        elif words[0] == "systemd-run":
            assert words[1:4] == (f"--unit={TIMER}", "--on-active=66s", "--timer-property=AccuracySec=1s")
            self.armed = self.can_arm
        else:
            raise AssertionError(f"not expected: {words}")
        return 0, ""

    @property
    def changes(self) -> list[str]:
        return [each for each in self.ran if each.endswith(" down") or each.startswith(("nft -f", "systemctl stop frr"))]


@pytest.fixture
def switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Switch:
    monkeypatch.setattr(fault, "BACK_SECONDS", 0.01)
    monkeypatch.setattr(fault, "LOOK_SECONDS", 0.01)
    return Switch(tmp_path / "switch")


def sys_of(switch: Switch) -> SysRoot:
    return SysRoot(str(switch.root))


def make(switch: Switch, kind: str) -> None:
    ports = ["swp1", "swp2"] if kind in (PORTS_DOWN, STOP_FRR) else ["swp1"]
    folder = switch.root / "drill"
    fault.refuse_state(kind, ports, sys_of(switch), switch, folder)
    fault.make(kind, ports, 66, TOKEN, runner=switch, sys=sys_of(switch), folder=folder)


def end(switch: Switch) -> fault.Ended | None:
    return fault.end(runner=switch, sys=sys_of(switch), folder=switch.root / "drill")


@pytest.mark.parametrize("kind", KINDS)
def test_the_timer_is_armed_before_the_fault_and_nothing_stays_after_it(switch: Switch, kind: str) -> None:
    make(switch, kind)
    assert switch.changes, "the fault was made"
    armed = next(at for at, each in enumerate(switch.ran) if each.startswith("systemd-run"))
    assert armed < switch.ran.index(switch.changes[0])
    assert any(each.startswith("systemctl show") for each in switch.ran[armed : switch.ran.index(switch.changes[0])]), "it was looked at"
    assert (switch.root / "drill/restore.sh").stat().st_mode & 0o777 == 0o600
    assert end(switch) == fault.Ended([], by_timer=False)
    assert (switch.armed, switch.rules, switch.frr, list((switch.root / "drill").iterdir())) == (False, False, True, [])
    assert end(switch) is None


def test_the_script_restores_static_routes_and_leaves_those_of_the_routing_daemon(switch: Switch) -> None:
    make(switch, CUT)
    assert (switch.root / "drill/restore.sh").read_text().splitlines()[1:4] == [
        "ip link set dev swp1 up",
        "ip address replace 192.0.2.1/31 dev swp1",
        "ip -4 route replace 10.9.0.0/16 via 192.0.2.0 proto static dev swp1",
    ]
    assert "10.1.1.0/24" not in (switch.root / "drill/restore.sh").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_without_an_armed_timer_nothing_is_changed(switch: Switch, kind: str) -> None:
    switch.can_arm = False
    with pytest.raises(ApplyError, match="The timer that would end the fault is not active, so nothing was changed"):
        make(switch, kind)
    assert switch.changes == []
    assert list((switch.root / "drill").iterdir()) == []


def test_a_port_that_stays_up_ends_the_fault(switch: Switch) -> None:
    switch.goes_down = False
    with pytest.raises(ApplyError, match="could not be made, and was ended again: still up after `ip link set dev swp1 down`: swp1"):
        make(switch, CUT)
    assert not switch.armed


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        (CUT, "swp1 has no carrier or is disabled: ip link set dev swp1 up"),
        (STOP_FRR, "frr.service is not active: systemctl start frr.service"),
    ],
)
def test_what_does_not_come_back_is_named_and_the_timer_stays(switch: Switch, kind: str, left: str) -> None:
    make(switch, kind)
    switch.comes_up = False
    assert end(switch) == fault.Ended([left], by_timer=False)
    assert switch.armed
    assert (switch.root / "drill/fault.json").exists()


def test_a_fault_that_the_timer_has_ended(switch: Switch) -> None:
    make(switch, CUT)
    switch.armed = False
    switch.flag("swp1", up=True)
    assert end(switch) == fault.Ended([], by_timer=True)


def test_a_second_drill_is_refused(switch: Switch) -> None:
    make(switch, SILENCE)
    with pytest.raises(ApplyError, match=f"interrupted: silence of swp1.*{TIMER}.timer` is inactive, then .* --tags restore"):
        make(switch, CUT)


def test_a_damaged_record_is_an_error(switch: Switch) -> None:
    (switch.root / "drill").mkdir(parents=True)
    (switch.root / "drill/fault.json").write_text('{"kind": "cut"}')
    with pytest.raises(ParseError, match="is not the record of a fault"):
        end(switch)


@pytest.mark.parametrize(
    ("kind", "ports", "words"),
    [
        (CUT, ["swp7"], "This machine has no interface swp7."),
        (CUT, ["swp2"], "swp2 has no carrier or is disabled before the drill"),
        (STOP_FRR, ["swp1"], "frr.service is not active"),
    ],
)
def test_a_switch_that_is_not_as_it_should_be_is_refused(switch: Switch, kind: str, ports: list[str], words: str) -> None:
    switch.flag("swp2", up=False)
    switch.frr = False
    with pytest.raises(ApplyError, match=words):
        fault.refuse_state(kind, ports, sys_of(switch), switch, switch.root / "drill")


@pytest.mark.parametrize(
    ("session", "netdev", "why"),
    [
        (Session("192.0.2.1", "swp1"), "eth0", "Ansible's SSH session uses swp1"),
        (Session("192.0.2.1", None), "eth0", "is unknown"),
        (Session("192.0.2.1", "eth0"), "swp1", "the route to it is through swp1"),
        (Session("192.0.2.1", "eth0"), "eth0", ""),
        (Session(None, None), "swp1", ""),
    ],
)
def test_the_port_of_the_session_is_refused(tmp_path: Path, session: Session, netdev: str, why: str) -> None:
    class Routed(Switch):
        def answer(self, words: tuple[str, ...]) -> tuple[int, str]:
            if words == ("ip", "-json", "route", "get", "198.51.100.9"):
                return 0, json.dumps([{"dst": "198.51.100.9", "dev": netdev}])
            return super().answer(words)

    switch = Routed(tmp_path / "switch")
    if not why:
        fault.refuse_session(session, ["swp1"], sys_of(switch), switch, "198.51.100.9")
        return
    with pytest.raises(ApplyError, match=why):
        fault.refuse_session(session, ["swp1"], sys_of(switch), switch, "198.51.100.9")


def test_the_rules_drop_both_directions_of_the_port_alone() -> None:
    text = fault.silence_rules(["swp1"])
    assert text.splitlines() == [
        "add table inet rdma_drill",
        "add chain inet rdma_drill input { type filter hook input priority -400 ; }",
        'add rule inet rdma_drill input iifname { "swp1" } drop',
        "add chain inet rdma_drill output { type filter hook output priority -400 ; }",
        'add rule inet rdma_drill output oifname { "swp1" } drop',
        "add chain inet rdma_drill forward { type filter hook forward priority -400 ; }",
        'add rule inet rdma_drill forward iifname { "swp1" } drop',
        'add rule inet rdma_drill forward oifname { "swp1" } drop',
    ]
