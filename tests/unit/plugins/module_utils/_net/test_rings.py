# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rings: what differs alone is set, one interface after the other, and looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net import rings as net_rings
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Rings
from ansible_collections.rdma.cluster.plugins.module_utils._net.rings import RailRings, ensure_rings, rules_file
from tests.unit.builders.fakes import FakeRunner, SilentPort
from tests.unit.builders.trees import write_tree

RAIL0 = RailRings("rail0", {"pci": "0000:21:00.0"}, "ens1", 256, 1024)
RAIL1 = RailRings("rail1", {"mac": "52:54:00:1A:01:01"}, "ens2", None, 512)


class Driver(SilentPort, FakeRunner):
    """A stand-in of a driver and of ethtool, which sets what it is given in the form that ethtool takes; rounds: to a power of two."""

    def __init__(self, *, rounds: bool = False) -> None:
        FakeRunner.__init__(self, [])
        self.rounds = rounds
        self.held = {"ens1": {"rx": 256, "tx": 256}, "ens2": {"rx": 256, "tx": 256}}

    def rings(self, name: str) -> Rings | None:  # type: ignore[override]
        return Rings(**self.held[name], rx_max=256, tx_max=1024) if name in self.held else None

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        program, flag, name, *sizes = argv
        assert (program, flag, len(sizes) % 2) == ("ethtool", "-G", 0)
        self.ran.append(tuple(argv))
        for way, size in zip(sizes[::2], sizes[1::2]):
            self.held[name][way] = 1 << (int(size) - 1).bit_length() if self.rounds else int(size)
        return Completed(tuple(argv), 0, "", "")


@pytest.fixture(autouse=True)
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(net_rings, "RULES_FILE", str(tmp_path / "rings.rules"))
    return tmp_path / "rings.rules"


@pytest.fixture
def sys(tmp_path: Path) -> SysRoot:
    return SysRoot(str(write_tree(tmp_path, "/sys/class/net/ens1/carrier: 1\n/sys/class/net/ens2/carrier: 1")))


def test_only_what_differs_is_set(rules: Path, sys: SysRoot) -> None:
    driver = Driver()
    result = ensure_rings([RAIL0, RAIL1], runner=driver, port=driver, sys=sys, refused="", check_mode=False)
    assert driver.ran == [("ethtool", "-G", "ens1", "rx", "256", "tx", "1024"), ("ethtool", "-G", "ens2", "tx", "512")]
    assert result.live_words == {"ens1": ("rx 256, tx 256", "rx 256, tx 1024"), "ens2": ("tx 256", "tx 512")}
    # rx of ens1 is as planned, and has no line.
    assert [(diff["after_header"], diff["before"], diff["after"]) for diff in result.diffs[1:]] == [
        ("tx ring of ens1", "256\n", "1024\n"),
        ("tx ring of ens2", "256\n", "512\n"),
    ]
    assert rules.read_text().splitlines()[1:] == [
        'ACTION=="add", SUBSYSTEM=="net", KERNELS=="0000:21:00.0", RUN+="/usr/sbin/ethtool -G $name rx 256 tx 1024"',
        'ACTION=="add", SUBSYSTEM=="net", ATTR{address}=="52:54:00:1a:01:01", RUN+="/usr/sbin/ethtool -G $name tx 512"',
    ]
    again = ensure_rings([RAIL0, RAIL1], runner=driver, port=driver, sys=sys, refused="", check_mode=False)
    assert (again.changed, len(driver.ran)) == (False, 2)


def test_without_leave_the_boot_is_provided_for_and_the_link_left(rules: Path, sys: SysRoot) -> None:
    driver = Driver()
    result = ensure_rings([RAIL0], runner=driver, port=driver, sys=sys, refused="not allowed", check_mode=False)
    assert (result.changed, result.live, driver.ran, rules.exists()) == (True, {}, [], True)
    assert result.withheld == ["ens1: rx 256, tx 256, requested rx 256, tx 1024 (not allowed)"]
    assert not ensure_rings([RAIL0], runner=driver, port=driver, sys=sys, refused="not allowed", check_mode=False).changed


@pytest.mark.parametrize("refused", ["", "not allowed"])
def test_check_mode_shows_all_and_sets_nothing(rules: Path, sys: SysRoot, refused: str) -> None:
    driver = Driver()
    result = ensure_rings([RAIL0], runner=driver, port=driver, sys=sys, refused=refused, check_mode=True)
    assert (driver.ran, rules.exists()) == ([], False)
    assert [diff["after_header"] for diff in result.diffs] == [str(rules), "tx ring of ens1"]


def test_a_length_that_does_not_stick_is_an_error(sys: SysRoot) -> None:
    driver = Driver(rounds=True)
    odd = RailRings("rail0", {"pci": "0000:21:00.0"}, "ens1", None, 1000)
    with pytest.raises(ApplyError, match=r"`ethtool -G ens1 tx 1000` succeeded, and the rings are tx 1024"):
        ensure_rings([odd], runner=driver, port=driver, sys=sys, refused="", check_mode=False)


def test_a_refusal_is_an_error_in_the_words_of_ethtool(sys: SysRoot) -> None:
    refusal = FakeRunner([(["ethtool", "-G", "ens1", "rx", "256", "tx", "1024"], 1, "", "netlink error: Invalid argument")])
    with pytest.raises(ApplyError, match="failed: netlink error: Invalid argument"):
        ensure_rings([RAIL0], runner=refusal, port=Driver(), sys=sys, refused="", check_mode=False)


def test_a_link_that_does_not_come_back_is_waited_for_and_left_to_its_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carriers = iter([True, False, False, True])
    monkeypatch.setattr(net_rings, "has_carrier", lambda _name, _sys: next(carriers))
    driver = Driver()
    ensure_rings([RAIL0], runner=driver, port=driver, sys=SysRoot(str(tmp_path)), refused="", check_mode=False)
    assert list(carriers) == []


def test_no_rail_no_file() -> None:
    (gone,) = rules_file([])
    (empty,) = rules_file([RailRings("rail0", {"pci": "0000:21:00.0"}, "ens1", None, None)])
    assert (gone.content, empty.content) == (None, None)
