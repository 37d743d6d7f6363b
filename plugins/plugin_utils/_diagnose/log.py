# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the log of a job: its error lines by kind, with the ranks and hosts that wrote them, and the one that came first.

The log is read line by line, and the kept data is bounded for any length. The texts are those of the room signatures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import whole_sentences
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import INFO, WARN, origin
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.meanings import MEANINGS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log_context import Context
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log_line import LONGEST_LINE, LocatedLine, fields, plain, read
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log_unknown import has_error
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import ERROR, REMARK, SYMPTOM, Signature
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.every import find_signature

#: The maximum number of stored hosts and ranks for each kind of line, and of values for each field.
MOST_PLACES = 4096
MOST_VALUES = 16
#: The field that has a value of each rank.
_OF_RANKS = "reached"
#: The maximum number of separate kinds of unknown warnings; the rest counts as one kind.
MOST_UNKNOWN = 64
UNKNOWN_WARNING, UNKNOWN_LINE = "nccl.unknown", "log.unknown"
_SOURCE = "NCCL"
#: The marks before a warning or error of NCCL in a line: NCCL's own level, and PyTorch's exceptions that quote NCCL.
_UNKNOWN_MARKS = (WARN, "DistBackendError: ", "NCCL error: ")
#: The words before a warning of NCCL in a line of XLA, and of PyTorch at the end of the line before it.
_QUOTES, _LAST_ERROR = "log entry (may be unrelated)", "Last error:"
#: The parts that vary between warnings of one kind: addresses, numbers, and names of files in shared memory.
_VARYING = re.compile(r"nccl-\w{4,}|0x[0-9a-fA-F]+|[0-9a-fA-F]*(?::[0-9a-fA-F]*){2,}|[0-9]+(?:\.[0-9]+)*")
#: The lines below a text of Open MPI's help that name its host, and how many lines of the help are read.
_HELP_HOST = re.compile(r"(?:Local host|Hostname|Host): +(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]{0,253})")
_HELP_LINES = 24
#: NCCL searches for each version of a plugin, the newest first. Only a plugin of which no version is loaded is too old.
_NO_PLUGIN, _PLUGIN = "Failed to find ncclNetPlugin_v", re.compile(r"(?:Loaded|Successfully loaded external) net(?:work)? plugin")
#: Remarks that explain no failure if NCCL went on with its sockets.
_WITHOUT_RDMA = ("ib.no_device", "ib.library")
#: The maximum number of lines of a kind whose fields are read.
_MOST_READ = 1000
#: The lines on channels in NCCL's log, which are not failures. Nearly all lines of a large job's log are of this kind.
_CHANNEL = "NCCL INFO Channel "


@dataclass(frozen=True)
class Occurrence:
    """All lines of one kind; unknown warnings, which share a name, are split by text.

    name: of MEANINGS; line: number of the first one, from 1; first: its text and origin; hosts: their own names in the order of the
    log, including hosts of ranks that another line locates; fields: name → the first values.
    """

    name: str
    count: int
    line: int
    source: str
    first: LocatedLine
    hosts: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return MEANINGS[self.name].kind

    @property
    def says(self) -> str:
        return MEANINGS[self.name].says


@dataclass(frozen=True)
class JobLog:
    """A job's log. lines: the number of lines; cut: whether the last one is incomplete; occurrences: in the order of their first lines.

    cause: the name of the first occurrence that is not a consequence of others, None in a log without failures.
    """

    lines: int
    cut: bool
    occurrences: tuple[Occurrence, ...]
    cause: str | None
    context: Context


class _Kept:
    def __init__(self, signature: Signature, line: int, located: LocatedLine) -> None:
        self.signature, self.line, self.first, self.count = signature, line, located, 0
        self.hosts: dict[str, None] = {}
        self.ranks: dict[int, None] = {}
        self.fields: dict[str, dict[str, None]] = {}

    def add(self, located: LocatedLine, values: Iterable[tuple[str, str]]) -> None:
        self.count += 1
        place = {"host": located.host, "rank": None if located.rank is None else str(located.rank)}
        for name, value in values:
            if name in place:
                place[name] = value
                continue
            there = self.fields.setdefault(name, {})
            if len(there) < (MOST_PLACES if name == _OF_RANKS else MOST_VALUES):
                there[value.strip()] = None
        if place["host"] is not None and len(self.hosts) < MOST_PLACES:
            self.hosts[place["host"]] = None
        if place["rank"] is not None and len(self.ranks) < MOST_PLACES:
            self.ranks[int(place["rank"])] = None


class _Reader:
    def __init__(self) -> None:
        self.kept: dict[str, _Kept] = {}
        self.unknown: dict[str, _Kept] = {}
        self.others: dict[str, _Kept] = {}
        self.context = Context()
        self.lines = 0
        self.last = "\n"
        self.no_plugin: tuple[int, LocatedLine] | None = None
        self.has_plugin = False
        self._help: tuple[_Kept, int] | None = None
        self._quoted = 0

    def line(self, line: str) -> None:
        self.lines += 1
        self.last = line
        if _CHANNEL in line:
            return
        line = plain(line)
        info = INFO in line
        line = line[:LONGEST_LINE]
        if info and " Using network " in line:
            self.context.network(self.lines, line)
        if _QUOTES in line and not info:
            self._quote(line.partition(_QUOTES)[2].lstrip(" '"))
        found = find_signature(line, info=info)
        if found is None and 0 < self._quoted == self.lines - 1:
            found = find_signature(f"{WARN}{line}", info=False)
        if line.rstrip().endswith(_LAST_ERROR):
            self._quoted = self.lines
        if found is None:
            self.context.line(self.lines, line, info=info)
            if info:
                self._plugin(line)
            elif not self._of_help(line):
                self._unknown(line)
        else:
            self._add(line, *found)

    def _quote(self, text: str) -> None:
        """Read a warning of NCCL that another program quotes within its own line."""
        found = find_signature(f"{WARN}{text}", info=False)
        if found is not None:
            self._add(text, *found)

    def _plugin(self, line: str) -> None:
        """Read whether NCCL finds a version of a network plugin that it can use."""
        if "plugin" not in line and "Plugin" not in line:
            return
        if _NO_PLUGIN in line:
            self.no_plugin = self.no_plugin or (self.lines, self.context.placed(read(line)))
        elif _PLUGIN.search(line):
            self.has_plugin = True

    def _of_help(self, line: str) -> bool:
        """Whether a line belongs to a help text of Open MPI; its host is that of the error."""
        if self._help is None:
            return False
        kept, until = self._help
        if self.lines > until or "-----" in line:
            self._help = None
            return False
        found = _HELP_HOST.search(line) if "ost" in line else None
        if found is not None and len(kept.hosts) < MOST_PLACES:
            kept.hosts[found["host"]] = None
        return found is not None

    def _unknown(self, line: str) -> None:
        mark = next((mark for mark in _UNKNOWN_MARKS if mark in line), None)
        if mark is not None:
            self._add_unknown(line, mark)
        elif has_error(line):
            located = read(line)
            self._keep(self.others, self._key(self.others, located.text), line, Signature(UNKNOWN_LINE, "", "an unknown program"), {})

    @staticmethod
    def _key(where: Mapping[str, _Kept], text: str) -> str:
        key = _VARYING.sub("#", text.strip())
        return "" if key not in where and len(where) >= MOST_UNKNOWN else key

    def _add_unknown(self, line: str, mark: str) -> None:
        """Keep a warning without signature, by its text without the varying parts. mark: of _UNKNOWN_MARKS, before the text."""
        head, _mark, text = line.partition(mark)
        key = self._key(self.unknown, text)
        place = origin(head).file
        self._keep(self.unknown, key, line, Signature(UNKNOWN_WARNING, mark, f"{_SOURCE} {place}" if place else _SOURCE), {})

    def _add(self, line: str, signature: Signature, values: Mapping[str, str]) -> None:
        if signature.name == "memory.registration" and self.context.gpu_buffer:
            signature = Signature("memory.gpu", signature.needle, signature.source)
        self._keep(self.kept, signature.name, line, signature, values)
        if "help-" in signature.source or signature.source.startswith("Open MPI"):
            self._help = self.kept[signature.name], self.lines + _HELP_LINES

    def _keep(self, where: dict[str, _Kept], key: str, line: str, signature: Signature, values: Mapping[str, str]) -> None:
        located = self.context.placed(read(line))
        kept = where.get(key)
        if kept is None:
            kept = where[key] = _Kept(signature, self.lines, located)
        more = fields(line) if kept.count < _MOST_READ else ()
        kept.add(located, [*values.items(), *more])


def read_job_log(lines: Iterable[str]) -> JobLog:
    """The content of any log. lines: with their line ends; a last line without one means that the log is cut off."""
    reader = _Reader()
    for line in whole_sentences(lines):
        reader.line(line)
    found = [_occurrence(kept, reader.context) for kept in (*reader.kept.values(), *reader.unknown.values(), *reader.others.values())]
    occurrences = tuple(sorted([*found, *_made(reader, {each.name for each in found})], key=lambda each: each.line))
    cut = reader.lines > 0 and not reader.last.endswith(("\n", "\r"))
    return JobLog(reader.lines, cut, occurrences, first_cause(occurrences), reader.context)


def _occurrence(kept: _Kept, context: Context) -> Occurrence:
    hosts = dict(kept.hosts)
    for rank in kept.ranks:
        place = context.host_of(rank)
        if place is not None and len(hosts) < MOST_PLACES:
            hosts[place] = None
    values = {name: tuple(there) for name, there in kept.fields.items()}
    source = kept.signature.source
    return Occurrence(kept.signature.name, kept.count, kept.line, source, kept.first, tuple(hosts), tuple(sorted(kept.ranks)), values)


def _made(reader: _Reader, there: set[str]) -> list[Occurrence]:
    """The occurrences that follow from several lines."""
    context, made = reader.context, []
    if len(context.versions) > 1 and "version.differs" not in there:
        hosts = tuple(dict.fromkeys(host for hosts in context.versions.values() for host in hosts))
        located = LocatedLine("NCCL version " + ", ".join(sorted(context.versions)))
        made.append(Occurrence("version.differs", len(context.versions), context.second_version_line, "NCCL", located, hosts))
    if context.singles:
        text = f"{len(context.singles)} processes at once, each a separate job"
        hosts = tuple(dict.fromkeys(host for host, _pid in context.singles if host is not None))
        made.append(Occurrence("mpi.absent", len(context.singles), context.single_line, "NCCL, nccl-tests", LocatedLine(text), hosts))
    networks = context.networks()
    if networks:
        text = "; ".join(f"{name} on {host}" for name, hosts in networks.items() for host in hosts[:1])
        located = LocatedLine(f"Using network {text}")
        hosts = tuple(host for hosts in networks.values() for host in hosts)
        made.append(Occurrence("net.differs", len(networks), context.network_line, "NCCL src/init.cc", located, hosts))
    if reader.no_plugin is not None and not reader.has_plugin and "net.plugin_old" not in there:
        line, located = reader.no_plugin
        made.append(Occurrence("net.plugin_old", 1, line, "NCCL src/plugin/net", located, (located.host,) if located.host else ()))
    return made


def first_cause(occurrences: Iterable[Occurrence]) -> str | None:
    """The kind of line that is probably the cause: the first error, else the first symptom, or an earlier line that explains it.

    If all lines have a time, it defines their order, because a log may contain the logs of the ranks one after another.
    """
    there = list(occurrences)
    failed = [each for each in there if each.kind == ERROR] or [each for each in there if each.kind == SYMPTOM]
    if not failed:
        return None
    first = _earliest(failed)
    idle = _WITHOUT_RDMA if any(each.name == "net.socket" for each in there) else ()
    remarks = [each for each in there if each.kind == REMARK and each.name not in idle]
    before = [each for each in remarks if first.name in MEANINGS[each.name].explains and each.line < first.line]
    return (before[0] if before else first).name


def _earliest(occurrences: list[Occurrence]) -> Occurrence:
    if all(each.first.time is not None for each in occurrences):
        return min(occurrences, key=lambda each: (each.first.time or "", each.line))
    return min(occurrences, key=lambda each: each.line)
