# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse NCCL's log (NCCL_DEBUG=INFO), alone or among other lines, of one process or of all of a job through its launcher.

It is read line by line, and the result's size depends on the cluster and not on the log: a 512-rank job writes more than a million lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.channels import DIRECTION
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.contents import LogContents
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import INFO, WARN, Lines, Origin, origin
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.messages import read_message
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import (
    Adapter,
    Channel,
    EnvironmentValue,
    GpuDirect,
    NcclLog,
    Network,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.process import Process

_VIA = " via "
_CHANNEL = f"{INFO}Channel "
_CHANNELS = ("Channel", "CollNet", "Coll ", "Ring ")
_MOST_PROCESSES = 65_536
#: Heads of lines whose process is known; a launcher's prefix may make each one different.
_MOST_HEADS = 65_536
_LONGEST_LINE = 16_384


class _Reading:
    """The state of parsing after the previous lines."""

    def __init__(self) -> None:
        self.heads: dict[str, Process] = {}
        self.processes: dict[tuple[str | None, int | None], Process] = {}
        self.contents = LogContents()
        self.warnings = Lines()
        self.lines = 0

    def line(self, line: str) -> None:
        """Read a line of another message than a channel's, or one with a new head."""
        line = line[:_LONGEST_LINE]
        at = line.find(INFO)
        if at >= 0:
            self.lines += 1
            self._info(self._process(_head(line, at)), line[at + len(INFO) :])
        elif WARN in line:
            self.lines += 1
            head, _warn, text = line.partition(WARN)
            place = origin(head)
            self.warnings.add(text, place.host, place.file, place.line)
        else:
            self.contents.plain(line)

    def _info(self, process: Process, message: str) -> None:
        if INFO in message:
            # Two processes have written into one line: the start of the second one is unknown.
            self.contents.left_out += 1
            return
        via = message.find(_VIA) if message.startswith(_CHANNELS) else -1
        if via < DIRECTION:
            read_message(self.contents, process, message)
            return
        tail = message[via - DIRECTION :]
        there = process.channels.get(tail)
        if there is None:
            process.channel(tail, message)
        else:
            there.count += 1

    def _process(self, head: str) -> Process:
        process = self.heads.get(head)
        if process is None:
            process = self._of(origin(head))
            if len(self.heads) >= _MOST_HEADS:
                self.heads.clear()
            self.heads[head] = process
        return process

    def _of(self, place: Origin) -> Process:
        key = (place.host, place.pid)
        process = self.processes.get(key)
        if process is None:
            process = Process(*key)
            if len(self.processes) < _MOST_PROCESSES:
                self.processes[key] = process
            else:
                self.contents.left_out += 1
        return process


def _head(line: str, at: int) -> str:
    """Return the text before a message without the varying time: its last two words, unless a row may be attached to them."""
    device = line.rfind(" ", 0, at - 1) if at else -1
    start = line.rfind(" ", 0, device) + 1 if device >= 0 else 0
    return line[start:at] if line[start] > "9" else line[:at]


def parse_nccl_log(lines: Iterable[str]) -> NcclLog:
    """Read a log once. Lines that are not NCCL's are skipped, except for errors of its callers; a log without any has lines 0."""
    reading = _Reading()
    heads = reading.heads
    known = 0
    for line in lines:
        # Nearly all lines of a long log repeat earlier channels, except for their numbers.
        at = line.find(_CHANNEL)
        via = line.find(_VIA, at) if at >= 0 else -1
        process = heads.get(_head(line, at)) if via >= 0 else None
        there = process.channels.get(line[via - DIRECTION :]) if process is not None else None
        if there is None:
            reading.line(line)
        else:
            there.count += 1
            known += 1
    reading.lines += known
    return _result(reading)


def _result(reading: _Reading) -> NcclLog:
    contents = reading.contents
    processes = list(reading.processes.values())
    for process in processes:
        process.read()
    return NcclLog(
        lines=reading.lines,
        versions=tuple(contents.versions),
        ranks=tuple(
            sorted(contents.ranks.values(), key=lambda rank: (rank.nranks, rank.comm_id or "", rank.rank, rank.host or "", rank.pid or 0))
        ),
        nnodes=contents.nnodes,
        networks=tuple(dict.fromkeys(_networks(processes))),
        networks_in_use=dict(sorted(contents.in_use.items())),
        plugins=tuple(contents.plugins),
        channels=tuple(_channels(processes)),
        gpu_direct=tuple(GpuDirect(*key, count) for key, count in contents.gpu_direct.items()),
        dmabuf=tuple(sorted(contents.dmabuf)),
        nvls=contents.nvls,
        bootstrap=tuple(contents.bootstrap),
        environment=tuple(EnvironmentValue(*key, tuple(sorted(hosts))) for key, hosts in sorted(contents.environment.items())),
        warnings=reading.warnings.to_lines(),
        errors=contents.errors.to_lines(),
        left_out=contents.left_out + reading.warnings.left_out + contents.errors.left_out + sum(process.torn for process in processes),
    )


def _networks(processes: Iterable[Process]) -> Iterator[Network]:
    for process in processes:
        for name, adapters in process.adapters.items():
            yield Network(process.host, name, tuple(adapters[index] for index in sorted(adapters)), process.oob.get(name))


def _channels(processes: Sequence[Process]) -> list[Channel]:
    """Return the channels of each host together: many processes of a host use the same adapter."""
    of_hosts: dict[str | None, dict[str, dict[int, Adapter]]] = {}
    for process in processes:
        of_hosts.setdefault(process.host, {}).update(process.adapters)
    found: dict[Channel, Channel] = {}
    for process in processes:
        for channel in process.named_channels(of_hosts[process.host]):
            key = replace(channel, count=0, example="")
            there = found.get(key)
            found[key] = channel if there is None else replace(there, count=there.count + channel.count)
    return sorted(found.values(), key=_order)


def _order(channel: Channel) -> tuple[str, str, str, int, str, str, bool, bool]:
    device = -1 if channel.device is None else channel.device
    return (
        channel.host or "",
        channel.transport,
        channel.kind,
        device,
        channel.direction or "",
        channel.adapter or "",
        channel.proxied,
        bool(channel.gdr),
    )
