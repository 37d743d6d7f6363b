# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi topo -m of real machines, read where it lies; skipped where it is not. The values were read in the captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._nvidia_smi_topo import Topology, parse_nvidia_smi_topo

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "nvidia-smi-topo"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")


def capture(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


def all_alike(count: int, links: str, cpus: list[str], nodes: list[int | None]) -> Topology:
    """Each GPU as far from any other."""
    gpus = [f"GPU{number}" for number in range(count)]
    return Topology(
        gpus=gpus,
        nics=[],
        distances={(one, other): "X" if one == other else links for one in gpus for other in gpus},
        cpu_affinity=dict(zip(gpus, cpus, strict=True)),
        numa_affinity=dict(zip(gpus, nodes, strict=True)),
        nic_names={},
    )


WHOLE = {
    "stas-2gpu-nv2": all_alike(2, "NV2", ["0-23", "0-23"], [None, None]),
    "stas-a100-8gpu": all_alike(8, "NV12", ["0-23"] * 4 + ["24-47"] * 4, [0, 0, 0, 0, 1, 1, 1, 1]),
    "stas-h100-8gpu": all_alike(8, "NV18", ["0-51"] * 4 + ["52-103"] * 4, [0, 0, 0, 0, 1, 1, 1, 1]),
}
REFUSED = {
    # `topo -p2p`, whose cells tell what a pair can do
    "nccl-docs-8gpu-a.rst": "GPU0      X       OK",
    "stas-p2p-r-b": "GPU0   X       CNS",
    # the end of CUDA's simpleP2P
    "nccl-docs-8gpu-b.rst": "memcpy to GPU0",
}


@pytest.mark.parametrize("name", WHOLE)
def test_matrices(name: str) -> None:
    assert parse_nvidia_smi_topo(capture(name)) == WHOLE[name]


@pytest.mark.parametrize("name", REFUSED)
def test_other_tables_are_refused(name: str) -> None:
    with pytest.raises(ParseError, match=REFUSED[name]):
        parse_nvidia_smi_topo(capture(name))


def test_no_capture_is_left_out() -> None:
    assert {path.stem for path in CAPTURES.iterdir()} == {*WHOLE, *REFUSED}
