# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pluggable module or cable: its measurements, and whether they are within its own limits.

There is no table of modules: 0 to 70 °C is the range of many modules, but not of all (SFF-8472, SFF-8636, CMIS).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

#: The measured quantities: name in words, and unit.
QUANTITIES = {
    "temperature_celsius": ("temperature", "°C"),
    "voltage_volt": ("voltage", "V"),
    "rx_power_mw": ("rx power", "mW"),
    "tx_power_mw": ("tx power", "mW"),
    "tx_bias_ma": ("tx bias", "mA"),
}
LANE_QUANTITIES = ("rx_power_mw", "tx_power_mw", "tx_bias_ma")
# No light at all: modules say 0 (-inf dBm) or their smallest step, -40 dBm.
_DARK_MW = 0.0001


@dataclass(frozen=True)
class Reading:
    """A value and the module's own limits for it, in the unit that the field's name ends with; None: it has no such limit."""

    value: float
    low_alarm: float | None = None
    low_warning: float | None = None
    high_warning: float | None = None
    high_alarm: float | None = None


@dataclass(frozen=True)
class Lane:
    """One optical lane."""

    rx_power_mw: Reading | None
    tx_power_mw: Reading | None
    tx_bias_ma: Reading | None


@dataclass(frozen=True)
class Optic:
    """One module or cable. length_m only for a cable with fixed ends; the first of the lanes is lane 1, copper has none.

    alarms: the flags that the module itself raises, by their names in ethtool ("Laser rx power low alarm (Chan 1)"). A
    module keeps a flag set until it is read, so a flag may refer to the past.
    """

    identifier: str | None
    vendor: str | None
    part_number: str | None
    serial: str | None
    length_m: float | None
    temperature_celsius: Reading | None
    voltage_volt: Reading | None
    lanes: list[Lane]
    alarms: list[str]


@dataclass
class Found:
    """What a parser has read so far: values by quantity and lane (1 for the module), limits by quantity ("low_alarm": 1.0)."""

    values: dict[tuple[str, int], float] = field(default_factory=dict)
    limits: dict[str, dict[str, float]] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)


def build_optic(
    found: Found,
    *,
    identifier: str | None,
    vendor: str | None,
    part_number: str | None,
    serial: str | None,
    length_m: float | None,
    copper: bool,
) -> Optic:
    """Return the module, without the zeros that a cable without sensors prints. Texts that are empty or "N/A" become None."""
    # A module that works has a supply.
    measures = found.values.get(("voltage_volt", 1), 1.0) > 0
    return Optic(
        identifier=_known(identifier),
        vendor=_known(vendor),
        part_number=_known(part_number),
        serial=_known(serial),
        length_m=length_m or None,
        temperature_celsius=_reading(found, "temperature_celsius", 1) if measures else None,
        voltage_volt=_reading(found, "voltage_volt", 1) if measures else None,
        lanes=[] if copper else _lanes(found),
        alarms=found.alarms,
    )


def _known(word: str | None) -> str | None:
    return word if word and word.upper() != "N/A" else None


def _lanes(found: Found) -> list[Lane]:
    """Return every lane up to the last that was read; of eight, the first four if the others are unused (400GBASE-DR4 in OSFP)."""
    last = max((lane for quantity, lane in found.values if quantity in LANE_QUANTITIES), default=0)
    lanes = [Lane(*(_reading(found, quantity, lane) for quantity in LANE_QUANTITIES)) for lane in range(1, last + 1)]
    unused = len(lanes) == 8 and all(map(_is_dark, lanes[4:])) and not all(map(_is_dark, lanes[:4]))
    return lanes[:4] if unused else lanes


def _is_dark(lane: Lane) -> bool:
    return all(reading is None or reading.value <= _DARK_MW for reading in (lane.rx_power_mw, lane.tx_power_mw, lane.tx_bias_ma))


def _reading(found: Found, quantity: str, lane: int) -> Reading | None:
    value = found.values.get((quantity, lane))
    if value is None:
        return None
    limits: dict[str, float] = {}
    for grade in ("alarm", "warning"):
        pair = {name: limit for name, limit in found.limits.get(quantity, {}).items() if name.endswith(grade)}
        limits.update(pair if _is_range(pair.get(f"low_{grade}"), pair.get(f"high_{grade}")) else {})
    return Reading(value, **limits)


def _is_range(low: float | None, high: float | None) -> bool:
    """Return whether two limits leave room between them; a module without limits has 0 and 0."""
    return low is None or high is None or low < high


def out_of_range(optic: Optic) -> list[tuple[str, str, float, str]]:
    """Return each reading outside the module's own limits: name, "alarm" or "warning", the value, and the limit in words.
    ("rx power of lane 3", "alarm", 0.0, "below its low alarm threshold of 0.0467 mW")
    """
    readings = [("temperature_celsius", "", optic.temperature_celsius), ("voltage_volt", "", optic.voltage_volt)]
    for number, lane in enumerate(optic.lanes, 1):
        of_lane = (lane.rx_power_mw, lane.tx_power_mw, lane.tx_bias_ma)
        readings += [(name, f" of lane {number}", reading) for name, reading in zip(LANE_QUANTITIES, of_lane)]
    return [
        (f"{QUANTITIES[name][0]}{where}", grade, reading.value, f"{bound} {QUANTITIES[name][1]}")
        for name, where, reading in readings
        if reading is not None
        for grade, bound in list(_broken(reading))[:1]
    ]


def _broken(reading: Reading) -> Iterator[tuple[str, str]]:
    """Yield the limits that a reading exceeds, alarms first."""
    limits = (("alarm", reading.low_alarm, reading.high_alarm), ("warning", reading.low_warning, reading.high_warning))
    for grade, low, high in limits:
        if not _is_range(low, high):
            continue
        if low is not None and reading.value < low:
            yield grade, f"below its low {grade} threshold of {low:g}"
        if high is not None and reading.value > high:
            yield grade, f"above its high {grade} threshold of {high:g}"
