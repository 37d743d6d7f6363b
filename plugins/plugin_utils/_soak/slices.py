# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines that a soak leaves in soak/slices.jsonl of a run: one for each port of a slice, and one for the end of the slice.

A slice counts only with its end. If the control node is killed while it writes, the lines of that slice are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import Result
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import COUNTERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings

FILE = "soak/slices.jsonl"
#: No counter can be read, or the port is another one, or the host has rebooted.
NOT_READ = "its counters before and after the slice cannot be compared"
NONE_KNOWN = "its driver has none of the error counters"
NO_PACKETS = "its packets are not counted"
NO_TRAFFIC = "it counted no packet"
MOST = 2**63


@dataclass(frozen=True)
class PortSlice:
    """One port in one slice.

    number: of the slice, from 0. at: its start, in seconds since 1970 by the control node. partner: the host that the port met on the rail.
    seconds: between the two readings; packets: sent and received; both None if not known. errors: counter → its increase.
    unknown: why the counters do not show all errors, "" if they do. failure: why perftest failed, "" if it did not.
    """

    number: int
    at: float
    host: str
    rail: str
    partner: str
    seconds: float | None
    packets: int | None
    errors: Mapping[str, int] = field(default_factory=dict)
    unknown: str = ""
    failure: str = ""


@dataclass(frozen=True)
class SliceEnd:
    """The end of a slice. lasted_seconds: since the end of the slice before it, or since the start of its run."""

    number: int
    at: float
    lasted_seconds: float


@dataclass(frozen=True)
class Slices:
    """The finished slices of a soak, in their order."""

    ports: Sequence[PortSlice]
    ends: Sequence[SliceEnd]

    @property
    def seconds(self) -> float:
        """Return how long the soak has measured, without the time between its runs."""
        return sum(each.lasted_seconds for each in self.ends)

    @property
    def next_number(self) -> int:
        return max((each.number for each in self.ends), default=-1) + 1


def to_lines(ports: Iterable[PortSlice], end: SliceEnd) -> list[str]:
    """Return the lines of a slice. Empty values are left out."""
    lines = [{key: value for key, value in asdict(each).items() if value not in ({}, "")} for each in ports]
    return [json.dumps(each) for each in (*lines, asdict(end))]


def read_slices(files: Iterable[Iterable[str]]) -> Slices:
    """Return the finished slices. files: the lines of each run. A last line may be cut off. Raises ParseError for other lines."""
    ports: list[PortSlice] = []
    ends: dict[int, SliceEnd] = {}
    for lines in files:
        pending: list[PortSlice] = []
        for line in lines:
            each = _parse(line)
            if isinstance(each, PortSlice):
                pending.append(each)
            elif each is not None and each.number not in ends:
                ends[each.number] = each
                ports += [port for port in pending if port.number == each.number]
                pending = []
    return Slices(ports, list(ends.values()))


def _parse(line: str) -> PortSlice | SliceEnd | None:
    """Return what a line has; None for one that is cut off."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    try:
        if "lasted_seconds" not in data:
            return _port(data)
        end = SliceEnd(**data)
        _check(end.number, end.at, end.lasted_seconds)
    except (TypeError, ValueError) as error:
        raise ParseError(f"not a line of a soak ({error}): {quoted(line)}") from error
    return end


def _port(data: Any) -> PortSlice:
    port = PortSlice(**data)
    names = (port.host, port.rail, port.partner, port.unknown, port.failure)
    if not all(isinstance(each, str) for each in names) or not isinstance(port.errors, dict):
        raise ValueError("a name or the errors have another type")
    _check(port.number, port.at, *port.errors.values(), *(each for each in (port.seconds, port.packets) if each is not None))
    return port


def _check(*values: Any) -> None:
    if not all(isinstance(each, (int, float)) and not isinstance(each, bool) and 0 <= each < MOST for each in values):
        raise ValueError("a number has another type or is too large")


def ports_of(
    number: int, at: float, plan: Mapping[str, Any], counters: Mapping[str, Mapping[str, Any] | None], results: Mapping[str, Iterable[str]]
) -> Iterator[PortSlice]:
    """Yield the ports of a slice. plan: of the pair runner. counters: host → those of the host, as in _pairs.counters.risen, None if none.

    results: host → the lines of its results. Lines of another form, and results of other pairs, show nothing.
    """
    failures = _failures(plan, results)
    for rail, _round, *ends in planned_meetings(plan):
        name = plan["rails"][rail]["name"]
        for host, partner in (ends, ends[::-1]):
            of_rail = (counters.get(plan["hosts"][host]) or {}).get(name)
            words = plan["hosts"][host], name, plan["hosts"][partner]
            yield _of(PortSlice(number, at, *words, None, None, failure=failures.get((rail, host), "")), of_rail)


def _of(port: PortSlice, of_rail: Mapping[str, Any] | None) -> PortSlice:
    if of_rail is None:
        return PortSlice(**{**asdict(port), "unknown": NOT_READ})
    errors = {name: by for name, by in of_rail["risen"].items() if name in COUNTERS}
    of_packets = of_rail.get("packets") or {}
    counts = [of_packets.get(way) for way in ("sent", "received")]
    packets = None if None in counts else sum(count for count in counts if count is not None)
    return PortSlice(
        **{**asdict(port), "seconds": of_rail["seconds"], "packets": packets, "errors": errors, "unknown": _unknown(of_rail, packets)}
    )


def _unknown(of_rail: Mapping[str, Any], packets: int | None) -> str:
    """Return why a port's counters do not show all errors of a slice, "" if they do."""
    names = of_rail.get("uncounted", ())
    if not of_rail.get("counted"):
        return NONE_KNOWN
    if names:
        return f"counters were cleared or are full: {', '.join(list(names)[:4])}"
    return NO_PACKETS if packets is None else "" if packets else NO_TRAFFIC


def _failures(plan: Mapping[str, Any], results: Mapping[str, Iterable[str]]) -> dict[tuple[int, int], str]:
    """Return (rail, host) → why perftest failed at this end, in positions of the plan."""
    found: dict[tuple[int, int], str] = {}
    for host, lines in results.items():
        for line in lines:
            try:
                result = Result.from_line(line)
            except ParseError:
                continue
            own = result.server if result.role == "server" else result.client
            if result.kind is not None and own < len(plan["hosts"]) and plan["hosts"][own] == host:
                found[result.rail, own] = result.kind
    return found
