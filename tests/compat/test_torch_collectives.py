# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our busbw of a size and a time is the one that nccl-tests printed on real GPUs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roles.collectives.files.torch_straggler import measures

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
ROW = re.compile(
    r"^ *(?P<bytes>\d+) +\d+ +float +(?:sum|none)?(?: +-1)? +(?P<usec>[\d.]+) +(?P<algbw>[\d.]+) +(?P<busbw>[\d.]+) ", re.MULTILINE
)


@pytest.mark.parametrize(
    ("file", "collective", "ranks"),
    [
        ("nccl-tests/sb-a100-allreduce.txt", "all_reduce", 8),
        ("nccl-tests/sb-a100-allgather.txt", "all_gather", 8),
        ("nccl-tests/sb-a100-alltoall.txt", "all_to_all", 8),
        ("h200/all_reduce_perf.txt", "all_reduce", 2),
        ("h200/all_gather_perf.txt", "all_gather", 2),
        ("h200/reduce_scatter_perf.txt", "reduce_scatter", 2),
        ("h200/alltoall_perf.txt", "all_to_all", 2),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(file: str, collective: str, ranks: int) -> None:
    text = (CAPTURES / file).read_text(encoding="utf-8")
    assert len(re.findall(r"^# +Rank", text, re.MULTILINE)) == ranks
    rows = [match for match in ROW.finditer(text) if float(match["busbw"]) > 1]
    assert len(rows) > 5
    for row in rows:
        algbw, busbw = measures.bandwidths(collective, int(row["bytes"]), ranks, float(row["usec"]))
        # Printed are two decimals of each bandwidth, and four or five digits of the time.
        assert algbw == pytest.approx(float(row["algbw"]), rel=6e-3)
        assert busbw == pytest.approx(float(row["busbw"]), rel=6e-3)
