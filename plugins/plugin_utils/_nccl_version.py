# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Since which version NCCL knows a thing."""

from __future__ import annotations

import re

Version = tuple[int, ...]
_NUMBERS = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}", re.ASCII)


def knows(version: str | None, since: Version) -> bool:
    """Whether an NCCL of this version ("2.20.5") knows what came with another; None is taken for a recent one.

    Of "2.30" it is assumed that it is the newest of them.
    """
    if version is None or not _NUMBERS.fullmatch(version):
        return True
    numbers = tuple(int(number) for number in version.split("."))
    return numbers >= since[: len(numbers)]
