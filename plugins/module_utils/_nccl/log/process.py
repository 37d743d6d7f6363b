# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The content of one process's log: its channels, counted as they come, and the adapters of its networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.channels import Way, read_way
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import Adapter, Channel

#: The maximum number of different channel texts that are held before they are read and summed.
_MOST_TEXTS = 2048
_LONGEST_EXAMPLE = 200
_IB, _OF_IB = "IB", ("IB", "SHARP")


@dataclass
class ChannelCount:
    """The number of lines, and the first of them."""

    count: int
    example: str


@dataclass
class Process:
    """channels: the text after "via", and a short part before it, as in the log; ways: the same, parsed."""

    host: str | None
    pid: int | None
    channels: dict[str, ChannelCount] = field(default_factory=dict)
    ways: dict[Way, ChannelCount] = field(default_factory=dict)
    adapters: dict[str, dict[int, Adapter]] = field(default_factory=dict)
    oob: dict[str, str | None] = field(default_factory=dict)
    torn: int = 0

    def channel(self, tail: str, message: str) -> None:
        """Read a new text of a channel's line."""
        if len(self.channels) >= _MOST_TEXTS:
            self.read()
        self.channels[tail] = ChannelCount(1, message[:_LONGEST_EXAMPLE].strip())

    def read(self) -> None:
        """Parse the channels' texts and add them to the ways; a text without a transport was torn."""
        for tail, counted in self.channels.items():
            way = read_way(tail)
            if way is None:
                self.torn += counted.count
            elif way in self.ways:
                self.ways[way].count += counted.count
            else:
                self.ways[way] = counted
        self.channels = {}

    def network(self, name: str, adapters: tuple[Adapter, ...], oob: str | None) -> None:
        self.adapters.setdefault(name, {}).update((adapter.index, adapter) for adapter in adapters)
        self.oob[name] = oob

    def named_channels(self, of_host: dict[str, dict[int, Adapter]]) -> Iterator[Channel]:
        """Yield its channels, each with the adapter of its number. of_host: those of the host, for a process that lists none."""
        for way, counted in self.ways.items():
            adapters = listed_adapters(way.kind, self.adapters) or listed_adapters(way.kind, of_host)
            adapter = None if way.device is None else adapters.get(way.device)
            name = None if adapter is None else adapter.name
            yield Channel(
                self.host, way.transport, way.kind, way.direction, way.device, name, way.proxied, way.gdr, counted.count, counted.example
            )


def listed_adapters(kind: str, lists: Mapping[str, Mapping[int, Adapter]]) -> dict[int, Adapter]:
    """Return the adapters of a channel's network.

    NVIDIA's plugin (HPC-X) lists its own as "NET/IB", and channels go "via NET/IBext_v8/0", or "via COLLNET/SHARP/0", by the same numbers.
    """
    own = lists.get(kind, {})
    return {**lists.get(_IB, {}), **own} if kind.startswith(_OF_IB) else dict(own)
