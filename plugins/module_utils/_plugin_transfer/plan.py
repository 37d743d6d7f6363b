# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of the transfers of a run, the same on every host, and the result of one transfer at one host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

#: The size of a message, and how many are sent: 4 MiB. NCCL sends pieces of 512 KiB (the buffer of protocol Simple divided by its 8 steps).
MESSAGE_BYTES, MESSAGES = 512 * 2**10, 8
TRANSFER_BYTES = MESSAGE_BYTES * MESSAGES
SENDS, RECEIVES = "sends", "receives"


@dataclass(frozen=True)
class Meeting:
    """One transfer. device: of the sender and of the receiver on the rail; address: where the receiver waits for the sender."""

    sender: str
    receiver: str
    rail: str
    sender_device: str
    receiver_device: str
    address: str


@dataclass(frozen=True)
class HostPlan:
    """The plugin of a host: the library's path, the interface that its NCCL uses, and the plugin's variables."""

    library: str
    interface: int
    variables: Mapping[str, str]


@dataclass(frozen=True)
class TransferPlan:
    """All transfers of a run. run: its id. start_seconds: how long a host waits for late partners. seconds: the limit of a transfer."""

    run: str
    port: int
    start_seconds: float
    seconds: float
    hosts: Mapping[str, HostPlan]
    meetings: tuple[Meeting, ...]

    def of(self, host: str) -> tuple[list[Meeting], list[Meeting]]:
        """Return the transfers in which a host sends, and those in which it receives."""
        return [each for each in self.meetings if each.sender == host], [each for each in self.meetings if each.receiver == host]

    def limit_seconds(self, host: str) -> float:
        """Return the time limit of a host's program: it sends one after another, and receives one after another at the same time."""
        return self.start_seconds + self.seconds * max(map(len, self.of(host)), default=0)

    def to_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True)
class TransferResult:
    """The result of a transfer at one of its hosts. role: SENDS or RECEIVES. device: the name of the plugin's device.

    bytes: how many it has sent, or received and compared. failed: why it ended early, "" if it did not; mismatch: how the received bytes
    differ, "" if they do not. ports, netdevs: the increase of the counters in the role's direction. at: the plugin's last function.
    """

    partner: str
    rail: str
    role: str
    device: str = ""
    bytes: int = 0
    failed: str = ""
    mismatch: str = ""
    at: str = ""
    seconds: float = 0.0
    ports: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    netdevs: Mapping[str, int] = field(default_factory=dict)


def parse_transfer_plan(text: str) -> TransferPlan:
    """Parse the text of TransferPlan.to_text. Raises ParseError for any other text."""
    try:
        values = json.loads(text)
        hosts = {str(name): HostPlan(**each) for name, each in values.pop("hosts").items()}
        meetings = tuple(Meeting(**each) for each in values.pop("meetings"))
        return TransferPlan(**values, hosts=hosts, meetings=meetings)
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as exc:
        raise ParseError(f"the plan of transfers: {quoted(text)}, expected {{run, port, start_seconds, seconds, hosts, meetings}}") from exc


def parse_transfer_results(text: str) -> list[TransferResult]:
    """Parse the results file of a host, a list of results. Raises ParseError for any other text."""
    try:
        return [checked_result(each) for each in json.loads(text)]
    except (ValueError, RecursionError, TypeError) as exc:
        raise ParseError(f"the results of transfers: {quoted(text)}, expected a list of {{partner, rail, role, …}}") from exc


def checked_result(values: Any) -> TransferResult:
    """Return a result from its dictionary. Raises TypeError if a value has another type."""
    result = TransferResult(**values)
    texts = (result.partner, result.rail, result.role, result.device, result.failed, result.mismatch, result.at)
    if not all(isinstance(each, str) for each in texts) or not isinstance(result.seconds, (int, float)):
        raise TypeError("not the types of a result")
    numbers: list[Any] = [result.bytes, *result.netdevs.values()]
    counted = [value for port in result.ports.values() for value in (port["bytes"], port["packets"]) if value is not None]
    if not all(isinstance(value, int) for value in (*numbers, *counted)):
        raise TypeError("not the types of a result")
    return result
