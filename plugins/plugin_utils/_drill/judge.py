# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outage of a step, from the results of its two streams. The results come from hosts, so their form is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._drill.stream import MOST_HOLES

#: Within this time a hole counts as one that lasted until the fault was ended.
MARGIN_MS = 1000.0


@dataclass(frozen=True)
class Received:
    """What one host has received from the other. holes: (flow, lost packets, start, length), times in ms.

    unfinished: the number of flows that did not come back. silent_ms: how long nothing had arrived at the end; None if nothing ever did.
    pause_ms: the longest time between two rounds of this host's own sending. See Receiver.result.
    """

    packets: int
    flows: int
    lost: int
    holes: list[tuple[int, int, float, float]]
    unfinished: int
    silent_ms: float | None
    rounds: int
    pause_ms: float


def parse_result(answer: Any) -> Received:
    """Return a stream's result. Raises ParseError for another form, and for numbers that it cannot have."""
    try:
        holes = answer["holes"]
        if not isinstance(holes, list) or len(holes) > MOST_HOLES:
            raise ValueError("holes")
        silent = answer["silent_ms"]
        return Received(
            _count(answer["packets"]),
            _count(answer["flows"]),
            _count(answer["lost"]),
            [(_count(flow), _count(lost), _ms(start), _ms(length)) for flow, lost, start, length in holes],
            len(answer["unfinished"]),
            None if silent is None else _ms(silent),
            _count(answer["rounds"]),
            _ms(answer["pause_ms"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"not the result of a stream ({error!r}): {str(answer)[:200]}") from error


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise ValueError(f"{str(value)[:50]} is not a count")
    return value


def _ms(value: Any) -> float:
    """A time; a clock's jitter makes a short one negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e9 < value < 1e9:
        raise ValueError(f"{str(value)[:50]} is not a time in ms")
    return float(value)


@dataclass(frozen=True)
class Outage:
    """The outage of a step. problem: why there is none, "" if it was measured.

    fault_ms: the longest hole that began while the fault lasted; restore_ms: that began after it. flows: those that lost packets, of all
    flows of both directions. healed: whether traffic came back before the fault was ended. pause_ms: the precision, the longest pause of a
    sender.
    """

    problem: str
    fault_ms: float = 0.0
    restore_ms: float = 0.0
    flows: int = 0
    of_flows: int = 0
    lost: int = 0
    healed: bool = True
    pause_ms: float = 0.0
    directions: Mapping[str, float] = field(default_factory=dict)

    @property
    def longest_ms(self) -> float:
        return max(self.fault_ms, self.restore_ms)


def judge_step(received: Mapping[str, Received | str], hold_ms: float, ended_ms: float, flows: int) -> Outage:
    """Return the outage. received: host → its result, or why there is none.

    hold_ms: how long the fault lasted. ended_ms: when it was ended, after the start of the streams, by the control node's clock.
    """
    if missing := [f"{host}: {each}" for host, each in received.items() if isinstance(each, str)]:
        return Outage("; ".join(missing))
    results = {host: each for host, each in received.items() if isinstance(each, Received)}
    if silent := [host for host, each in results.items() if each.packets == 0]:
        return Outage(f"{' and '.join(silent)} received no packet, not even before the fault: does a firewall drop its UDP port?")
    if few := [f"{host} received {each.flows} of {flows} flows" for host, each in results.items() if each.flows < flows]:
        return Outage("; ".join(few))
    holes = {host: each.holes for host, each in results.items()}
    during = [hole[3] for each in holes.values() for hole in each if hole[2] < ended_ms]
    after = [hole[3] for each in holes.values() for hole in each if hole[2] >= ended_ms]
    gone = [host for host, each in results.items() if each.unfinished or (each.silent_ms or 0) > MARGIN_MS * 2]
    if gone:
        return Outage(f"traffic to {' and '.join(gone)} had not come back when the stream ended")
    if not during:
        return Outage("no packet was lost: no flow uses this port, or the fault has no effect on what the switch forwards in hardware")
    return Outage(
        "",
        max(during),
        max(after, default=0.0),
        sum(len({hole[0] for hole in each}) for each in holes.values()),
        flows * len(results),
        sum(each.lost for each in results.values()),
        max(during) < hold_ms - MARGIN_MS,
        max(each.pause_ms for each in results.values()),
        {host: max((hole[3] for hole in each), default=0.0) for host, each in holes.items()},
    )


def outage_words(name: str, outage: Outage) -> str:
    """Return the result of a step, a sentence or two."""
    if outage.problem:
        return f"{name}: not measured: {outage.problem}."
    if not outage.healed:
        return f"{name}: traffic stopped for {outage.fault_ms / 1000:.2f} s, and came back only when the fault was ended."
    restored = f", and {outage.restore_ms / 1000:.2f} s after the fault was ended" if outage.restore_ms else ""
    lost = f"{outage.lost} packets of {outage.flows} of {outage.of_flows} flows were lost"
    return f"{name}: traffic stopped for {outage.fault_ms / 1000:.2f} s{restored}; {lost}; precision {outage.pause_ms:.0f} ms."
