# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._rdma import sysfs
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import GidAddress, Rate
from tests.unit.builders.garbled import read_or_refused

PARSERS = [getattr(sysfs, name) for name in dir(sysfs) if name.startswith("parse_")]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("0: NOP\n", "NOP"),
        ("1: DOWN\n", "DOWN"),
        ("2: INIT\n", "INIT"),
        ("4: ACTIVE\n", "ACTIVE"),
        ("4: ACTIVE\r\n", "ACTIVE"),
        ("5: ACTIVE_DEFER\n", "ACTIVE_DEFER"),
        ("9: UNKNOWN\n", None),
    ],
)
def test_state(text: str, state: str | None) -> None:
    assert sysfs.parse_state(text) == state


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("5: LinkUp\n", "LinkUp"),
        ("3: Disabled", "Disabled"),
        ("7: Phy Test\n", "Phy Test"),
        ("0: <unknown>\n", None),
    ],
)
def test_physical_state(text: str, state: str | None) -> None:
    assert sysfs.parse_physical_state(text) == state


@pytest.mark.parametrize(("text", "node_type"), [("1: CA\n", "CA"), ("2: switch\n", "switch"), ("4: RNIC\n", "RNIC")])
def test_node_type(text: str, node_type: str) -> None:
    assert sysfs.parse_node_type(text) == node_type


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100 Gb/sec (4X EDR)\n", Rate(100.0, 4, "EDR")),
        ("2.5 Gb/sec (1X SDR)\n", Rate(2.5, 1, "SDR")),
        ("2.5 Gb/sec (1X)\n", Rate(2.5, 1, None)),
        ("10 Gb/sec (4X)\n", Rate(10.0, 4, None)),
        ("40 Gb/sec (4X FDR10)\n", Rate(40.0, 4, "FDR10")),
        ("400 Gb/sec (4X NDR)", Rate(400.0, 4, "NDR")),
        ("500 Gb/sec (4X HDR)", Rate(500.0, 4, "HDR")),
        ("200 Gb/sec (2X NDR)", Rate(200.0, 2, "NDR")),
        ("600 Gb/sec (12X HDR)", Rate(600.0, 12, "HDR")),
        ("800 Gb/sec (4X XDR)\r\n", Rate(800.0, 4, "XDR")),
        ("0 GB/sec\n", Rate(0.0, None, None)),
    ],
)
def test_rate(text: str, rate: Rate) -> None:
    assert sysfs.parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["100", "100 Gb/sec (4X EDR", "100 Gb/sec (", "Gb/sec (4X EDR)", "100 Mb/sec (4X EDR)", "-1 Gb/sec", "fast"]
)
def test_another_text_is_no_rate(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        sysfs.parse_rate(text)
    assert str(caught.value) == f"not a rate: {text!r}, expected the form '100 Gb/sec (4X EDR)'"


@pytest.mark.parametrize(("text", "lid"), [("0x3a4\n", 932), ("0x1", 1), ("12", 12), ("0x0\n", None), ("0xffff\n", None), ("65535", None)])
def test_lid(text: str, lid: int | None) -> None:
    assert sysfs.parse_lid(text) == lid


@pytest.mark.parametrize(
    ("text", "guid"),
    [
        ("0002:c903:00f9:bfa0\n", "0002:c903:00f9:bfa0"),
        ("0A7F:BC12:45EF:D23B", "0a7f:bc12:45ef:d23b"),
        ("0x0002c90300f9bfa0\n", "0002:c903:00f9:bfa0"),
        ("0000:0000:0000:0000\n", None),
    ],
)
def test_guid(text: str, guid: str | None) -> None:
    assert sysfs.parse_guid(text) == guid


@pytest.mark.parametrize(
    ("text", "gid", "ipv4"),
    [
        ("fe80:0000:0000:0000:0002:c903:00f9:bfa1\n", "fe80:0000:0000:0000:0002:c903:00f9:bfa1", None),
        ("FE80::2:C903:F9:BFA1", "fe80:0000:0000:0000:0002:c903:00f9:bfa1", None),
        ("0000:0000:0000:0000:0000:ffff:0a0a:0102\n", "0000:0000:0000:0000:0000:ffff:0a0a:0102", "10.10.1.2"),
        ("::ffff:10.10.1.2", "0000:0000:0000:0000:0000:ffff:0a0a:0102", "10.10.1.2"),
        ("::10.10.1.2", "0000:0000:0000:0000:0000:0000:0a0a:0102", None),
    ],
)
def test_gid(text: str, gid: str, ipv4: str | None) -> None:
    assert sysfs.parse_gid(text) == GidAddress(gid, ipv4)


@pytest.mark.parametrize("text", ["fe80:0000:0000:0000:0002:c903:00f9", "fe80::1%eth0", "10.10.1.2", "fe80::1/64"])
def test_another_text_is_no_gid(text: str) -> None:
    with pytest.raises(ParseError, match="not a GID"):
        sysfs.parse_gid(text)


@pytest.mark.parametrize(
    ("text", "has_interface_id"),
    [
        ("0000:0000:0000:0000:0000:0000:0000:0000", False),
        ("fe80:0000:0000:0000:0000:0000:0000:0000", False),
        ("fe80:0000:0000:0000:0002:c903:00f9:bfa1", True),
        ("0000:0000:0000:0000:0000:ffff:0a0a:0102", True),
        ("0000:0000:0000:0000:8000:0000:0000:0000", True),
    ],
)
def test_an_unused_gid_is_known_by_its_zeros(text: str, has_interface_id: bool) -> None:
    assert sysfs.parse_gid(text).has_interface_id is has_interface_id


@pytest.mark.parametrize(
    ("text", "counter"),
    [("0\n", 0), ("18446744073709551615", 2**64 - 1), ("N/A (no PMA)\n", None), ("N/A", None)],
)
def test_counter(text: str, counter: int | None) -> None:
    assert sysfs.parse_counter(text) == counter


@pytest.mark.parametrize("text", ["-1", "1.5", "0x10", "1_000", "٣", "N/A no PMA", "1 2", "9" * 5000])
def test_another_text_is_no_counter(text: str) -> None:
    with pytest.raises(ParseError, match="not a counter"):
        sysfs.parse_counter(text)


def test_an_error_quotes_no_more_than_a_line_of_a_long_text() -> None:
    with pytest.raises(ParseError) as caught:
        sysfs.parse_counter("x" * 100_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("parser", PARSERS)
@given(text=st.text() | st.from_regex(r"[0-9x: .a-fN/ATGb()sec]*") | st.from_regex(r"[0-9]*: .*"))
def test_nothing_but_a_parse_error_escapes(parser, text: str) -> None:
    assert read_or_refused(parser, text)


@pytest.mark.parametrize(("text", "key"), [("0xffff\n", 0xFFFF), ("0x7fff", 0x7FFF), ("0x0000", 0), ("0x8101", 0x8101)])
def test_a_pkey(text: str, key: int) -> None:
    assert sysfs.parse_pkey(text) == key


@pytest.mark.parametrize("text", ["ffff", "0xfffff", "0x", "65535", ""])
def test_what_is_no_pkey(text: str) -> None:
    with pytest.raises(ParseError, match="P_Key"):
        sysfs.parse_pkey(text)
