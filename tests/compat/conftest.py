# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""These tests read captures of real machines that lie beside the clone. A clone alone has none: then it has none of these tests either."""

from __future__ import annotations

from pathlib import Path

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"

collect_ignore_glob = [] if CAPTURES.is_dir() else ["test_*.py"]


def pytest_report_header() -> str:
    return f"captures of real machines: {CAPTURES if CAPTURES.is_dir() else f'not at {CAPTURES}, so tests/compat is not run'}"
