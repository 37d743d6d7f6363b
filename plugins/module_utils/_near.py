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


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name that is most like one; None if none is. cutoff: from 0, everything is like it, to 1, only itself."""
    near = difflib.get_close_matches(str(name)[:SHOWN], list(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def hint(name: object, known: Iterable[str], kind: str) -> str:
    """ "did you mean 'leaf3'?", or what there is where nothing is near. kind: what they are, in the plural."""
    known = list(known)
    near = nearest(name, known)
    more = f" and {len(known) - NAMES} more" if len(known) > NAMES else ""
    return f"did you mean '{near}'?" if near else f"the {kind} are {', '.join(known[:NAMES])}{more}"
