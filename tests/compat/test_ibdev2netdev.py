# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ibdev2netdev of real machines, read where it lies; skipped where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._ibdev2netdev import NetdevOfPort, parse_ibdev2netdev

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "ibdev2netdev"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")

WHOLE = {
    "ml-ib2netdev-cx5": [
        NetdevOfPort("mlx5_0", 1, "ens261f0", True),
        NetdevOfPort("mlx5_1", 1, "ens261f1", False),
        NetdevOfPort("mlx5_0", 1, "ens801f0", True),
        NetdevOfPort("mlx5_1", 1, "ens801f1", True),
    ]
}


def test_every_capture_is_expected() -> None:
    assert {path.stem for path in CAPTURES.iterdir()} == WHOLE.keys()


@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str) -> None:
    assert parse_ibdev2netdev((CAPTURES / f"{name}.txt").read_text(encoding="utf-8")) == WHOLE[name]
