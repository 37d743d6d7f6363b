# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The content of NCCL's messages so far, and the lines of NCCL or its callers that report a fault."""

from __future__ import annotations

import re
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import Lines
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import NcclRank
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.process import Process

_VERSION = re.compile(r"NCCL version ([0-9][0-9A-Za-z.+_-]{1,40})")
#: Faults that NCCL reports at INFO; the names of calls are those that net_ib makes.
_FAULT = re.compile(
    r"\S+\.(?:cc|cu|h):[0-9]+ -> [1-9][0-9]*|NET/\S+ ?: No (?:device|IP interface|usable).*found|NET/\S+ ?: Unable to .+"
    r"|Failed to initialize NET plugin .+|Could not open XML .+|Call to \S+ failed .+|.*[Gg]ot completion .*status=.+"
    r"|.*unhandled \w+ error.*"
)
#: Messages of frameworks and NCCL's callers without NCCL's prefix.
_PLAIN_FAULT = re.compile(
    r"Call to (?:ibv|cuda)\S+ failed .+|local GID \S+, remote GID .+|unhandled (?:system|cuda) error.*"
    r"|nccl(?:System|Remote|Internal|UnhandledCuda)Error\b.*|Test NCCL failure .+"
    r"|Watchdog caught collective operation timeout.*|NCCL error in: .+"
)
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_MOST_KINDS = 2000


class LogContents:
    """The content of the messages so far."""

    def __init__(self) -> None:
        self.versions: dict[str, None] = {}
        self.ranks: dict[tuple[str | None, int | None, str, str | None], NcclRank] = {}
        self.nnodes: int | None = None
        self.in_use: dict[str, int] = {}
        self.plugins: dict[str, None] = {}
        self.gpu_direct: dict[tuple[str | None, bool, str, str | None, str | None], int] = {}
        self.dmabuf: dict[str, None] = {}
        self.nvls: bool | None = None
        self.bootstrap: dict[str, None] = {}
        self.environment: dict[tuple[str, str], dict[str, None]] = {}
        self.errors = Lines()
        self.left_out = 0

    def plain(self, line: str) -> None:
        """Read a line that is not NCCL's."""
        found = _PLAIN_FAULT.search(line)
        if found is not None:
            self.errors.add(found.group(), None)
        elif "NCCL version " in line:
            self.version(line)

    def version(self, line: str) -> None:
        found = _VERSION.search(line)
        if found is not None and len(self.versions) < _MOST_KINDS:
            self.versions[found[1]] = None

    def fault(self, process: Process, message: str) -> None:
        if _FAULT.match(message):
            self.errors.add(message, process.host)

    def room(self, kinds: dict[_Key, _Value], key: _Key, most: int = _MOST_KINDS) -> bool:
        """Return whether there is room for an item under a key; if not, it is counted."""
        there = key in kinds or len(kinds) < most
        self.left_out += not there
        return there
