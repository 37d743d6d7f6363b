# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the rate and width of an active link: against the plan, else against the port's maximum."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import payload_gbps
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort

declare(
    {
        "link.rate": Check(
            "link",
            "the rate of each rail's port against `rate_gbps`; on Ethernet without it, against the port's maximum",
            "ethtool's speed, `ports/N/rate`",
            "check the cable (type, length), autonegotiation and forced speeds at both ends; or correct `rate_gbps`",
            sources=(reads.any_of(reads.RATE, reads.driver("link")),),
        ),
        "link.width": Check(
            "link",
            "the number of lanes of that port",
            "`ports/N/rate`",
            "look for a splitter cable, a split switch port or a dead lane; if fewer lanes are intended (HDR100, NDR200), plan `rate_gbps`",
            sources=(reads.RATE,),
        ),
    }
)

#: Names of rates are rounded: the kernel's 56 Gb/s of 4X FDR is 56.25 by its lanes, and 54.5 of payload.
TOLERANCE = 0.03
#: A PCIe path that carries less than this part of a port's rate limits it; a lower planned rate is then justified.
ENOUGH = 0.93
#: The lanes of a full port of QSFP and OSFP modules; a port with more (400 Gb/s as 8 × 50) is checked by its rate.
LANES = 4
#: Names of lane speeds, slowest first, and the best speed of an InfiniBand card by its PCI device: ConnectX-4, 5, 5 Ex, 6, 7, 8.
SPEEDS = ("SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR")
BEST_SPEEDS = {"0x1013": "EDR", "0x1017": "EDR", "0x1019": "EDR", "0x101b": "HDR", "0x1021": "NDR", "0x1023": "XDR"}
SOFTWARE = "a software device has no line rate"


def check_rate(port: RailPort) -> Iterator[Finding]:
    """Findings `link.rate` and `link.width` of a rail with a device; at most one of them is an error, so that a cause counts once."""
    wanted_gbps = _wanted_gbps(port)
    why_not = SOFTWARE if port.software else port.not_judged
    if why_not is not None:
        yield port.skip("link.rate", why_not, _rate_words(wanted_gbps))
        yield port.skip("link.width", why_not, f"{LANES} lanes")
    elif wanted_gbps is None:
        yield _unplanned_rate(port)
        yield _unplanned_width(port)
    else:
        yield from _against(port, wanted_gbps)


def _wanted_gbps(port: RailPort) -> float | None:
    """The planned rate; without one, on Ethernet, the interface's maximum."""
    if port.planned_gbps is not None or port.infiniband:
        return port.planned_gbps
    speeds_mbps = port.ethtool.supported_speeds_mbps if port.ethtool else []
    return max(speeds_mbps) / 1000 if speeds_mbps else None


def _no_maximum_words(port: RailPort) -> str:
    return "" if port.infiniband else ", and the interface does not report its maximum"


def _rate_words(gbps: float | None) -> str:
    return "the planned rate" if gbps is None else f"{gbps:g} Gb/s"


def _width(port: RailPort) -> int | None:
    """The lanes; None if the driver's rate differs from the interface's, since its lanes are then wrong too."""
    gbps, port_facts = port.rate_gbps, port.port
    return port_facts.width if port_facts and gbps and port_facts.rate_gbps and _alike(gbps, port_facts.rate_gbps) else None


def _speed(port: RailPort) -> str | None:
    return port.port.speed if port.port else None


def _seen(port: RailPort) -> str:
    gbps, width, speed = port.rate_gbps, _width(port), _speed(port)
    lanes = f" ({width}X{' ' + speed if speed else ''})" if width else ""
    return f"{port.name} runs at {gbps:g} Gb/s{lanes}" if gbps is not None else f"{port.name} reports no rate"


def _alike(gbps: float, wanted_gbps: float) -> bool:
    return abs(gbps - wanted_gbps) <= TOLERANCE * wanted_gbps


def _against(port: RailPort, wanted_gbps: float) -> Iterator[Finding]:
    gbps, width, expected = port.rate_gbps, _width(port), _rate_words(wanted_gbps)
    if gbps is None:
        look = f"Run {port.look} on {port.host}."
        yield port.finding("link.rate", UNKNOWN, _seen(port), expected, look)
        yield port.skip("link.width", "the port reports no rate: see link.rate", f"{LANES} lanes")
    elif _alike(gbps, wanted_gbps) or gbps > wanted_gbps:
        yield _fast_enough(port, gbps, wanted_gbps)
        yield _right_width(port, width)
    elif width is not None and width < LANES and _alike(gbps * LANES / width, wanted_gbps):
        yield port.skip("link.rate", f"{_seen(port)}: see link.width", expected)
        seen = f"{_seen(port)}: {width} of {LANES} lanes"
        yield port.finding("link.width", ERROR, seen, f"{LANES} lanes", _lanes_remedy(port), ratio=gbps / wanted_gbps)
    else:
        remedy = _rate_remedy(port, gbps, wanted_gbps)
        yield port.finding("link.rate", ERROR, _seen(port), _expected(port, wanted_gbps), remedy, ratio=gbps / wanted_gbps)
        yield port.skip("link.width", "see link.rate", f"{LANES} lanes")


def _expected(port: RailPort, wanted_gbps: float) -> str:
    return _rate_words(wanted_gbps) + ("" if port.planned_gbps is not None else ", the port's maximum")


def _fast_enough(port: RailPort, gbps: float, wanted_gbps: float) -> Finding:
    expected = _expected(port, wanted_gbps)
    if _alike(gbps, wanted_gbps):
        return port.finding("link.rate", OK, _seen(port), expected)
    narrowest = port.pci.narrowest if port.pci else None
    carried_gbps = payload_gbps(narrowest.speed_gtps, narrowest.width) if narrowest else gbps
    if carried_gbps < ENOUGH * gbps:
        return port.finding("link.rate", OK, f"{_seen(port)}, of which PCIe carries {carried_gbps:.0f}", expected)
    remedy = f"Correct rate_gbps of {port.rail.name} of {port.host} to {gbps:g}, or check the card and cable of rail {port.rail.index}."
    return port.finding("link.rate", WARNING, f"{_seen(port)}, faster than planned", expected, remedy)


def _right_width(port: RailPort, width: int | None) -> Finding:
    """Finding `link.width` of a port at its expected rate, which has the lanes for it: two for HDR100 or NDR200."""
    if width is None:
        return port.skip("link.width", "the port reports no lanes; its rate is as expected", "the lanes of its rate")
    return port.finding("link.width", OK, f"{width} lanes", "the lanes of its rate")


def _unplanned_rate(port: RailPort) -> Finding:
    """Finding `link.rate` without a planned rate: on InfiniBand against the best speed of the card's generation; some boards are slower."""
    best, speed = BEST_SPEEDS.get(port.pci.device_id or "") if port.pci and port.infiniband else None, _speed(port)
    seen = f"{_seen(port)}; no rate is planned (rate_gbps){_no_maximum_words(port)}"
    if best is None or speed not in SPEEDS or _width(port) != LANES or SPEEDS.index(speed) >= SPEEDS.index(best):
        return port.skip("link.rate", seen, "the planned rate")
    remedy = (
        f"1. If intended (a board or switch for {speed}), set `rate_gbps: {port.rate_gbps:g}` for {port.rail.name} of {port.host}. "
        f"2. Else check that {port.cable} and its switch port support {best}: `mstlink -d {port.address} -c`."
    )
    return port.finding("link.rate", WARNING, seen, f"{best}, the best of this card's generation", remedy)


def _unplanned_width(port: RailPort) -> Finding:
    expected, width = f"{LANES} lanes", _width(port)
    if not port.infiniband:
        return port.skip("link.width", "on Ethernet the lanes follow from the rate, and none is planned", expected)
    if width is None:
        return port.finding("link.width", UNKNOWN, "the port reports no lanes", expected, f"Run {port.look} on {port.host}.")
    if width >= LANES:
        return port.finding("link.width", OK, f"{width} lanes", expected)
    remedy = (
        f"If intended (HDR100, NDR200, a splitter cable), set `rate_gbps: {port.rate_gbps:g}` for {port.rail.name} of {port.host}. "
        f"Else: {_lanes_remedy(port)}"
    )
    return port.finding("link.width", WARNING, f"{_seen(port)}: {width} of {LANES} lanes", expected, remedy)


def _lanes_remedy(port: RailPort) -> str:
    return (
        f"1. Check whether {port.cable} is a splitter (breakout) cable, or its switch port is split or set to fewer lanes. "
        f"2. Else a lane is dead: on {port.host}, run {port.look} to see which. 3. Clean and reseat both ends, then replace the cable."
    )


def _rate_remedy(port: RailPort, gbps: float, wanted_gbps: float) -> str:
    forced = f"`ibportstate -C {port.rail.device} -P {port.rail.port} -D 0 {port.rail.port} query`" if port.infiniband else port.look
    meant = "" if port.planned_gbps is not None else f" 3. If {gbps:g} Gb/s is intended, set `rate_gbps: {gbps:g}` for {port.rail.name}."
    return (
        f"1. Check that {port.cable} supports {wanted_gbps:g} Gb/s (its type; for a DAC also its length). 2. Check that autonegotiation "
        f"is on and no speed is forced: on {port.host} {forced}, and at the switch port.{meant}"
    )
