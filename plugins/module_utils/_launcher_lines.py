# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of many ranks through Open MPI's mpirun, put together again line by line.

mpirun forwards what it reads, not lines: a line of one rank ends in the middle of another's. With --tag-output each piece says whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: "[1,3]<stdout>:", with the name of the launcher before an @ in some versions. Open MPI 5 puts a space behind it, and WILDCARD for itself.
_TAG = re.compile(r"\[(?:[\w.-]{1,200}@)?[0-9]{1,10},([0-9]{1,9}|WILDCARD)\]<std(?:out|err|diag)>:")
#: A sentence that Open MPI 5 breaks off in its box: its end stands on the next line.
_BROKEN_OFF = re.compile(r"(?:mpirun|mpiexec|prterun) noticed that process rank [^\n]{1,400} exited on\s*$")
#: A rank that never ends its line is not waited for.
_LONGEST = 65_536


def untangled(lines: Iterable[str]) -> Iterator[str]:
    """Whole lines without their tags; what has no tag is passed on as it is. A piece that has no end comes last, without one.

    The first tag says whether a space belongs to it: neither nccl-tests nor NCCL begins with one.
    """
    pending: dict[str, str] = {}
    spaced: bool | None = None
    for line in lines:
        before, *pieces = _TAG.split(line) if ">:" in line else [line]
        if before:
            yield before
        for rank, tagged in zip(pieces[::2], pieces[1::2]):
            if spaced is None and tagged != "\n":
                spaced = tagged.startswith(" ")
            whole = pending.pop(rank, "") + (tagged.removeprefix(" ") if spaced else tagged)
            if whole.endswith("\n") or len(whole) > _LONGEST:
                yield whole
            elif whole:
                pending[rank] = whole
    yield from pending.values()


def whole_sentences(lines: Iterable[str]) -> Iterator[str]:
    """As many lines, but a sentence that Open MPI has broken off stands on its second one, and nothing on the first."""
    begun = ""
    for line in lines:
        if begun:
            yield "\n"
            yield f"{begun.rstrip()} {line}"
            begun = ""
        elif _BROKEN_OFF.match(line):
            begun = line
        else:
            yield line
    if begun:
        yield begun
