# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""show_gids of real machines, read where it lies; skipped where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._show_gids import ShownGid, parse_show_gids

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "show_gids"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")


def capture(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


def bnxt(index: int, ipv4: str | None, version: str, netdev: str) -> ShownGid:
    gids = {
        None: "fe80:0000:0000:0000:020a:f7ff:fee3:6e32",
        "172.31.40.187": "0000:0000:0000:0000:0000:ffff:ac1f:28bb",
        "172.31.43.187": "0000:0000:0000:0000:0000:ffff:ac1f:2bbb",
        "172.31.45.187": "0000:0000:0000:0000:0000:ffff:ac1f:2dbb",
    }
    return ShownGid("bnxt_re0", 1, index, gids[ipv4], ipv4, version, netdev)


WHOLE = {
    "ml-bnxt-cxgb4-hfi1-mlx5": [
        bnxt(0, None, "v1", "bnxt_roce"),
        bnxt(1, None, "v2", "bnxt_roce"),
        bnxt(10, "172.31.43.187", "v1", "bnxt_roce.43"),
        bnxt(11, "172.31.43.187", "v2", "bnxt_roce.43"),
        bnxt(2, None, "v1", "bnxt_roce.45"),
        bnxt(3, None, "v2", "bnxt_roce.45"),
        bnxt(4, None, "v1", "bnxt_roce.43"),
        bnxt(5, None, "v2", "bnxt_roce.43"),
        bnxt(6, "172.31.40.187", "v1", "bnxt_roce"),
        bnxt(7, "172.31.40.187", "v2", "bnxt_roce"),
        bnxt(8, "172.31.45.187", "v1", "bnxt_roce.45"),
        bnxt(9, "172.31.45.187", "v2", "bnxt_roce.45"),
        ShownGid("bnxt_re1", 1, 0, "fe80:0000:0000:0000:020a:f7ff:fee3:6e33", None, "v1", "lom_2"),
        ShownGid("bnxt_re1", 1, 1, "fe80:0000:0000:0000:020a:f7ff:fee3:6e33", None, "v2", "lom_2"),
        ShownGid("cxgb4_0", 1, 0, "0007:433b:f5b0:0000:0000:0000:0000:0000", None, "v1", None),
        ShownGid("cxgb4_0", 2, 0, "0007:433b:f5b8:0000:0000:0000:0000:0000", None, "v1", None),
        ShownGid("hfi1_0", 1, 0, "fe80:0000:0000:0000:0011:7501:0109:6c60", None, "v1", None),
        ShownGid("hfi1_0", 1, 1, "fe80:0000:0000:0000:0006:6a00:0000:0005", None, "v1", None),
        ShownGid("mlx5_0", 1, 0, "fe80:0000:0000:0000:506b:4b03:00f3:8a38", None, "v1", None),
    ]
}


def test_every_capture_is_expected() -> None:
    assert {path.stem for path in CAPTURES.iterdir()} == WHOLE.keys()


@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str) -> None:
    assert parse_show_gids(capture(name)) == WHOLE[name]


def test_a_row_less_than_counted_is_noticed() -> None:
    lines = capture("ml-bnxt-cxgb4-hfi1-mlx5").splitlines(keepends=True)
    without = "".join(line for line in lines if not line.startswith("mlx5_0"))
    with pytest.raises(ParseError, match="18 rows of show_gids, but the last line says 'n_gids_found=19'"):
        parse_show_gids(without)
