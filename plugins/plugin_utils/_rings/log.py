# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rings, trees and network connections in NCCL's log (NCCL_DEBUG=INFO with GRAPH): which rank sends to which, by which adapters.

Source: NCCL 2.28, src/init.cc ("Ring", "Trees"), src/graph/rings.cc ("Channel 00/08 : 0 1 2"), src/transport/net.cc ("via NET").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.channels import DIRECTION, read_way
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.contents import LogContents
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import INFO, origin
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.messages import read_message
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import Adapter, NcclRank
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.process import Process, listed_adapters

#: Which ranks a rank sends to on one channel: rank → next rank of a ring, or rank → parent in a tree.
Edges = dict[int, int]
SEND, RECEIVE = "send", "receive"
#: A process: its host and its ID.
Key = tuple[str | None, int | None]

_COMM = re.compile(r"comm (\S{1,40}) rank ([0-9]{1,9}) nranks ([0-9]{1,9}) .*- Init (START|COMPLETE)")
_COMM_ID = re.compile(r" commId (0x[0-9a-fA-F]{1,16})")
_RING = re.compile(r"Ring ([0-9]{1,4}) : ([0-9]{1,9}) -> ([0-9]{1,9}) -> ([0-9]{1,9})\s*$")
_LIST = re.compile(r"Channel ([0-9]{1,4})(?:/[0-9]{1,4})? : +([0-9]{1,9}(?: +[0-9]{1,9})*) *(\.{3})?\s*$")
_TREE = re.compile(r" \[([0-9]{1,4})\] -?[0-9]{1,9}/-?[0-9]{1,9}/-?[0-9]{1,9}->([0-9]{1,9})->(-?[0-9]{1,9})(?=\s|$)")
#: Connection 0 of a channel has rings and trees; the others have send and receive between any two ranks.
_CONNECTION = re.compile(r"Channel ([0-9]{1,4})(?:/0)? : ([0-9]{1,9})\[\w{1,20}\] -> ([0-9]{1,9})\[\w{1,20}\] \[(send|receive)\] via ")
_LONGEST_LINE = 16_384
#: The limit of kept items: a job of 4096 ranks with 32 channels has 131072 edges of rings.
MOST = 2_000_000


@dataclass(frozen=True)
class Nic:
    """One end of a connection. adapter: None if the log does not show it; why: the reason, else ""."""

    adapter: Adapter | None
    why: str = ""


@dataclass(frozen=True)
class Communicator:
    """One communicator. hosts: rank → the host's name in the log; rings, trees: channel → edges, as far as the log has them."""

    name: str
    nranks: int
    hosts: Mapping[int, str | None]
    rings: Mapping[int, Edges]
    trees: Mapping[int, Edges]
    processes: Mapping[int, Key]

    @property
    def missing_ranks(self) -> list[int]:
        """The ranks without a host."""
        return [rank for rank in range(self.nranks) if self.hosts.get(rank) is None]


@dataclass(frozen=True)
class RingLog:
    """The communicators of a log, the largest first. unclear: what cannot be used, as sentences; left_out: the number of torn lines."""

    communicators: tuple[Communicator, ...]
    unclear: tuple[str, ...]
    left_out: int
    connections: Mapping[tuple[Key, str, int, int, int], frozenset[Nic]]

    def nic(self, of: Communicator, direction: str, channel: int, sender: int, receiver: int) -> Nic:
        """Return the adapter of one end of a connection between two ranks."""
        rank, side = (sender, "sender") if direction == SEND else (receiver, "receiver")
        process = of.processes.get(rank)
        found = self.connections.get((process, direction, channel, sender, receiver)) if process is not None else None
        if not found:
            return Nic(None, f"the log has no network connection of its {side}")
        return (
            next(iter(found))
            if len(found) == 1
            else Nic(None, f"the log has several network connections of its {side}, of other communicators or runs")
        )


@dataclass
class _Part:
    """The lines of one rank between the start and the end of its initialization."""

    rings: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    lists: dict[int, list[int]] = field(default_factory=dict)
    parents: dict[int, tuple[int, int]] = field(default_factory=dict)


#: A communicator of a process: host, process ID, its address, which can be used again, and its ID.
_Place = tuple[str | None, int | None, str, str | None]


class _Reading:
    def __init__(self) -> None:
        self.contents = LogContents()
        self.processes: dict[Key, Process] = {}
        self.parts: dict[_Place, _Part] = {}
        #: Thread → the communicator that it initializes, None before its name is known, and its lines.
        self.open: dict[tuple[str | None, int | None, int | None], tuple[_Place | None, _Part]] = {}
        self.ways: dict[tuple[Key, str, int, int, int], set[tuple[str, int | None, str]]] = defaultdict(set)
        self.kept = 0

    def line(self, line: str) -> None:
        line = line[:_LONGEST_LINE]
        at = line.find(INFO)
        if at < 0:
            return
        message = line[at + len(INFO) :].rstrip("\r\n")
        if INFO in message or self.kept > MOST:
            self.contents.left_out += 1
            return
        place = origin(line[:at])
        key = place.host, place.pid
        process = self.processes.setdefault(key, Process(*key))
        if message.startswith(("Channel ", "Ring ", "Trees ")):
            self._edges(key, (*key, place.thread), message)
            return
        initialization = _COMM.search(message)
        if initialization is not None:
            comm_id = _COMM_ID.search(message)
            of = (*key, initialization[1], None if comm_id is None else comm_id[1])
            self._initialization((*key, place.thread), of, initialization[4])
        read_message(self.contents, process, message)

    def _initialization(self, thread: tuple[str | None, int | None, int | None], of: _Place, state: str) -> None:
        _of, part = self.open.pop(thread, (None, _Part()))
        if state == "START":
            self.open[thread] = of, _Part()
        else:
            self.parts[of] = part

    def _edges(self, key: Key, thread: tuple[str | None, int | None, int | None], message: str) -> None:
        connection = _CONNECTION.match(message)
        if connection is not None:
            self._connection(key, connection, message)
            return
        part = self.open.setdefault(thread, (None, _Part()))[1]
        ring, ranks = _RING.match(message), _LIST.match(message)
        if ring is not None:
            part.rings[int(ring[1])] = int(ring[2]), int(ring[3]), int(ring[4])
            self.kept += 1
        elif ranks is not None:
            # NCCL cuts a long list, newer versions with dots at its end.
            part.lists[int(ranks[1])] = [] if ranks[3] else [int(rank) for rank in ranks[2].split()]
            self.kept += len(part.lists[int(ranks[1])])
        elif message.startswith("Trees "):
            part.parents.update({int(channel): (int(rank), int(parent)) for channel, rank, parent in _TREE.findall(message)})
            self.kept += len(part.parents)

    def _connection(self, key: Key, found: re.Match[str], message: str) -> None:
        via = message.find(" via ")
        way = read_way(message[via - DIRECTION :])
        if way is None or way.transport != "NET":
            return
        channel, sender, receiver, direction = found.groups()
        self.ways[key, direction, int(channel), int(sender), int(receiver)].add((way.kind, way.device, message.partition(" via ")[2]))
        self.kept += 1

    def adapters(self, key: Key, kind: str) -> dict[int, Adapter]:
        """Return the adapters of a process's network; those of its host if it lists none itself."""
        own = listed_adapters(kind, self.processes[key].adapters)
        if own:
            return own
        lists: dict[str, dict[int, Adapter]] = {}
        for process in self.processes.values():
            if process.host == key[0]:
                lists.update(process.adapters)
        return listed_adapters(kind, lists)


def read_rings(lines: Iterable[str]) -> RingLog:
    """Return the rings, trees and connections of a log of any number of processes and communicators. Lines of others are skipped."""
    reading = _Reading()
    for line in lines:
        reading.line(line)
    reading.parts.update((of, part) for of, part in reading.open.values() if of is not None)
    unclear: list[str] = []
    communicators = sorted(_communicators(reading, unclear), key=lambda each: (-each.nranks, each.name))
    connections = {place: frozenset(_nics(reading, place[0], ways)) for place, ways in reading.ways.items()}
    return RingLog(tuple(communicators), tuple(unclear), reading.contents.left_out, connections)


def _nics(reading: _Reading, key: Key, ways: Iterable[tuple[str, int | None, str]]) -> Iterable[Nic]:
    for kind, device, words in ways:
        adapter = None if device is None else reading.adapters(key, kind).get(device)
        yield Nic(adapter, "" if adapter else f"the log does not name the adapter of {words!r}")


def _communicators(reading: _Reading, unclear: list[str]) -> Iterable[Communicator]:
    named = {place[:3] for place in reading.contents.ranks if place[3] is not None}
    groups: dict[tuple[str | None, int], list[tuple[_Place, NcclRank]]] = defaultdict(list)
    for place, rank in reading.contents.ranks.items():
        # A communicator that was split from another has an ID at the end of its initialization only.
        if rank.comm_id is not None or place[:3] not in named:
            groups[rank.comm_id, rank.nranks].append((place, rank))
    for (comm_id, nranks), members in groups.items():
        name = comm_id or "without an ID"
        if len({rank.rank for _place, rank in members}) < len(members):
            unclear.append(f"communicators of {nranks} ranks {name}: several have the same rank, and the log does not distinguish them")
            continue
        yield _communicator(name, nranks, [(rank, reading.parts.get(place, _Part())) for place, rank in members])


def _communicator(name: str, nranks: int, members: Iterable[tuple[NcclRank, _Part]]) -> Communicator:
    rings: dict[int, Edges] = defaultdict(dict)
    trees: dict[int, Edges] = defaultdict(dict)
    hosts: dict[int, str | None] = {}
    processes: dict[int, Key] = {}
    for rank, part in members:
        hosts[rank.rank], processes[rank.rank] = rank.host, (rank.host, rank.pid)
        for channel, ranks in part.lists.items():
            whole = len(ranks) == nranks and set(ranks) == set(range(nranks))
            rings[channel].update(zip(ranks, [*ranks[1:], ranks[0]], strict=True) if whole else {})
        for channel, (before, own, after) in part.rings.items():
            if own == rank.rank:
                rings[channel].update({before: own, own: after})
        for channel, (own, parent) in part.parents.items():
            if own == rank.rank:
                trees[channel].update({own: parent} if parent >= 0 else {})
    return Communicator(name, nranks, hosts, dict(sorted(rings.items())), dict(sorted(trees.items())), processes)
