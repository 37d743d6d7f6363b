# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The classes of rich, which may be missing on a control node. Only a screen needs it, and fails with the remedy then."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.missing import Missing

__all__ = ["Console", "Group", "Live", "Table", "Text"]

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text
except ImportError as error:
    Console = Group = Live = Table = Text = Missing("rich", "The live view", error)  # type: ignore[assignment,misc]
