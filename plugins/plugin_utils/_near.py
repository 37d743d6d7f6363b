# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nearest valid name to one that is not valid."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: How much of a value a message shows, in characters.
SHOWN = 80
#: How many names it shows.
NAMES = 40


def hint(name: object, known: Iterable[str], kind: str) -> str:
    """ "did you mean 'leaf3'?", or what there is where nothing is near. kind: what they are, in the plural."""
    known = list(known)
    near = difflib.get_close_matches(str(name)[:SHOWN], known, n=1)
    more = f" and {len(known) - NAMES} more" if len(known) > NAMES else ""
    return f"did you mean '{near[0]}'?" if near else f"the {kind} are {', '.join(known[:NAMES])}{more}"
