# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The structures of SIOCETHTOOL, byte for byte, and what is asked in which order."""

from __future__ import annotations

import errno
import os
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._net import ethtool_ioctl
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import DriverInfo, LinkSettings, Pause, Rings, Timestamping
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import (
    LINK_MODES_MBPS,
    IoctlPort,
    decode_driver,
    decode_link,
    decode_pause,
    decode_rings,
    decode_statistics,
    decode_timestamping,
)
from tests.unit.builders.garbled import read_or_refused

DECODERS = [decode_driver, decode_link, decode_rings, decode_pause, decode_timestamping]
#: ethtool's names of the bits of SOF_TIMESTAMPING_ (include/uapi/linux/net_tstamp.h).
STAMPS = {
    "hardware-transmit": 0,
    "software-transmit": 1,
    "hardware-receive": 2,
    "software-receive": 3,
    "software-system-clock": 4,
    "hardware-raw-clock": 6,
}


FIXTURES = Path(__file__).parents[3] / "fixtures"


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)


def text(value: str, size_bytes: int = 32) -> bytes:
    return value.encode().ljust(size_bytes, b"\0")


DRVINFO = (
    words(0x03)
    + (text("mlx5_core") + text("5.15.0-91-generic") + text("28.39.1002 (MT_0000000838)") + text("0000:18:00.0") + text(""))
    + (bytes(12) + words(9, 1200, 5, 0, 0))
)
# 400000 Mb/s, full duplex, FIBRE, autoneg on, 4 words of masks.
LINK_HEAD = words(0x4C, 400000) + bytes([1, 3, 0, 1, 0, 0, 0, 4]) + bytes(4 + 28)
# 25000baseCR (31); 100000baseCR4 (38) with 100000baseKR4 (36); 400000baseCR4 (89) with Autoneg (6) and Pause (13).
SUPPORTED = words(1 << 31 | 1 << 6 | 1 << 13, 1 << (38 - 32) | 1 << (36 - 32), 1 << (89 - 64), 0)
LINK = LINK_HEAD + SUPPORTED + SUPPORTED + bytes(16)
STRINGS = words(0x1B, 1, 3) + text("rx_packets") + text("rx_prio3_pause") + text("a_name_of_the_full_length_of_a_fi")[:32]
STATISTICS = words(0x1D, 3) + struct.pack("=3Q", 7, 0, 2**64 - 1)


def test_the_driver() -> None:
    assert decode_driver(DRVINFO) == DriverInfo(
        driver="mlx5_core",
        version="5.15.0-91-generic",
        firmware="28.39.1002 (MT_0000000838)",
        bus_info="0000:18:00.0",
        expansion_rom=None,
        supports={"priv-flags": True, "statistics": True, "test": True, "eeprom-access": False, "register-dump": False},
    )


@pytest.mark.parametrize("nothing", ["", "N/A", "n/a"])
def test_a_driver_without_firmware(nothing: str) -> None:
    assert decode_driver(DRVINFO.replace(text("28.39.1002 (MT_0000000838)"), text(nothing))).firmware is None


def test_the_link() -> None:
    assert decode_link(LINK) == LinkSettings(400000, "full", True, "FIBRE", [25000, 100000, 400000])


@pytest.mark.parametrize("speed", [0, 0xFFFF, 0xFFFFFFFF])
def test_a_link_that_is_down(speed: int) -> None:
    down = words(0x4C, speed) + bytes([0xFF, 0xEF, 0, 2, 0, 0, 0, 0]) + bytes(32)
    assert decode_link(down) == LinkSettings(None, None, None, "None", [])


@pytest.mark.parametrize(("number", "name"), [(0, "Twisted Pair"), (4, "BNC"), (5, "Direct Attach Copper"), (0xFF, "Other"), (6, None)])
def test_ports_have_the_names_that_ethtool_gives_them(number: int, name: str | None) -> None:
    assert decode_link(LINK[:9] + bytes([number]) + LINK[10:]).port == name


@pytest.mark.parametrize(
    ("bit", "speed_mbps"),
    [
        *[(0, 10), (3, 100), (5, 1000), (15, 2500), (48, 5000), (20, 10000), (22, 20000), (33, 25000), (26, 40000), (40, 50000)],
        *[(30, 56000), (79, 100000), (66, 200000), (103, 200000), (73, 400000), (114, 400000), (93, 800000), (120, 800000)],
        (124, 1600000),
    ],
)
def test_one_mode_is_one_speed(bit: int, speed_mbps: int) -> None:
    mask = (1 << bit).to_bytes(16, "little")
    masks = b"".join(words(int.from_bytes(mask[start : start + 4], "little")) for start in range(0, 16, 4))
    assert decode_link(LINK_HEAD + masks + bytes(32)).supported_speeds_mbps == [speed_mbps]


@pytest.mark.parametrize("bit", [6, 7, 8, 9, 10, 11, 13, 14, 16, 49, 50, 51, 74, 125])
def test_ports_pause_and_fec_are_no_speeds(bit: int) -> None:
    assert not [speed for speed, runs in LINK_MODES_MBPS.items() for first, last in runs if first <= bit <= last]


def test_every_other_mode_has_one_speed() -> None:
    bits = [bit for runs in LINK_MODES_MBPS.values() for first, last in runs for bit in range(first, last + 1)]
    assert sorted(bits) == sorted(set(range(125)) - {6, 7, 8, 9, 10, 11, 13, 14, 16, 49, 50, 51, 74})


def test_rings() -> None:
    assert decode_rings(words(0x10, 8192, 0, 0, 4096, 1024, 0, 0, 512)) == Rings(rx=1024, tx=512, rx_max=8192, tx_max=4096)
    assert decode_rings(words(0x10, 0, 0, 0, 256, 0, 0, 0, 256)) == Rings(rx=None, tx=256, rx_max=None, tx_max=256)


def test_pause() -> None:
    assert decode_pause(words(0x12, 0, 1, 0)) == Pause(autoneg=False, rx=True, tx=False)


def test_counters() -> None:
    assert decode_statistics(STRINGS, STATISTICS) == {
        "rx_packets": 7,
        "rx_prio3_pause": 0,
        "a_name_of_the_full_length_of_a_f": 2**64 - 1,
    }


def test_counters_that_changed_between_their_names_and_values_are_unknown() -> None:
    assert decode_statistics(STRINGS, words(0x1D, 2) + bytes(24)) is None


@pytest.mark.parametrize(("strings", "statistics"), [(STRINGS[:-1], STATISTICS), (STRINGS, STATISTICS[:-1]), (b"", STATISTICS)])
def test_counters_that_are_cut_short(strings: bytes, statistics: bytes) -> None:
    with pytest.raises(ParseError):
        decode_statistics(strings, statistics)


@pytest.mark.parametrize("decode", DECODERS)
def test_an_answer_that_is_cut_short_is_quoted(decode) -> None:
    with pytest.raises(ParseError, match="'0300'"):
        decode(b"\3\0")


def test_masks_that_are_cut_short() -> None:
    with pytest.raises(ParseError, match="4 words in 15 bytes"):
        decode_link(LINK_HEAD + SUPPORTED[:-1])


@pytest.mark.parametrize("decode", DECODERS)
@given(data=st.binary(max_size=300) | st.binary(min_size=200, max_size=300))
def test_nothing_but_a_parse_error_escapes(decode, data: bytes) -> None:
    assert read_or_refused(decode, data)


@given(strings=st.binary(max_size=300), statistics=st.binary(max_size=300))
def test_nothing_but_a_parse_error_escapes_counters(strings: bytes, statistics: bytes) -> None:
    assert read_or_refused(decode_statistics, strings, statistics)


class Kernel:
    """Plays a script of (bytes that a request begins with, size of the request, answer or errno)."""

    def __init__(self, *script: tuple[bytes, int, bytes | int]) -> None:
        self._script = list(script)

    def __call__(self, name: str, message: bytearray) -> None:
        assert name == "eth1"
        assert self._script, f"no further request was expected, got {bytes(message[:20]).hex()}"
        begins, size_bytes, answer = self._script.pop(0)
        assert message.startswith(begins)
        assert len(message) == size_bytes
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        assert len(answer) <= len(message)
        message[: len(answer)] = answer

    def assert_done(self) -> None:
        assert not self._script


def test_the_link_is_asked_for_the_length_of_its_masks_first() -> None:
    sizes = words(0x4C, 0) + struct.pack("=7Bb", 0, 0, 0, 0, 0, 0, 0, -4) + bytes(32)
    kernel = Kernel((words(0x4C, 0), 48, sizes), (words(0x4C, 0) + bytes(7) + b"\4", 48 + 3 * 16, LINK))
    assert IoctlPort(kernel).link("eth1") == LinkSettings(400000, "full", True, "FIBRE", [25000, 100000, 400000])
    kernel.assert_done()


def test_a_kernel_that_does_not_say_how_long_its_masks_are() -> None:
    assert IoctlPort(Kernel((words(0x4C), 48, words(0x4C, 0) + bytes(40)))).link("eth1") is None


def test_counters_are_counted_named_and_read_with_room_for_more() -> None:
    counted = words(0x37, 0) + struct.pack("=Q", 2) + words(3)
    kernel = Kernel(
        (words(0x37, 0) + struct.pack("=Q", 2), 20, counted),
        (words(0x1B, 1, 3), 12 + 32 * 1027, STRINGS),
        (words(0x1D, 3), 8 + 8 * 1027, STATISTICS),
    )
    found = IoctlPort(kernel).statistics("eth1")
    assert found is not None
    assert list(found) == ["rx_packets", "rx_prio3_pause", "a_name_of_the_full_length_of_a_f"]
    kernel.assert_done()


@pytest.mark.parametrize(("mask", "count"), [(0, 0), (2, 0), (2, 2**32 - 1)])
def test_a_driver_without_counters(mask: int, count: int) -> None:
    answer = words(0x37, 0) + struct.pack("=Q", mask) + words(count)
    assert IoctlPort(Kernel((words(0x37), 20, answer))).statistics("eth1") is None


@pytest.mark.parametrize(
    ("what", "command", "size_bytes", "answer", "expected"),
    [
        ("drvinfo", 0x03, 196, DRVINFO, decode_driver(DRVINFO)),
        ("rings", 0x10, 36, words(0x10, 2, 0, 0, 2, 1, 0, 0, 1), Rings(1, 1, 2, 2)),
        ("pause", 0x12, 16, words(0x12, 1, 1, 1), Pause(True, True, True)),
        ("timestamping", 0x41, 44, words(0x41, 0x5F, 3, 3, 0, 0, 0, 3, 0, 0, 0), Timestamping(True, True, 3)),
    ],
)
def test_one_request_each(what: str, command: int, size_bytes: int, answer: bytes, expected: object) -> None:
    kernel = Kernel((words(command), size_bytes, answer))
    assert getattr(IoctlPort(kernel), what)("eth1") == expected
    kernel.assert_done()


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENODEV, errno.EPERM, errno.EIO, errno.EINVAL])
@pytest.mark.parametrize(
    ("what", "size_bytes"), [("drvinfo", 196), ("link", 48), ("rings", 36), ("pause", 16), ("statistics", 20), ("timestamping", 44)]
)
def test_a_driver_that_does_not_answer(what: str, size_bytes: int, number: int) -> None:
    assert getattr(IoctlPort(Kernel((b"", size_bytes, number))), what)("eth1") is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(words(0x42, 3, 640), True), (errno.EINVAL, True), (errno.EOPNOTSUPP, False), (errno.ENODEV, False), (errno.EPERM, False)],
)
def test_whether_there_is_a_module(answer: bytes | int, expected: bool) -> None:
    assert IoctlPort(Kernel((words(0x42), 44, answer))).has_module("eth1") is expected


@pytest.mark.parametrize("name", ["rdma-no-such-if", "a_name_that_no_interface_can_have", "", "lo\0", "\udc80"])
def test_this_kernel_knows_no_such_interface(name: str) -> None:
    port = IoctlPort()
    answers = [port.drvinfo(name), port.link(name), port.rings(name), port.pause(name), port.statistics(name)]
    assert answers == [None] * 5
    assert not port.has_module(name)


def test_a_name_is_never_cut_to_that_of_another_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ethtool_ioctl.fcntl, "ioctl", lambda *arguments: pytest.fail(f"the kernel was asked: {arguments}"))
    assert IoctlPort().pause("sixteen_bytes_16") is None


def test_the_time_stamps_of_an_interface_are_those_that_ethtool_prints() -> None:
    printed = FIXTURES.joinpath("ptp/6.1-ethtool-T-veth.txt").read_text(encoding="ascii")
    flags = sum(1 << bit for name, bit in STAMPS.items() if f"\t{name}\n" in printed)
    assert "PTP Hardware Clock: none\n" in printed
    assert decode_timestamping(words(0x41, flags, 0xFFFFFFFF) + bytes(32)) == Timestamping(hardware=False, software=True, clock=None)
    assert decode_timestamping(words(0x41, 0x5F & ~2, 0) + bytes(32)) == Timestamping(hardware=True, software=False, clock=0)
    assert decode_timestamping(words(0x41, 0x5F & ~4, 0) + bytes(32)).hardware is False


def test_the_loopback_of_this_kernel_has_no_clock() -> None:
    seen = IoctlPort().timestamping("lo")
    assert seen is not None
    assert (seen.hardware, seen.clock) == (False, None)


def test_the_loopback_of_this_kernel_has_no_rings() -> None:
    assert IoctlPort().rings("lo") is None


@pytest.mark.parametrize(
    ("number", "failed"),
    [
        (errno.EIO, {"pause": os.strerror(errno.EIO)}),
        (errno.ETIMEDOUT, {"pause": os.strerror(errno.ETIMEDOUT)}),
        (errno.EOPNOTSUPP, {}),
        (errno.ENODEV, {}),
        (errno.EINVAL, {}),
    ],
)
def test_what_a_driver_does_not_have_is_an_answer_and_what_it_fails_at_is_none(number: int, failed: dict[str, str]) -> None:
    def refuse(name: str, message: bytearray) -> None:
        raise OSError(number, os.strerror(number))

    port = IoctlPort(refuse)
    assert port.pause("eth1") is None
    assert (port.failed("eth1"), port.failed("eth2")) == (failed, {})
