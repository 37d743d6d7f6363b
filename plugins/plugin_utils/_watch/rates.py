# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rates of ports from the counters of two readings. A counter that is missing, was reset or wrapped has no rate: it is unknown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import CABLE_ERRORS, CONGESTION, FLAPS, PCIE, TRANSPORT

_LONGEST_LINE, _MOST_PORTS, _LONGEST_TEXT = 4 * 2**20, 256, 200
#: InfiniBand counts words of four bytes (port_rcv_data, port_xmit_data).
_WORD_BITS = 32
_GIGA = 1e9
Counters = Mapping[str, int]
Rates = Mapping[str, float | None]


@dataclass(frozen=True)
class Reading:
    """A line of a host's reader. mono: the host's monotonic clock in seconds; slow_mono: that of netdevs and qps, None without.

    qps: port → process → number of queue pairs, None if they were not read. error: why the ports could not be read, "" if they were.
    """

    mono: float
    boot: str
    ports: Mapping[str, Mapping[str, Any]]
    slow_mono: float | None = None
    netdevs: Mapping[str, Counters] = field(default_factory=dict)
    qps: Mapping[str, Mapping[str, int]] | None = None
    error: str = ""


@dataclass(frozen=True)
class PortRates:
    """The rates of one port, each None if it is unknown. gbps: 10^9 bit/s; all others are events a second.

    processes: name with PID → number of queue pairs; None if they were not read.
    """

    host: str
    port: str
    netdev: str | None
    state: str
    line_gbps: float | None
    in_gbps: float | None = None
    out_gbps: float | None = None
    in_packets: float | None = None
    out_packets: float | None = None
    pauses: float | None = None
    marks: float | None = None
    cnps: float | None = None
    discards: float | None = None
    retransmissions: float | None = None
    errors: float | None = None
    processes: Mapping[str, int] | None = None

    @property
    def is_active(self) -> bool:
        return self.state == "ACTIVE"

    @property
    def moves(self) -> bool | None:
        """Whether RDMA moves over the port; None if it is not known."""
        known = [value for value in (self.in_gbps, self.out_gbps, self.in_packets, self.out_packets) if value is not None]
        return any(value > 0 for value in known) if known else None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "moves": self.moves}


def parse_reading(line: str) -> Reading:
    """Parse a line of a host's reader. Raises ParseError for another form: a host may send anything."""
    try:
        tree = json.loads(line) if len(line) <= _LONGEST_LINE else None
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON: {quoted(line)}") from error
    if not isinstance(tree, dict) or not isinstance(tree.get("ports"), dict) or len(tree["ports"]) > _MOST_PORTS:
        raise ParseError(f"not a reading of ports: {quoted(line)}")
    slow: dict[str, Any] = tree["slow"] if isinstance(tree.get("slow"), dict) else {}
    netdevs, qps = slow.get("netdevs"), slow.get("qps")
    return Reading(
        mono=_number(tree.get("mono")),
        boot=clean(str(tree.get("boot")), 64),
        ports={clean(name, 64): _port(port) for name, port in tree["ports"].items()},
        slow_mono=_number(slow["mono"]) if "mono" in slow else None,
        netdevs={clean(name, 64): _counters(each) for name, each in netdevs.items()} if isinstance(netdevs, dict) else {},
        qps={clean(port, 64): _counters(each) for port, each in qps.items()} if isinstance(qps, dict) else None,
        error=clean(str(tree.get("error") or ""), _LONGEST_TEXT),
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or abs(value) > 1e12:
        raise ParseError(f"not a time: {quoted(value)}")
    return float(value)


def _port(tree: Any) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise ParseError(f"not a port: {quoted(tree)}")
    texts = {name: clean(str(tree[name]), 64) if tree.get(name) is not None else None for name in ("state", "rate", "netdev")}
    return {**texts, "counters": _counters(tree.get("counters"))}


def _counters(tree: Any) -> dict[str, int]:
    if not isinstance(tree, dict) or len(tree) > 4096:
        raise ParseError(f"not counters: {quoted(tree)}")
    if not all(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64 for value in tree.values()):
        raise ParseError(f"not counters: {quoted(tree)}")
    return {clean(name, 64): value for name, value in tree.items()}


class HostRates:
    """Keeps the last readings of a host, and returns the rates between the last two."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._last: Reading | None = None
        self._slow: Reading | None = None
        self._driver: dict[str, dict[str, float | None]] = {}
        self._qps: Mapping[str, Mapping[str, int]] | None = None
        self.ports: list[PortRates] = []

    def add(self, reading: Reading) -> None:
        """Take a reading. After a boot, nothing is compared with the readings before."""
        last = self._last if self._last is not None and self._last.boot == reading.boot else None
        if last is None:
            self._slow, self._driver = None, {}
        if reading.slow_mono is not None:
            slow = self._slow
            seconds = reading.slow_mono - slow.slow_mono if slow is not None and slow.slow_mono is not None else 0.0
            before = slow.netdevs if slow is not None else {}
            self._driver = {name: _rates(before.get(name, {}), each, seconds) for name, each in reading.netdevs.items()}
            self._slow, self._qps = reading, reading.qps
        seconds = reading.mono - last.mono if last is not None else 0.0
        self.ports = [self._rates(name, port, last, seconds) for name, port in sorted(reading.ports.items())]
        self._last = reading

    def _rates(self, name: str, port: Mapping[str, Any], last: Reading | None, seconds: float) -> PortRates:
        before = last.ports.get(name, {}).get("counters", {}) if last is not None else {}
        rates = _rates(before, port["counters"], seconds)
        driver = self._driver.get(port["netdev"] or "", {})
        every = {**driver, **rates}
        processes = None if self._qps is None else self._qps.get(name, {})
        return PortRates(
            host=self.host,
            port=name,
            netdev=port["netdev"],
            state=(port["state"] or "unknown").rpartition(" ")[2],
            line_gbps=_line_gbps(port["rate"]),
            in_gbps=_gbps(rates, "port_rcv_data"),
            out_gbps=_gbps(rates, "port_xmit_data"),
            in_packets=_first(rates, "port_rcv_packets", "rcvd_pkts"),
            out_packets=_first(rates, "port_xmit_packets", "sent_pkts"),
            pauses=_sum(driver, {"rx_pause", "tx_pause"}),
            marks=_sum(rates, {"np_ecn_marked_roce_packets"}),
            cnps=_sum(rates, {"np_cnp_sent", "rp_cnp_handled"}),
            discards=_sum(every, CONGESTION),
            retransmissions=_sum(rates, TRANSPORT),
            errors=_sum(every, CABLE_ERRORS | FLAPS | PCIE),
            processes=processes,
        )


def _rates(before: Counters, after: Counters, seconds: float) -> dict[str, float | None]:
    """Return the rate of each counter; None for one that is missing before, or that went down: it was reset, or wrapped."""
    if seconds <= 0:
        return dict.fromkeys(after)
    return {name: (value - before[name]) / seconds if before.get(name, value + 1) <= value else None for name, value in after.items()}


def _gbps(rates: Rates, name: str) -> float | None:
    rate = rates.get(name)
    return None if rate is None else rate * _WORD_BITS / _GIGA


def _first(rates: Rates, *names: str) -> float | None:
    return next((rates[name] for name in names if name in rates), None)


def _sum(rates: Rates, names: frozenset[str] | set[str]) -> float | None:
    """Return the sum of the counters that exist; None if there are none, or if one of them has no rate."""
    known = [rates[name] for name in rates if name in names]
    return sum(each for each in known if each is not None) if known and None not in known else None


def _line_gbps(text: str | None) -> float | None:
    try:
        return float((text or "").split()[0])
    except (ValueError, IndexError):
        return None
