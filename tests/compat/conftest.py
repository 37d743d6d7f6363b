# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""These tests read captures of real machines that lie beside the clone. A clone alone has none: then it has none of these tests either.

test_mesh_plugin.py builds the sources of a network plugin. They are in the folder of RDMA_MESH_PLUGIN, or beside the captures.
"""

from __future__ import annotations

import os
from pathlib import Path

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"

MESH_PLUGIN = Path(os.environ.get("RDMA_MESH_PLUGIN") or CAPTURES.parent / "nccl-mesh-plugin")

collect_ignore_glob = (
    [] if CAPTURES.is_dir() else [path.name for path in Path(__file__).parent.glob("test_*.py") if path.name != "test_mesh_plugin.py"]
)


def pytest_report_header() -> list[str]:
    plugin = MESH_PLUGIN if MESH_PLUGIN.is_dir() else f"not at {MESH_PLUGIN} (RDMA_MESH_PLUGIN), so the plugin is not built"
    return [
        f"captures of real machines: {CAPTURES if CAPTURES.is_dir() else f'not at {CAPTURES}, so tests/compat is not run'}",
        f"sources of nccl-mesh-plugin: {plugin}",
    ]
