# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parses a line of a job's log: its origin and text, without the prefixes of launchers.

A line may start with the tag of Open MPI ("[1,3]<stdout>:", also with a time), of `srun --label` ("12: "), of torchrun ("[rank3]:") and
the prefixes of NCCL, UCX, Open MPI, nccl-tests and the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import INFO, WARN, origin

#: The maximum number of characters that are read from a line.
LONGEST_LINE = 4096
_LONGEST_TEXT = 300
#: The lines of NCCL 2.0 to 2.2, without its name: "node1:12:34 [0] misc/ibvwrap.cu:60 WARN Failed …", "node1:12:34 [0] INFO NET : …".
_BARE = re.compile(r"(\S:[0-9]{1,10}:[0-9]{1,10} \[[0-9]{1,5}\] (?:[\w./-]{1,100}:[0-9]{1,6} )?)(?=(?:WARN|INFO) )")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
#: Of Open MPI: orterun's job and rank; prterun puts its own name before them.
_TAG = re.compile(r"\[(?:[^\]\s]{1,200}@)?[0-9]{1,9},([0-9]{1,9})\]<std(?:out|err|diag)>:")
_LABEL = re.compile(r"^\s{0,9}([0-9]{1,7}): ")
_TORCH_RANK = re.compile(r"\[[Rr]ank ?([0-9]{1,7})\]")
_HOSTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[[0-9]{1,12}\.[0-9]{1,9}\] \[([A-Za-z0-9][A-Za-z0-9_.-]{0,253}):([0-9]{1,10}):[0-9]{1,5}\]",  # UCX
        r"^\s{0,3}(?:\.\. )?([A-Za-z0-9][A-Za-z0-9_.-]{0,253})(?: pid ([0-9]{1,10}))?: Test (?:NCCL |CUDA |timeout )?",  # nccl-tests
        r"\s([A-Za-z0-9][A-Za-z0-9_.-]{0,253}) kernel: ()",  # syslog
        r"(?:^|\s)\[([A-Za-z][A-Za-z0-9_.-]{0,253}):([0-9]{1,10})\]\s",  # Open MPI
        # pdsh and clush; not the names of processes, devices and interfaces
        r"^(?!(?:rank|gpu|cuda|mlx|bnxt|eth|ens|enp|ib|step|epoch|iter|worker)[_-]?\d)([a-z][a-z0-9.-]{0,60}\d[a-z0-9.-]{0,60}):() ",
    )
)
#: Of NCCL's warnings, and of PyTorch's own log ("[E1218 20:27:21.426415540 …"), which has no year, and no zero before a month: "[E810 …".
_TIMES = (
    re.compile(r"\[[0-9]{4}-([0-9]{2})-([0-9]{2}) ([0-9:]{8})\] "),
    re.compile(r"(?:^|\[)[EWF]([0-9]{1,2})([0-9]{2}) ([0-9:]{8}\.[0-9]{1,9}) "),
)
_ADDRESS = r"(?P<{}>[0-9a-fA-F:.]{{3,45}})"
#: Patterns of fields that many kinds of lines contain.
_FIELDS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:\bon dev |\bhca |\bopen device |Local (?:device|adapter): +)(?P<device>[A-Za-z]\w{0,63})(?::(?P<port>[0-9]{1,3}))?",
        r"NET/IB ?: (?P<device>[a-z]\w{0,63}):(?P<port>[0-9]{1,3}) ",
        r" on (?P<device>[a-z]\w{0,63}):(?P<port>[0-9]{1,3})/(?:RoCE|IB|InfiniBand)",  # UCX
        r"\binfiniband (?P<device>[a-z]\w{0,63}): ",  # the kernel
        r"local GID index (?P<gid_index>[0-9]{1,5})",
        r"local ?G[iI][dD] " + _ADDRESS.format("gid"),
        r"remote ?G[iI][dD]s? ?" + _ADDRESS.format("remote_gid"),
        r"vendor[ _]err(?:or)?[ =](?P<vendor_error>[0-9]{1,5})",
        r"\[PG (?:ID [0-9]{1,7} PG GUID )?(?P<group>[^\s(\]]{1,100})[^\]]{0,200} Rank [0-9]{1,7}\]",  # PyTorch since 2.3
        r"(?:peer|connect to|from|send to) (?P<peer>[0-9A-Za-z:._-]{2,253})<[0-9]{1,5}>",
        r"connect to \[?\(?(?P<peer>[0-9A-Za-z:._-]{2,253}?)(?:, |\]:|:)[0-9]{2,5}\b",  # TCPStore
    )
)


@dataclass(frozen=True)
class LocatedLine:
    """A line's text and origin. text: without prefixes; time: "11-20 09:29:41", of the host's clock. None means not known."""

    text: str
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    rank: int | None = None
    time: str | None = None


def plain(line: str) -> str:
    """A line without colors, other sequences of a terminal, and the carriage return of a Windows line end, with NCCL's name."""
    line = _ESCAPES.sub("", line) if "\x1b" in line else line
    if (" WARN " in line or " INFO " in line) and "NCCL" not in line:
        line = _BARE.sub(r"\1NCCL ", line, count=1)
    return f"{line[:-2]}\n" if line.endswith("\r\n") else line


def read(line: str) -> LocatedLine:
    """The parts of a line of at most LONGEST_LINE characters without escapes; never raises: a job's log may contain anything."""
    rank, rest = _launcher(line)
    for word in (INFO, WARN):
        head, found, text = rest.partition(word)
        if found:
            place = origin(head)
            return LocatedLine(_cut(text), place.host, place.pid, place.device, rank, _time(head))
    host, pid = _host(rest)
    return LocatedLine(_cut(rest), host, pid, None, rank, _time(rest))


def _launcher(line: str) -> tuple[int | None, str]:
    """The rank in a launcher's prefix, and the rest of the line."""
    tag = _TAG.search(line[:400])
    if tag is not None:
        return int(tag[1]), line[tag.end() :].lstrip()
    torch = _TORCH_RANK.search(line[:400])
    label = _LABEL.match(line)
    rest = line[label.end() :] if label is not None else line
    rank = torch or label
    return int(rank[1]) if rank is not None else None, rest


def _host(rest: str) -> tuple[str | None, int | None]:
    for pattern in _HOSTS:
        found = pattern.search(rest[:600])
        if found is not None:
            return found[1], int(found[2]) if found[2] else None
    return None, None


def _time(text: str) -> str | None:
    for pattern in _TIMES:
        found = pattern.search(text[:400])
        if found is not None:
            return f"{found[1]:0>2}-{found[2]} {found[3]}"
    return None


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 2]} …"


def fields(text: str) -> Iterator[tuple[str, str]]:
    """The fields of a line: device, port, gid, gid_index, remote_gid, vendor_error, group, peer, each with its value."""
    for pattern in _FIELDS:
        found = pattern.search(text)
        if found is not None:
            yield from ((name, value) for name, value in found.groupdict().items() if value is not None)
