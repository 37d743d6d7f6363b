# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a live view: the hosts, their last rates, and which of them do not answer. It is also what a recording replays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.rates import HostRates, PortRates, parse_reading

#: A host without a reading for this many intervals, and at least this many seconds, is silent.
SILENT_INTERVALS, SILENT_SECONDS = 3.0, 3.0
LINE, END = "line", "end"
SCHEMA = 1


@dataclass(frozen=True)
class Entry:
    """What came from a host. got: seconds since the view began; kind: LINE, a line of its reader, or END, why the reader ended."""

    got: float
    host: str
    kind: str
    text: str

    def to_json(self) -> str:
        return json.dumps({"got": round(self.got, 3), "host": self.host, "kind": self.kind, "text": self.text}, sort_keys=True)


@dataclass
class _Host:
    rates: HostRates
    got: float | None = None
    ended: str | None = None
    problem: str = ""
    readings: int = 0


@dataclass
class View:
    """All hosts. interval: seconds between the readings of a host; now: seconds since the view began."""

    hosts: Sequence[str]
    interval: float
    now: float = 0.0
    _known: dict[str, _Host] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {host: _Host(HostRates(host)) for host in self.hosts}

    def add(self, entry: Entry) -> None:
        """Take what came from a host. A line of another form is a problem of this host, not of the view."""
        self.now = max(self.now, entry.got)
        known = self._known.get(entry.host)
        if known is None:
            return
        if entry.kind == END:
            known.ended = clean(entry.text, 200)
            return
        try:
            reading = parse_reading(entry.text)
        except ParseError as error:
            known.problem = clean(str(error), 200)
            return
        known.rates.add(reading)
        known.got, known.problem = entry.got, reading.error
        known.readings += 1

    def silent(self) -> dict[str, str]:
        """Return each host that does not answer, or whose ports are not known, with the reason."""
        found = {}
        for host, known in self._known.items():
            if known.ended is not None:
                found[host] = f"ended: {known.ended}" if known.ended else "ended"
            elif known.problem:
                found[host] = f"not read: {known.problem}"
            elif known.got is None:
                found[host] = "no reading yet"
            elif self.now - known.got > max(SILENT_INTERVALS * self.interval, SILENT_SECONDS):
                found[host] = f"silent for {self.now - known.got:.0f} s"
        return found

    @property
    def is_complete(self) -> bool:
        """Whether each host has sent two readings, or has ended."""
        return all(known.ended is not None or known.readings >= 2 for known in self._known.values())

    @property
    def all_ended(self) -> bool:
        return all(known.ended is not None for known in self._known.values())

    def ports(self) -> list[PortRates]:
        """Return the ports of all hosts that answer, the oddest first: not active, then faults, then congestion, then traffic."""
        silent = self.silent()
        found = [port for host, known in self._known.items() if host not in silent for port in known.rates.ports]
        return sorted(found, key=_oddness)

    def to_dict(self) -> dict[str, Any]:
        """Return the view for programs."""
        ports = [port.to_dict() for port in self.ports()]
        return {"schema": SCHEMA, "seconds": round(self.now, 3), "silent": self.silent(), "ports": ports}


def _oddness(port: PortRates) -> tuple[Any, ...]:
    """Sort first what should not be: a port that is not ACTIVE, then the highest rates of faults and congestion."""
    levels = (port.errors, port.discards, port.retransmissions, port.pauses, port.cnps)
    traffic = max(port.in_gbps or 0.0, port.out_gbps or 0.0)
    return (port.is_active, *(-(level or 0.0) for level in levels), -traffic, port.host, port.port)


def headline(view: View) -> str:
    """Return whether RDMA moves now, and on which ports: by the name of the device, which hosts of one kind share."""
    moving: dict[str, dict[str, PortRates]] = {}
    still: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for port in sorted(view.ports(), key=lambda port: port.port):
        if port.moves is None:
            unknown[port.port] = None
        elif port.moves:
            moving.setdefault(port.port, {})[port.host] = port
        else:
            still[port.port] = None
    parts = [f"{port} ({_counted(hosts)}, {_traffic(list(hosts.values()))})" for port, hosts in moving.items()]
    quiet = [port for port in still if port not in moving]
    words = f"RDMA moves on {', '.join(parts)}." if parts else "RDMA moves on no port." if still else "No rate is known yet."
    words += f" Still: {', '.join(quiet)}." if quiet and parts else ""
    return words + (f" Unknown: {', '.join(unknown)}." if unknown and (parts or still) else "")


def _counted(hosts: Mapping[str, PortRates]) -> str:
    return f"{len(hosts)} {'host' if len(hosts) == 1 else 'hosts'}"


def _traffic(ports: Sequence[PortRates]) -> str:
    """In and out of these ports. Soft-RoCE has no counters of data, and packets are all that is known of it."""
    data = [value for port in ports for value in (port.in_gbps, port.out_gbps)]
    packets = [value for port in ports for value in (port.in_packets, port.out_packets)]
    if not any(value is None for value in data):
        return f"{sum(value or 0.0 for value in data):.1f} Gb/s"
    if not any(value is None for value in packets):
        return f"{sum(value or 0.0 for value in packets):.0f} packets/s"
    return f"at least {sum(value or 0.0 for value in data):.1f} Gb/s"


def recorded(hosts: Sequence[str], interval: float, entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the lines of a recording: a head, and what came from the hosts in its order."""
    yield json.dumps({"schema": SCHEMA, "hosts": list(hosts), "interval": interval})
    yield from (entry.to_json() for entry in entries)


def parse_recording(lines: Iterable[str]) -> tuple[View, Iterator[Entry]]:
    """Return the empty view of a recording and its entries; an incomplete last line is left out. Raises ParseError."""
    rest = iter(lines)
    head = _object(next(rest, ""))
    hosts, interval = head.get("hosts"), head.get("interval")
    if head.get("schema") != SCHEMA or not isinstance(hosts, list) or not isinstance(interval, (int, float)):
        raise ParseError("this file is not a recording of the live view")
    return View([str(host) for host in hosts], float(interval)), _entries(rest)


def _entries(lines: Iterable[str]) -> Iterator[Entry]:
    for line in lines:
        if not line.endswith("\n"):
            return
        tree = _object(line)
        got = tree.get("got")
        texts = all(isinstance(tree.get(name), str) for name in ("host", "text"))
        if not isinstance(got, (int, float)) or tree.get("kind") not in (LINE, END) or not texts:
            raise ParseError(f"not an entry of a recording: {quoted(line)}")
        yield Entry(float(got), tree["host"], tree["kind"], tree["text"])


def _object(line: str) -> dict[str, Any]:
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON: {quoted(line)}") from error
    if not isinstance(tree, dict):
        raise ParseError(f"not an object of JSON: {quoted(line)}")
    return tree
