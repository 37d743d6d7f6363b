# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module as mlxlink showed it on a real system, read where it lies."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._net.optics import Lane, Optic, Reading, out_of_range, parse_mlxlink_module

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "mlxlink"

NAME = "sichek-osfp-module-info.txt"
BIAS = Reading(8.38, low_alarm=2.0, high_alarm=15.0)


def milliwatts(dbm: float) -> float:
    return round(10 ** (dbm / 10), 4)


def received(dbm: float) -> Reading:
    return Reading(milliwatts(dbm), low_alarm=milliwatts(-10.41), high_alarm=milliwatts(6))


def sent(dbm: float) -> Reading:
    return Reading(milliwatts(dbm), low_alarm=milliwatts(-8.508), high_alarm=milliwatts(5))


def test_every_capture_is_looked_at() -> None:
    assert {path.name for path in CAPTURES.iterdir()} == {NAME}


def test_an_osfp_module() -> None:
    optic = parse_mlxlink_module((CAPTURES / NAME).read_text(encoding="utf-8"))
    assert optic == Optic(
        identifier="OSFP",
        vendor="CLT",
        part_number="T-F4GS-BV0",
        serial="CWJH05025502589",
        length_m=None,
        temperature_celsius=Reading(54.0, low_alarm=-5.0, high_alarm=75.0),
        voltage_volt=Reading(3.2612, low_alarm=2.97, high_alarm=3.63),
        lanes=[
            Lane(received(1.886), sent(1.562), BIAS),
            Lane(received(1.989), sent(1.427), BIAS),
            Lane(received(2.281), sent(1.559), BIAS),
            Lane(received(1.976), sent(1.761), BIAS),
        ],
        alarms=[],
    )
    assert out_of_range(optic) == []


def test_the_same_module_in_the_heat_and_with_a_lane_without_light() -> None:
    text = (CAPTURES / NAME).read_text(encoding="utf-8").replace(": 54 [", ": 76 [").replace("2.281", "-40")
    assert out_of_range(parse_mlxlink_module(text)) == [
        ("temperature", "alarm", 76.0, "above its high alarm threshold of 75 °C"),
        ("rx power of lane 3", "alarm", 0.0001, "below its low alarm threshold of 0.091 mW"),
    ]
