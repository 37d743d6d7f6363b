# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""networkx, which a control node may lack: only a fabric with a graph needs it, and is told so then."""

from __future__ import annotations

import sys
from typing import NoReturn

from ansible.errors import AnsibleError

__all__ = ["nx"]


class Missing:
    """In the place of networkx: whoever uses it says what to install."""

    def __init__(self, why: ImportError) -> None:
        self._why = why

    def __getattr__(self, name: str) -> NoReturn:
        """Raises AnsibleError, whatever is asked for."""
        what = f"The fabric stage needs networkx on the control node. Run `{sys.executable} -m pip install networkx`."
        raise AnsibleError(what) from self._why


try:
    import networkx as nx
except ImportError as error:
    nx = Missing(error)  # type: ignore[assignment]
