# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the program ethtool prints of an interface, over ioctl (to 5.5) and over netlink."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils import _ethtool_text
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ethtool import DriverInfo, LinkSettings, Pause, Rings
from ansible_collections.rdma.cluster.plugins.module_utils._ethtool_text import (
    Feature,
    Modes,
    RingParameters,
    Settings,
    parse_ethtool_coalesce,
    parse_ethtool_driver,
    parse_ethtool_features,
    parse_ethtool_pause,
    parse_ethtool_private_flags,
    parse_ethtool_rings,
    parse_ethtool_settings,
    parse_ethtool_statistics,
)
from tests.unit.garbled import no_time, read_or_refused

DRIVER = """driver: mlx5_core
version: 6.8.0-40-generic
firmware-version: 28.39.1002 (MT_0000000838)
expansion-rom-version:
bus-info: 0000:18:00.0
supports-statistics: yes
supports-test: yes
supports-eeprom-access: no
supports-register-dump: no
supports-priv-flags: yes
"""
RINGS = """Ring parameters for ens1f0np0:
Pre-set maximums:
RX:\t\t\t8192
RX Mini:\t\tn/a
RX Jumbo:\t\tn/a
TX:\t\t\t8192
TX push buff len:\tn/a
Current hardware settings:
RX:\t\t\t1024
RX Mini:\t\tn/a
RX Jumbo:\t\tn/a
TX:\t\t\t1024
RX Buf Len:\t\tn/a
CQE Size:\t\t64
TX Push:\t\toff
RX Push:\t\ton
TCP data split:\t\tn/a
"""
PAUSE = """Pause parameters for ens1f0np0:
Autonegotiate:\toff
RX:\t\ton
TX:\t\toff

"""
STATISTICS = """NIC statistics:
     rx_packets: 14
     rx_prio3_pause: 0
     rx_discards_phy: 18446744073709551615
     [0]: rx_ucast_packets: 3
     rxq0: rx_bytes: 9
     TSO pkts tx: 2
     rx0_bytes: 9
"""
FEATURES = """Features for ens1f0np0:
rx-checksumming: on
tx-checksumming: on
\ttx-checksum-ipv4: off [fixed]
\ttx-checksum-ip-generic: on
large-receive-offload: off [requested on]
rx-vlan-filter: on [requested off]
hw-tc-offload: off
"""
FLAGS = """Private flags for ens1f0np0:
rx_cqe_moder       : on
tx_cqe_moder       : off
rx_striding_rq     : on
"""
COALESCE = """Coalesce parameters for ens1f0np0:
Adaptive RX: on  TX: off
stats-block-usecs:\tn/a
sample-interval:\tn/a
pkt-rate-low:\t\tn/a
pkt-rate-high:\t\tn/a

rx-usecs:\t8
rx-frames:\t128
rx-usecs-irq:\tn/a
rx-frames-irq:\tn/a

tx-usecs:\t8
tx-frames:\t128
tx-usecs-irq:\tn/a
tx-frames-irq:\tn/a

rx-usecs-low:\tn/a
rx-frame-low:\tn/a
tx-usecs-low:\tn/a
tx-frame-low:\tn/a

rx-usecs-high:\tn/a
rx-frame-high:\tn/a
tx-usecs-high:\tn/a
tx-frame-high:\tn/a

CQE mode RX: on  TX: n/a

"""
SETTINGS = """Settings for ens1f0np0:
\tSupported ports: [ FIBRE\t Backplane ]
\tSupported link modes:   1000baseKX/Full
\t                        25000baseCR/Full
\t                        100000baseLR4_ER4/Full
\t                        400000baseDR4/Full
\tSupported pause frame use: Symmetric Receive-only
\tSupports auto-negotiation: Yes
\tSupported FEC modes: RS\t LLRS
\tAdvertised link modes:  400000baseDR4/Full
\tAdvertised pause frame use: No
\tAdvertised auto-negotiation: Yes
\tAdvertised FEC modes: RS
\tLink partner advertised link modes:  Not reported
\tLink partner advertised pause frame use: No
\tLink partner advertised auto-negotiation: No
\tLink partner advertised FEC modes: Not reported
\tSpeed: 400000Mb/s
\tLanes: 4
\tDuplex: Full
\tAuto-negotiation: on
\tPort: FIBRE
\tPHYAD: 0
\tTransceiver: internal
\tSupports Wake-on: d
\tWake-on: d
        Current message level: 0x00000004 (4)
                               link
\tLink detected: yes
"""
PARSERS = {
    parse_ethtool_driver: DRIVER,
    parse_ethtool_rings: RINGS,
    parse_ethtool_pause: PAUSE,
    parse_ethtool_statistics: STATISTICS,
    parse_ethtool_features: FEATURES,
    parse_ethtool_private_flags: FLAGS,
    parse_ethtool_coalesce: COALESCE,
    parse_ethtool_settings: SETTINGS,
}
WITH_HEADER = [parser for parser in PARSERS if parser is not parse_ethtool_driver]
NOTHING = Modes(None, None, None, None)


def test_every_parser_of_the_module_is_here() -> None:
    assert {parser.__name__ for parser in PARSERS} == {name for name in dir(_ethtool_text) if name.startswith("parse_")}


def test_driver() -> None:
    assert parse_ethtool_driver(DRIVER) == DriverInfo(
        driver="mlx5_core",
        version="6.8.0-40-generic",
        firmware="28.39.1002 (MT_0000000838)",
        bus_info="0000:18:00.0",
        expansion_rom=None,
        supports={"statistics": True, "test": True, "eeprom-access": False, "register-dump": False, "priv-flags": True},
    )


def test_driver_that_says_little() -> None:
    assert parse_ethtool_driver("driver: veth\nfirmware-version: N/A\n") == DriverInfo("veth", None, None, None, None, {})


def test_rings() -> None:
    assert parse_ethtool_rings(RINGS) == RingParameters(
        interface="ens1f0np0",
        maximum={"rx": 8192, "rx mini": None, "rx jumbo": None, "tx": 8192, "tx push buff len": None},
        current={
            "rx": 1024,
            "rx mini": None,
            "rx jumbo": None,
            "tx": 1024,
            "rx buf len": None,
            "cqe size": 64,
            "tx push": False,
            "rx push": True,
            "tcp data split": None,
        },
    )
    assert parse_ethtool_rings(RINGS).rings == Rings(rx=1024, tx=1024, rx_max=8192, tx_max=8192)


def test_rings_of_a_driver_without_one_for_rx() -> None:
    text = RINGS.replace("RX:\t\t\t8192", "RX:\t\t\tn/a").replace("RX:\t\t\t1024", "RX:\t\t\tn/a")
    assert parse_ethtool_rings(text).rings == Rings(rx=None, tx=1024, rx_max=None, tx_max=8192)


@pytest.mark.parametrize("last", ["RX:\t\t\t1024", "Current hardware settings:", "TX push buff len:\tn/a", "RX:\t\t\t8192"])
def test_rings_that_are_cut_short(last: str) -> None:
    text = RINGS[: RINGS.index(last) + len(last)]
    with pytest.raises(ParseError) as caught:
        parse_ethtool_rings(text)
    assert repr(last) in str(caught.value)


def test_pause() -> None:
    assert parse_ethtool_pause(PAUSE) == Pause(autoneg=False, rx=True, tx=False)
    assert parse_ethtool_pause(PAUSE.replace("off\n\n", "n/a\nRX negotiated: on\n")) == Pause(autoneg=False, rx=True, tx=None)


def test_statistics() -> None:
    assert parse_ethtool_statistics(STATISTICS) == {
        "rx_packets": 14,
        "rx_prio3_pause": 0,
        "rx_discards_phy": 2**64 - 1,
        "[0]: rx_ucast_packets": 3,
        "rxq0: rx_bytes": 9,
        "TSO pkts tx": 2,
        "rx0_bytes": 9,
    }


def test_features() -> None:
    assert parse_ethtool_features(FEATURES) == {
        "rx-checksumming": Feature(on=True, fixed=False, requested=None),
        "tx-checksumming": Feature(on=True, fixed=False, requested=None),
        "tx-checksum-ipv4": Feature(on=False, fixed=True, requested=None),
        "tx-checksum-ip-generic": Feature(on=True, fixed=False, requested=None),
        "large-receive-offload": Feature(on=False, fixed=False, requested=True),
        "rx-vlan-filter": Feature(on=True, fixed=False, requested=False),
        "hw-tc-offload": Feature(on=False, fixed=False, requested=None),
    }


def test_features_as_old_ethtools_call_them() -> None:
    text = (
        "Cannot get device udp-fragmentation-offload settings: Operation not supported\nOffload parameters for eth0:\nntuple-filters: off\n"
    )
    assert parse_ethtool_features(text) == {"ntuple-filters": Feature(on=False, fixed=False, requested=None)}


def test_private_flags() -> None:
    assert parse_ethtool_private_flags(FLAGS) == {"rx_cqe_moder": True, "tx_cqe_moder": False, "rx_striding_rq": True}


def test_coalesce() -> None:
    found = parse_ethtool_coalesce(COALESCE)
    assert {name: value for name, value in found.items() if value is not None} == {
        "adaptive-rx": True,
        "adaptive-tx": False,
        "cqe-mode-rx": True,
        "rx-usecs": 8,
        "rx-frames": 128,
        "tx-usecs": 8,
        "tx-frames": 128,
    }
    assert (len(found), found["cqe-mode-tx"], found["tx-frame-high"]) == (24, None, None)


def test_settings() -> None:
    modes = ["1000baseKX/Full", "25000baseCR/Full", "100000baseLR4_ER4/Full", "400000baseDR4/Full"]
    assert parse_ethtool_settings(SETTINGS) == Settings(
        interface="ens1f0np0",
        link=LinkSettings(400000, "full", True, "FIBRE", [1000, 25000, 100000, 400000]),
        ports=["FIBRE", "Backplane"],
        supported=Modes(modes, "Symmetric Receive-only", True, ["RS", "LLRS"]),
        advertised=Modes(["400000baseDR4/Full"], "No", True, ["RS"]),
        partner=Modes([], "No", False, []),
        link_detected=True,
        link_reason=None,
    )


def test_settings_of_a_link_that_is_down() -> None:
    text = "Settings for eth1:\n\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tPort: Unknown! (9)\n\tLink detected: no (No cable)\n"
    down = LinkSettings(None, None, None, None, [])
    assert parse_ethtool_settings(text) == Settings("eth1", down, None, NOTHING, NOTHING, NOTHING, False, "No cable")


def test_settings_of_the_loopback() -> None:
    none = LinkSettings(None, None, None, None, [])
    text = "Settings for lo:\n\tLink detected: yes\n"
    assert parse_ethtool_settings(text) == Settings("lo", none, None, NOTHING, NOTHING, NOTHING, True, None)


def test_link_modes_that_run_on_stand_for_the_row_above_them() -> None:
    text = SETTINGS.replace("\tSupported FEC modes", "netlink error: Operation not permitted\n\tSupported FEC modes")
    assert parse_ethtool_settings(text) == parse_ethtool_settings(SETTINGS)


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="crlf"),
        pytest.param(lambda text: text.replace("\n", "\n\n"), id="double-spaced"),
        pytest.param(lambda text: "".join(f"    {line}\n" for line in text.splitlines()), id="indented"),
        pytest.param(lambda text: "".join(f"> {line}\n" for line in text.splitlines()), id="quoted"),
        pytest.param(lambda text: f"[root@node1 ~]# ethtool ens1f0np0\n{text}", id="prompt"),
        pytest.param(lambda text: f"{text.rstrip()}\n[root@node1 ~]# ", id="prompt-behind"),
        pytest.param(lambda text: text.rstrip("\n"), id="no-newline"),
    ],
)
def test_what_terminals_and_mails_do_to_it(parser, change) -> None:
    assert parser(change(PARSERS[parser])) == parser(PARSERS[parser])


COMPLAINTS = [
    "Cannot get device ring settings: No such device\n",
    "netlink error: Operation not supported\n",
    "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n",
    "no stats available\n",
    "-bash: ethtool: command not found\n",
]


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("text", COMPLAINTS)
def test_a_complaint_is_quoted(parser, text: str) -> None:
    with pytest.raises(ParseError, match=r"not the whole output of `ethtool ") as caught:
        parser(text)
    assert repr(text.splitlines()[0]) in str(caught.value)


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("text", ["", "\n\n", "hello, world"])
def test_another_text_is_quoted(parser, text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parser(text)
    assert repr(text.strip()) in str(caught.value)


@pytest.mark.parametrize("parser", WITH_HEADER)
def test_a_complaint_around_the_header_is_quoted(parser) -> None:
    header = PARSERS[parser].splitlines()[0]
    for text in (f"Cannot get it: Operation not supported\n{header}\n", f"{header}\nnetlink error: Operation not supported\n"):
        with pytest.raises(ParseError, match="Operation not supported"):
            parser(text)


@pytest.mark.parametrize("parser", WITH_HEADER)
def test_a_header_alone_is_quoted(parser) -> None:
    header = PARSERS[parser].splitlines()[0]
    with pytest.raises(ParseError) as caught:
        parser(header)
    assert repr(header) in str(caught.value)


@pytest.mark.parametrize("parser", WITH_HEADER)
def test_two_interfaces_in_one_text_are_refused(parser) -> None:
    with pytest.raises(ParseError):
        parser(PARSERS[parser] * 2)


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (parse_ethtool_statistics, "NIC statistics:\n     rx_packets: 14\n     rx_by"),
        (parse_ethtool_statistics, "NIC statistics:\n     rx_packets: 14\n     rx_bytes:"),
        (parse_ethtool_features, "Features for eth0:\nhighdma: on [fixed]\nrx-vlan-fil"),
        (parse_ethtool_features, "Features for eth0:\nhighdma: on [fixed]\nrx-vlan-filter: o"),
        (parse_ethtool_private_flags, "Private flags for eth0:\nrx_cqe_moder : on\ntx_cqe_moder :"),
        (parse_ethtool_coalesce, COALESCE[: COALESCE.index("tx-usecs-high")]),
        (parse_ethtool_pause, PAUSE[: PAUSE.index("TX")]),
    ],
)
def test_an_output_that_is_cut_short_is_quoted_by_its_last_line(parser, text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parser(text)
    assert repr(text.strip().splitlines()[-1].strip()) in str(caught.value)


@pytest.mark.parametrize("parser", PARSERS)
@given(text=st.text() | st.from_regex(r"[A-Za-z -]{0,20}:[ \t0-9²٣\x00]{0,30}\n?"))
def test_nothing_but_a_parse_error_escapes(parser, text: str) -> None:
    assert read_or_refused(parser, text)


@pytest.mark.parametrize("parser", PARSERS)
@given(data=st.data())
def test_nothing_but_a_parse_error_escapes_a_damaged_output(parser, data: st.DataObject) -> None:
    lines = PARSERS[parser].splitlines(keepends=True)
    for _change in range(data.draw(st.integers(0, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        lines[index] = data.draw(
            st.sampled_from(["", lines[index] * 2])
            | st.text(max_size=30)
            | st.integers(0, 40).map(lambda end, line=lines[index]: line[:end])
        )
    text = "".join(lines)
    assert read_or_refused(parser, text[: data.draw(st.integers(0, len(text)))])


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("filler", [" ", "\t", ":", "a", "a ", "0", "(", "["])
def test_long_lines_are_read_in_no_time(parser, filler: str) -> None:
    header = PARSERS[parser].splitlines()[0]
    with no_time():
        assert read_or_refused(parser, f"{header}\na{filler * 100_000}b\n{filler * 100_000}")
