# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The output of many ranks through Open MPI's mpirun, put together again line by line.

mpirun forwards what it reads, not lines: a line of one rank ends in the middle of another's. With --tag-output each piece says whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: Open MPI 4: "[1,3]<stdout>:"; with the name of the launcher before an @, as newer ones have it, a space belongs to the tag.
_STREAM = r"\]<std(?:out|err|diag)>:"
_TAG = re.compile(rf"\[(?:[0-9]{{1,10}},([0-9]{{1,9}}){_STREAM}|[\w.-]{{1,200}}@[0-9]{{1,10}},([0-9]{{1,9}}){_STREAM} )")
#: A rank that never ends its line is not waited for.
_LONGEST = 65_536


def untangled(lines: Iterable[str]) -> Iterator[str]:
    """Whole lines without their tags; what has no tag is passed on as it is. A piece that has no end comes last, without one."""
    pending: dict[str, str] = {}
    for line in lines:
        pieces = _TAG.split(line) if ">:" in line else [line]
        if pieces[0]:
            yield pieces[0]
        for rank, named_rank, piece in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
            owner = rank or named_rank
            whole = pending.pop(owner, "") + piece
            if whole.endswith("\n") or len(whole) > _LONGEST:
                yield whole
            elif whole:
                pending[owner] = whole
    yield from pending.values()
