# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""networkx, which may be missing on a control node. Only a fabric with a graph needs it, and fails with the remedy then."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.missing import Missing

__all__ = ["nx"]

try:
    import networkx as nx
except ImportError as error:
    nx = Missing("networkx", "The fabric stage", error)  # type: ignore[assignment]
