# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""networkx, which may be missing on a control node. Only a fabric with a graph needs it, and fails with the remedy then."""

from __future__ import annotations

import sys
from typing import NoReturn

from ansible.errors import AnsibleError

__all__ = ["nx"]


class Missing:
    """Replaces networkx if it is missing, and fails with the remedy on first use."""

    def __init__(self, why: ImportError) -> None:
        self._why = why

    def __getattr__(self, name: str) -> NoReturn:
        """Raise AnsibleError for every attribute."""
        what = f"The fabric stage needs networkx on the control node. Run `{sys.executable} -m pip install networkx`."
        raise AnsibleError(what) from self._why


try:
    import networkx as nx
except ImportError as error:
    nx = Missing(error)  # type: ignore[assignment]
