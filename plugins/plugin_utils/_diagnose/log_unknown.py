# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recognizes lines with an error in the log of any program, whose text is in no table."""

from __future__ import annotations

import re

#: The marks of an error in a line of any other program. The quick ones are part of every such line.
_QUICK_MARKS = (
    "rror",
    "RROR",
    "FATAL",
    "CRITICAL",
    "ail",
    "nable",
    "ouldn't",
    "ould not",
    "ception",
    "bort",
    "imed out",
    "imeout",
    "libibverbs:",
    "librdmacm:",
    "AILED",
)
_OTHER = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL)\b|(?:^|[\s:>\]])(?:\w+\.){0,8}\w{0,60}(?:Error|Exception): |(?:^|[\s:>])(?:fatal )?[Ee]rror: "
    r"|(?:^|[\s:>])(?:Couldn't|Could not|Failed to|Unable to) |cannot open shared object"
    r"|libibverbs: (?:Warning|Fatal)|librdmacm: |^[EF][0-9]{4} [0-9:]{8}\.[0-9]+\s|\[FAILED\]|NVRM: .{0,200}(?:[Ff]ail|[Ee]rror"
    r"|[Tt]imed? ?out)"
    r"|\b(?:ibv_|rdma_|mlx5dv_|fi_|uc[pst]_|nccl|nvshmem|cuda|cu[A-Z]|hip|MPI_)\w{2,60}\b.{0,120}(?:[Ff]ail|[Ee]rror\b|timed out)"
    r"|[Tt]imed out (?:waiting|connecting|after)|\btimeout, "
    r"|\b(?:mlx[45]_\w+|infiniband|bnxt_\w+|irdma|efa|hfi1|pcieport|nvidia\S*) .{0,200}(?:[Ff]ail|[Ee]rror|[Aa]bort|time(?:d )?out)"
)
#: The level, time, thread and place of glog and absl; the prefix of a launcher may come before them.
_GLOG = re.compile(r"(?:^|[\s:\]])[EF][0-9]{4} [0-9:]{8}\.[0-9]+ +[0-9]+ \S+:[0-9]+\] ")
_LONGEST_PREFIX = 200
#: The marks of a level at which programs log failures that they expect.
_EXPECTED = re.compile(r"\b(?:DEBUG|TRACE|DIAG)\b|UCX +INFO|<(?:info|debug)>")


def has_error(line: str) -> bool:
    """Whether a line of any program reports an error that the program does not expect."""
    if "] " in line and _GLOG.search(line, 0, _LONGEST_PREFIX):
        return True
    return any(part in line for part in _QUICK_MARKS) and bool(_OTHER.search(line)) and not _EXPECTED.search(line)
