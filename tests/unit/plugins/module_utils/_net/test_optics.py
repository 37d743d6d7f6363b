# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules and cables say of themselves, in the text and the JSON of ethtool and in the text of mlxlink."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._net.optics import (
    Lane,
    Optic,
    Reading,
    out_of_range,
    parse_ethtool_module,
    parse_mlxlink_module,
)
from tests.unit.builders.garbled import no_time, read_or_refused


def rows(*pairs: str) -> str:
    """The rows "key | value" as ethtool prints them."""
    return "".join("\t{:<41} : {}\n".format(*(part.strip() for part in pair.split("|"))) for pair in pairs)


def thresholds(bias: str, power: str, temperature: str, voltage: str, received: str) -> str:
    """High alarm, low alarm, high warning and low warning of each quantity."""
    names = {"Laser bias current": bias, "Laser output power": power, "Module temperature": temperature, "Module voltage": voltage}
    return rows(
        *(
            f"{name} {limit} threshold | {value.strip()}"
            for name, values in {**names, "Laser rx power": received}.items()
            for limit, value in zip(("high alarm", "low alarm", "high warning", "low warning"), values.split(";"))
        )
    )


LIMITS = thresholds(
    "13.000 mA; 3.000 mA; 11.000 mA; 5.000 mA",
    "3.1623 mW / 5.00 dBm; 0.1000 mW / -10.00 dBm; 1.9953 mW / 3.00 dBm; 0.1585 mW / -8.00 dBm",
    "75.00 degrees C / 167.00 degrees F; -5.00 degrees C / 23.00 degrees F; 70.00 degrees C / 158.00 degrees F; 0.00 degrees C",
    "3.4650 V; 3.1350 V; 3.4500 V; 3.1500 V",
    "3.1623 mW / 5.00 dBm; 0.0398 mW / -14.00 dBm; 2.5119 mW / 4.00 dBm; 0.0794 mW / -11.00 dBm",
)
BIAS = {"low_alarm": 3.0, "low_warning": 5.0, "high_warning": 11.0, "high_alarm": 13.0}
SENT = {"low_alarm": 0.1, "low_warning": 0.1585, "high_warning": 1.9953, "high_alarm": 3.1623}
RECEIVED = {"low_alarm": 0.0398, "low_warning": 0.0794, "high_warning": 2.5119, "high_alarm": 3.1623}
TEMPERATURE = {"low_alarm": -5.0, "low_warning": 0.0, "high_warning": 70.0, "high_alarm": 75.0}
VOLTAGE = {"low_alarm": 3.135, "low_warning": 3.15, "high_warning": 3.45, "high_alarm": 3.465}

SFP = (
    rows(
        "Identifier | 0x03 (SFP)",
        "Connector | 0x07 (LC)",
        "Length (OM3) | 100m",
        "Length (Copper or Active cable) | 0m",
        "Vendor name | Acme Optics",
        "Vendor OUI | 00:00:5e",
        "Vendor PN | SFP28-SR",
        "Vendor SN | SN1234567",
        "Optical diagnostics support | Yes",
        "Laser bias current | 6.750 mA",
        "Laser output power | 0.5012 mW / -3.00 dBm",
        "Receiver signal average optical power | 0.0000 mW / -inf dBm",
        "Module temperature | 76.50 degrees C / 169.70 degrees F",
        "Module voltage | 3.2740 V",
        "Alarm/warning flags implemented | Yes",
        "Laser rx power high alarm | Off",
        "Laser rx power low alarm | On",
        "Laser rx power low warning | On",
    )
    + LIMITS
)
QSFP28 = (
    rows(
        "Identifier | 0x11 (QSFP28)",
        "Extended identifier | 0xcf",
        "Extended identifier description | 3.5W max. Power consumption",
        "Extended identifier description | CDR present in TX, CDR present in RX",
        "Connector | 0x23 (No separable connector)",
        "Length (Copper or Active cable) | 3m",
        "Transmitter technology | 0x00 (850 nm VCSEL)",
        "Vendor name | Acme Optics",
        "Vendor PN | AOC-100G-3",
        "Vendor SN | SN7654321",
        "Rx loss of signal | [ No, No, Yes, No ]",
        "Module temperature | 45.22 degrees C / 113.39 degrees F",
        "Module voltage | 3.3359 V",
        "Alarm/warning flags implemented | Yes",
        *(f"Laser tx bias current (Channel {lane}) | {value} mA" for lane, value in enumerate(("8.162", "7.560", "7.796", "7.708"), 1)),
        *(f"Transmit avg optical power (Channel {lane}) | 1.070{lane} mW / 0.30 dBm" for lane in (1, 2, 3, 4)),
        *(f"Rcvr signal avg optical power(Channel {lane}) | 0.960{lane} mW / -0.18 dBm" for lane in (1, 2)),
        "Rcvr signal avg optical power(Channel 3) | 0.0001 mW / -40.00 dBm",
        "Rcvr signal avg optical power(Channel 4) | 0.9604 mW / -0.18 dBm",
        "Laser rx power low alarm (Chan 2) | Off",
        "Laser rx power low alarm (Chan 3) | On",
        "Module voltage low warning | Off",
    )
    + LIMITS
)
CMIS = (
    rows(
        "Identifier | 0x19 (OSFP 8X Pluggable Transceiver)",
        "Power class | 5",
        "Connector | 0x28 (MPO 1x16)",
        "Cable assembly length | 0.0000m",
        "Transmitter technology | 0x00 (850 nm VCSEL)",
        "Vendor name | Acme Optics",
        "Vendor PN | OSFP-SR8",
        "Vendor SN | SN8",
        "Revision compliance | Rev. 4.0",
        "Module state | 0x03 (ModuleReady)",
        "Module temperature | 37.53 degrees C / 99.55 degrees F",
        "Module voltage | 3.3358 V",
        *(f"Laser tx bias current (Channel {lane}) | 6.{lane}00 mA" for lane in range(1, 9)),
        *(f"Transmit avg optical power (Channel {lane}) | 1.{lane}000 mW / 1.00 dBm" for lane in range(1, 9)),
        *(f"Rcvr signal avg optical power (Channel {lane}) | 0.{lane}000 mW / -1.00 dBm" for lane in range(1, 9)),
        "Module temperature high alarm | Off",
        *(f"Laser bias current high alarm (Chan {lane}) | Off" for lane in range(1, 9)),
    )
    + LIMITS
    + rows("Active firmware version | 2.7", "CDB instances | 1")
)
DAC = rows(
    "Identifier | 0x11 (QSFP28)",
    "Connector | 0x23 (No separable connector)",
    "Length (Copper or Active cable) | 2m",
    "Transmitter technology | 0xa0 (Copper cable unequalized)",
    "Attenuation at 2.5GHz | 4db",
    "Vendor name | Acme Cables",
    "Vendor PN | DAC-100G-2",
    "Vendor SN | SN2",
    "Module temperature | 0.00 degrees C / 32.00 degrees F",
    "Module voltage | 0.0000 V",
)
JSON: dict[str, Any] = {
    "identifier": 24,
    "identifier_description": "QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628)",
    "connector": 35,
    "connector_description": "No separable connector",
    "cable_assembly_length": 5,
    "transmitter_technology": 0,
    "transmitter_technology_description": "850 nm VCSEL",
    "vendor_name": "Acme Optics",
    "vendor_oui": [0, 0, 94],
    "vendor_pn": "AOC-400G-5",
    "vendor_sn": "SN5",
    "revision_compliance": {"major": 4, "minor": 0},
    "rx_loss_of_signal": ["Yes", "Yes"],
    "module_temperature_measurement": 37.5273,
    "module_voltage_measurement": 3.3358,
    "alarm/warning_flags_implemented": True,
    "laser_tx_bias_current": [6.5, 0],
    "transmit_avg_optical_power": [1.0, 1e-05],
    "rx_power": {"values": [0.9, 0.0], "type": "Rcvr signal avg optical power"},
    "module_temperature_high_alarm": False,
    "laser_rx_power_low_alarm": [False, True],
    **{
        name: {f"{limit}_threshold": value for limit, value in limits.items()}
        for name, limits in {
            "laser_bias_current": BIAS,
            "laser_output_power": SENT,
            "module_temperature": TEMPERATURE,
            "module_voltage": VOLTAGE,
            "laser_rx_power": RECEIVED,
        }.items()
    },
}
MLXLINK = """
Operational Info
----------------
State                              : Active
Speed                              : IB-NDR

Module Info
-----------
Temperature [C]                    : 54 [-5..75]
Voltage [mV]                       : 3261.2 [2970..3630]
Bias Current [mA]                  : 8.380,8.380 [2..15]
Rx Power Current [dBm]             : 0,-40 [-10..6]
Tx Power Current [dBm]             : 1.562,-inf [-8.508..5]
Identifier                         : OSFP
Cable Technology                   : 850 nm VCSEL
Cable Type                         : Optical Module (separated)
Vendor Name                        : Acme Optics
Vendor Part Number                 : OSFP-SR4
Vendor Serial Number               : SN4
Transfer Distance [m]              : 50
Attenuation (5g,7g,12g,25g)[dB]    : N/A

Physical Counters and BER Info
------------------------------
Time Since Last Clear [Min]        : 25074.8
Identifier                         : of another section
"""
MLXLINK_DAC = """Module Info
-----------
Temperature [C]                    : 0 [0..0]
Voltage [mV]                       : 0 [0..0]
Bias Current [mA]                  : 0,0,0,0 [0..0]
Rx Power Current [dBm]             : 0,0,0,0 [0..0]
Tx Power Current [dBm]             : 0,0,0,0 [0..0]
Identifier                         : OSFP
Cable Technology                   : Copper cable, passive, unequalized
Cable Type                         : Passive copper cable
Vendor Name                        : Acme Cables
Vendor Part Number                 : OSFP-DAC-1
Vendor Serial Number               : SN1
Transfer Distance [m]              : 1
"""


def lane(received: float, sent: float, bias: float) -> Lane:
    return Lane(Reading(received, **RECEIVED), Reading(sent, **SENT), Reading(bias, **BIAS))


def test_a_module_of_one_lane() -> None:
    assert parse_ethtool_module(SFP) == Optic(
        identifier="SFP",
        vendor="Acme Optics",
        part_number="SFP28-SR",
        serial="SN1234567",
        length_m=None,
        temperature_celsius=Reading(76.5, **TEMPERATURE),
        voltage_volt=Reading(3.274, **VOLTAGE),
        lanes=[lane(0.0, 0.5012, 6.75)],
        alarms=["Laser rx power low alarm", "Laser rx power low warning"],
    )


def test_an_optical_cable_of_four_lanes() -> None:
    assert parse_ethtool_module(QSFP28) == Optic(
        identifier="QSFP28",
        vendor="Acme Optics",
        part_number="AOC-100G-3",
        serial="SN7654321",
        length_m=3.0,
        temperature_celsius=Reading(45.22, **TEMPERATURE),
        voltage_volt=Reading(3.3359, **VOLTAGE),
        lanes=[lane(0.9601, 1.0701, 8.162), lane(0.9602, 1.0702, 7.56), lane(0.0001, 1.0703, 7.796), lane(0.9604, 1.0704, 7.708)],
        alarms=["Laser rx power low alarm (Chan 3)"],
    )


def test_a_module_of_eight_lanes() -> None:
    optic = parse_ethtool_module(CMIS)
    assert (optic.identifier, optic.length_m, optic.alarms) == ("OSFP 8X Pluggable Transceiver", None, [])
    assert optic.lanes == [lane(number / 10, 1 + number / 10, 6 + number / 10) for number in range(1, 9)]


def test_a_copper_cable_measures_nothing() -> None:
    assert parse_ethtool_module(DAC) == Optic("QSFP28", "Acme Cables", "DAC-100G-2", "SN2", 2.0, None, None, [], [])


def test_a_copper_cable_whose_zeros_are_printed_for_lanes() -> None:
    text = DAC.replace("0.0000 V", "3.3000 V") + rows("Rcvr signal avg optical power(Channel 1) | 0.0000 mW / -inf dBm") + LIMITS
    assert parse_ethtool_module(text).lanes == []


def test_a_module_without_diagnostics() -> None:
    text = rows("Identifier | 0x03 (SFP)", "Vendor name | Acme", "Vendor PN | ", "Optical diagnostics support | No")
    assert parse_ethtool_module(text) == Optic("SFP", "Acme", None, None, None, None, None, [], [])


def test_a_module_without_limits() -> None:
    text = QSFP28.replace(LIMITS, "").replace("implemented           : Yes", "implemented           : No")
    optic = parse_ethtool_module(text)
    assert optic.temperature_celsius == Reading(45.22)
    assert optic.lanes[0] == Lane(Reading(0.9601), Reading(1.0701), Reading(8.162))


def test_limits_of_zero_are_none() -> None:
    limits = thresholds(*["0.000; 0.000; 0.000; 0.000"] * 4, "3.1623 mW / 5.00 dBm; 0.0398 mW / -14.00 dBm; 0.0000 mW; 0.0000 mW")
    optic = parse_ethtool_module(QSFP28.replace(LIMITS, limits))
    assert optic.temperature_celsius == Reading(45.22)
    assert optic.lanes[0].rx_power_mw == Reading(0.9601, low_alarm=0.0398, high_alarm=3.1623)


def test_of_eight_lanes_four_may_be_unused() -> None:
    unused = CMIS
    for number in (5, 6, 7, 8):
        unused = unused.replace(f": 6.{number}00 mA", ": 0.000 mA").replace(f": 1.{number}000 mW / 1.00", ": 0.0000 mW / -inf")
        unused = unused.replace(f": 0.{number}000 mW / -1.00", ": 0.0001 mW / -40.00")
    assert parse_ethtool_module(unused).lanes == [lane(number / 10, 1 + number / 10, 6 + number / 10) for number in range(1, 5)]


def test_eight_lanes_without_any_light_are_eight() -> None:
    dark = CMIS
    for number in range(1, 9):
        dark = dark.replace(f": 6.{number}00 mA", ": 0.000 mA").replace(f": 1.{number}000 mW / 1.00", ": 0.0000 mW / -inf")
        dark = dark.replace(f": 0.{number}000 mW / -1.00", ": 0.0000 mW / -inf")
    assert parse_ethtool_module(dark).lanes == [lane(0.0, 0.0, 0.0)] * 8


def test_a_lane_that_is_missing_keeps_its_place() -> None:
    text = rows("Identifier | 0x11 (QSFP28)", "Laser tx bias current (Channel 3) | 7.000 mA")
    assert parse_ethtool_module(text).lanes == [Lane(None, None, None), Lane(None, None, None), Lane(None, None, Reading(7.0))]


@pytest.mark.parametrize(
    ("connector", "length_m"),
    [("0x23 (No separable connector)", 3.0), ("0x21 (Copper pigtail)", 3.0), ("0x0c (MPO Parallel Optic)", None), ("0x99", None)],
)
def test_only_a_cable_has_a_length(connector: str, length_m: float | None) -> None:
    assert parse_ethtool_module(QSFP28.replace("0x23 (No separable connector)", connector)).length_m == length_m


def test_the_json() -> None:
    assert parse_ethtool_module(json.dumps([JSON])) == Optic(
        identifier="QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628)",
        vendor="Acme Optics",
        part_number="AOC-400G-5",
        serial="SN5",
        length_m=5.0,
        temperature_celsius=Reading(37.5273, **TEMPERATURE),
        voltage_volt=Reading(3.3358, **VOLTAGE),
        lanes=[lane(0.9, 1.0, 6.5), lane(0.0, 1e-05, 0.0)],
        alarms=["Laser rx power low alarm (Chan 2)"],
    )


def test_the_json_of_6_14_which_has_keys_twice() -> None:
    text = json.dumps([JSON], indent=4).replace("_measurement", "")
    assert text.count('"module_temperature"') == 2
    assert parse_ethtool_module(text) == parse_ethtool_module(json.dumps([JSON]))


def test_the_json_as_mails_break_it() -> None:
    text = json.dumps([JSON], indent=4).replace("8X Pluggable ", "8X Pluggable\n")
    assert parse_ethtool_module(text) == parse_ethtool_module(json.dumps([JSON]))


def test_the_json_of_a_second_bank_of_lanes() -> None:
    text = '[ {"identifier": 25, "laser_tx_bias_current": [1.5, 2.5], "laser_tx_bias_current": [3.5], "rx_power": {"values": [0.5, 0.6]},'
    text += ' "rx_power": {"values": [0.7]}} ]'
    assert parse_ethtool_module(text).lanes == [Lane(Reading(0.5 + n / 10), None, Reading(1.5 + n)) for n in (0, 1)] + [
        Lane(Reading(0.7), None, Reading(3.5))
    ]


def test_the_json_of_an_sfp_ends_before_what_it_measures() -> None:
    head = '[ {\n        "identifier": 3,\n        "identifier_description": "SFP",\n        "vendor_name": "Acme"\n    } ]\n'
    optic = parse_ethtool_module(head + SFP[SFP.index("\tOptical diagnostics") :])
    assert (optic.identifier, optic.vendor, optic.lanes) == ("SFP", "Acme", [lane(0.0, 0.5012, 6.75)])


SAMPLES = {"sfp": SFP, "qsfp28": QSFP28, "cmis": CMIS, "dac": DAC}


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="crlf"),
        pytest.param(lambda text: text.replace("\n", "\n\n"), id="double-spaced"),
        pytest.param(lambda text: text.replace("\t", ""), id="not-indented"),
        pytest.param(lambda text: "".join(f"> {line}\n" for line in text.splitlines()), id="quoted"),
        pytest.param(lambda text: text.replace(" / ", "\n/ "), id="wrapped"),
        pytest.param(lambda text: f"[root@node1 ~]# ethtool -m ens1f0np0\n{text}", id="prompt"),
        pytest.param(lambda text: f"{text}[root@node1 ~]# ", id="prompt-behind"),
    ],
)
def test_what_terminals_and_mails_do_to_it(text: str, change) -> None:
    assert parse_ethtool_module(change(text)) == parse_ethtool_module(text)


NO_MODULES = [
    "",
    "netlink error: Input/output error\n",
    "Cannot get module EEPROM information: Operation not supported\n",
    "Offset\t\tValues\n------\t\t------\n0x0000:\t\t19 40 00 06 00 00 00 00 00 00 00 00 00 00 00 00\n",
    "[ ]",
    "[]\n",
    "[[[]]]",
    "[" * 100_000,
    json.dumps([JSON])[:-20],
    "{}",
    "3",
]


@pytest.mark.parametrize("text", NO_MODULES, ids=range(len(NO_MODULES)))
def test_what_is_no_module_is_quoted_by_its_last_line(text: str) -> None:
    with pytest.raises(ParseError, match="not the whole output of `ethtool -m`") as caught:
        parse_ethtool_module(text)
    assert repr(["", *text.strip().splitlines()][-1][:200]) in str(caught.value)


@pytest.mark.parametrize("end", ["Laser rx power low ala", "Laser rx power high warning threshold", "2.5119 mW / 4.00 dBm"])
def test_a_module_that_is_cut_short(end: str) -> None:
    text = QSFP28[: QSFP28.rindex(end) + len(end)]
    with pytest.raises(ParseError) as caught:
        parse_ethtool_module(text)
    assert end in str(caught.value)


def test_a_module_of_which_a_mail_leaves_rows_out() -> None:
    text = f"{QSFP28.replace(LIMITS, '')} ...\n"
    assert parse_ethtool_module(text).temperature_celsius == Reading(45.22)


def test_a_value_that_is_none_is_quoted() -> None:
    with pytest.raises(ParseError, match="'module voltage: 3,3 V'"):
        parse_ethtool_module(rows("Identifier | 0x03 (SFP)", "Module voltage | 3,3 V"))


def test_mlxlink() -> None:
    received = {"low_alarm": 0.1, "high_alarm": 3.9811}
    sent = {"low_alarm": 0.141, "high_alarm": 3.1623}
    bias = Reading(8.38, low_alarm=2.0, high_alarm=15.0)
    assert parse_mlxlink_module(MLXLINK) == Optic(
        identifier="OSFP",
        vendor="Acme Optics",
        part_number="OSFP-SR4",
        serial="SN4",
        length_m=None,
        temperature_celsius=Reading(54.0, low_alarm=-5.0, high_alarm=75.0),
        voltage_volt=Reading(3.2612, low_alarm=2.97, high_alarm=3.63),
        lanes=[
            Lane(Reading(1.0, **received), Reading(1.4328, **sent), bias),
            Lane(Reading(0.0001, **received), Reading(0.0, **sent), bias),
        ],
        alarms=[],
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(MLXLINK_DAC, id="zeros"),
        pytest.param(MLXLINK_DAC.replace("0,0,0,0 [0..0]", "N/A").replace("0 [0..0]", "N/A"), id="not-available"),
        pytest.param(MLXLINK_DAC.replace(": ", ": \x1b[32m").replace("\n", "\x1b[0m\n"), id="colored"),
    ],
)
def test_mlxlink_of_a_copper_cable(text: str) -> None:
    assert parse_mlxlink_module(text) == Optic("OSFP", "Acme Cables", "OSFP-DAC-1", "SN1", 1.0, None, None, [], [])


def test_mlxlink_ends_where_the_next_section_begins() -> None:
    text = MLXLINK.replace("Vendor Name  ", "Vendor  ") + "Vendor Name                        : of another section\n"
    assert parse_mlxlink_module(text).vendor is None


def test_mlxlink_without_a_module() -> None:
    text = "Module Info\n-----------\nIdentifier : N/A\nCable Type : Unplugged\nVendor Name : N/A\nTemperature [C] : N/A\n"
    assert parse_mlxlink_module(text) == Optic(None, None, None, None, None, None, None, [], [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        '-E- Failed to open device: "/dev/mst/mt4129_pciconf0".',
        "Operational Info\n----------------\nState : Active",
        MLXLINK_DAC * 2,
        "Module Info\n-----------",
        MLXLINK_DAC[: MLXLINK_DAC.index("t [dBm]")],
    ],
    ids=range(6),
)
def test_what_is_no_module_of_mlxlink_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not the whole output of `mlxlink -m`") as caught:
        parse_mlxlink_module(text)
    assert repr(["", *text.strip().splitlines()][-1]) in str(caught.value)


@pytest.mark.parametrize("value", ["54 [-5..75", "hot [-5..75]", "54 [cold..75]", "1,²"])
def test_a_value_of_mlxlink_that_is_none_is_quoted(value: str) -> None:
    with pytest.raises(ParseError, match=r"not a value of a module: 'temperature \[c\]: "):
        parse_mlxlink_module(MLXLINK.replace("54 [-5..75]", value))


def test_a_power_that_no_light_has_is_quoted() -> None:
    with pytest.raises(ParseError, match="99999"):
        parse_mlxlink_module(MLXLINK.replace("1.562", "99999"))


def test_a_module_within_its_limits() -> None:
    assert out_of_range(parse_ethtool_module(CMIS.replace("0.1000 mW / -1.00", "0.1100 mW / -1.00"))) == []


def test_readings_outside_the_limits_of_the_module() -> None:
    assert out_of_range(parse_ethtool_module(SFP)) == [
        ("temperature", "alarm", 76.5, "above its high alarm threshold of 75 °C"),
        ("rx power of lane 1", "alarm", 0.0, "below its low alarm threshold of 0.0398 mW"),
    ]
    assert out_of_range(parse_ethtool_module(QSFP28)) == [
        ("rx power of lane 3", "alarm", 0.0001, "below its low alarm threshold of 0.0398 mW")
    ]


def module(*lanes: Lane, volt: Reading | None = None) -> Optic:
    return Optic(None, None, None, None, None, None, volt, list(lanes), [])


def reading(value: float, **limits: float | None) -> Optic:
    return module(volt=Reading(value, **limits))


@pytest.mark.parametrize(
    ("optic", "expected"),
    [
        (reading(3.5, high_warning=3.45, high_alarm=3.6), [("voltage", "warning", 3.5, "above its high warning threshold of 3.45 V")]),
        (reading(3.1, low_warning=3.15, low_alarm=3.0), [("voltage", "warning", 3.1, "below its low warning threshold of 3.15 V")]),
        (reading(2.9, low_warning=3.15, low_alarm=3.0), [("voltage", "alarm", 2.9, "below its low alarm threshold of 3 V")]),
        (reading(3.0, low_alarm=3.0, high_alarm=3.6), []),
        (reading(3.6, low_alarm=3.0, high_alarm=3.6), []),
        (reading(3.3, low_alarm=0.0, high_alarm=0.0, low_warning=0.0, high_warning=0.0), []),
        (reading(3.3, low_alarm=0.0, high_alarm=0.0, low_warning=3.4, high_warning=3.5), [
            ("voltage", "warning", 3.3, "below its low warning threshold of 3.4 V")
        ]),
        (reading(3.3, low_alarm=None, high_alarm=None), []),
        (reading(3.3), []),
        (module(), []),
        (module(Lane(None, None, None)), []),
    ],
)  # fmt: skip
def test_grades(optic: Optic, expected: list[Any]) -> None:
    assert out_of_range(optic) == expected


def test_a_dark_lane_without_a_limit_is_no_alarm() -> None:
    assert out_of_range(module(Lane(Reading(0.0, low_alarm=0.0, high_alarm=3.5), None, None))) == []


@given(
    text=st.text()
    | st.from_regex(r"(Identifier|Module (temperature|voltage)|Laser rx power low alarm threshold) *:[ 0-9.²٣\x00mV-]{0,30}\n?")
)
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    for parser in (parse_ethtool_module, parse_mlxlink_module):
        assert read_or_refused(parser, text)


@pytest.mark.parametrize(
    ("parser", "sample"),
    [(parse_ethtool_module, text) for text in (*SAMPLES.values(), json.dumps([JSON], indent=4))] + [(parse_mlxlink_module, MLXLINK)],
    ids=[*SAMPLES, "json", "mlxlink"],
)
@given(data=st.data())
def test_nothing_but_a_parse_error_escapes_a_damaged_output(parser, sample: str, data: st.DataObject) -> None:
    lines = sample.splitlines(keepends=True)
    for _change in range(data.draw(st.integers(0, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        lines[index] = data.draw(
            st.sampled_from(["", lines[index] * 2])
            | st.text(max_size=30)
            | st.integers(0, 60).map(lambda end, line=lines[index]: line[:end])
        )
    text = "".join(lines)
    assert read_or_refused(lambda part: out_of_range(parser(part)), text[: data.draw(st.integers(0, len(text)))])


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(sorted(JSON)), inner),
        max_leaves=20,
    )
)
def test_nothing_but_a_parse_error_escapes_other_json(data: Any) -> None:
    assert read_or_refused(
        parse_ethtool_module, json.dumps([{"identifier": 3, "module": data, **(data if isinstance(data, dict) else {})}])
    )


@pytest.mark.parametrize("filler", [" ", "\t", ":", "a", "0", "(", "[", "{", '{"a":', "[0..", ","])
@pytest.mark.parametrize("parser", [parse_ethtool_module, parse_mlxlink_module])
def test_long_lines_are_read_in_no_time(parser, filler: str) -> None:
    for text in (filler * 100_000, f"Module Info\nTemperature [C] : {filler * 100_000}\nModule temperature : {filler * 100_000}\n"):
        with no_time():
            assert read_or_refused(parser, text)
