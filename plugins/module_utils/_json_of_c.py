# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON as C programs print it: printf has words for numbers that JSON has none for."""

from __future__ import annotations

import re

_C_NOT_A_NUMBER = re.compile(r'(":\s*)-?(nan|inf)\b')
_PYTHON = {"nan": "NaN", "inf": "Infinity"}


def words_of_json(text: str) -> str:
    """The text with nan and inf, where a value should be, as Python's reader knows them: NaN and Infinity."""
    return _C_NOT_A_NUMBER.sub(lambda match: match[1] + _PYTHON[match[2]], text)
