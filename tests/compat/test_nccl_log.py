# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pieces of NCCL's logs of real clusters and of its manual, read where they lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.log import parse_nccl_log
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import Adapter, Channel, LogLine, NcclLog, NcclRank, Network

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
CAPTURES = FIXTURES / "nccl-log"
NOTHING = NcclLog(0, (), (), None, (), {}, (), (), (), (), None, (), (), (), (), 0)
NODE1 = "node-01"
EXAMPLES = ("Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0", "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct")
EXPECTED = {
    "aws-p5-fsdp-ofi": replace(NOTHING, lines=4, versions=("2.26.2+cuda12.2",), plugins=("aws-ofi-nccl 1.13.2-aws",)),
    "meshplugin-modify-qp-110-unroutable-gid": replace(
        NOTHING,
        errors=(
            LogLine("Call to ibv_modify_qp failed with 110 Connection timed out", None, None, 1, ()),
            LogLine("local GID ::ffff:192.168.100.1, remote GID ::ffff:192.168.101.3", None, None, 1, ()),
        ),
    ),
    "nccl-docs-bootstrap-timings": replace(NOTHING, lines=3),
    "nccl-docs-graph-ring": replace(NOTHING, lines=4),
    "nccl-docs-init": replace(
        NOTHING,
        lines=8,
        ranks=(NcclRank(NODE1, 1895902, 0, 2, 0, 0, None, None, False),),
        networks_in_use={"IB": 1},
        dmabuf=(NODE1,),
    ),
    "nccl-docs-net-ib-init": replace(NOTHING, lines=6, networks_in_use={"IB": 1}, dmabuf=(NODE1,)),
    "nccl-docs-net-socket": replace(
        NOTHING, lines=5, channels=(Channel(NODE1, "NET", "Socket", "send", 0, None, False, False, 2, EXAMPLES[0]),)
    ),
    "nccl-docs-nvls": replace(NOTHING, lines=3, nvls=True),
    "nccl-docs-shm": replace(NOTHING, lines=4, channels=(Channel(NODE1, "SHM", "direct", None, None, None, False, None, 2, EXAMPLES[1]),)),
    "nccl-docs-tuning": replace(NOTHING, lines=3),
    "stas-net-fastsocket": replace(
        NOTHING,
        lines=1,
        networks=(
            Network(
                None,
                "FastSocket",
                tuple(Adapter(index, f"ibs{108 + index}", address=f"10.0.19.{12 + index}") for index in range(8)),
                None,
            ),
        ),
    ),
}


def test_there_is_no_other_capture() -> None:
    assert {path.stem for path in CAPTURES.glob("*.txt")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_pieces_of_logs(name: str) -> None:
    with (CAPTURES / f"{name}.txt").open(encoding="utf-8") as lines:
        assert parse_nccl_log(lines) == EXPECTED[name]


@pytest.mark.parametrize(("name", "lines"), [("sb-a100-allgather", 1), ("sb-a100-alltoall", 0), ("coreweave-h100-64-sharp", 0)], ids=str)
def test_outputs_of_nccl_tests_with_hardly_any_log(name: str, lines: int) -> None:
    with (FIXTURES / f"nccl-tests/{name}.txt").open(encoding="utf-8") as text:
        assert parse_nccl_log(text) == replace(NOTHING, lines=lines)
