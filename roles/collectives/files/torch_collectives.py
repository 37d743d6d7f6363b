# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures collectives between the ranks of a job, and reports which rank comes late to them. Needs Python 3.9 and PyTorch 2.

    torchrun --nproc-per-node=8 torch_collectives.py --output result.json
    srun --ntasks-per-node=8 --gpus-per-node=8 python3 torch_collectives.py
    mpirun -x MASTER_ADDR=node1 python3 torch_collectives.py

It uses NCCL between GPUs, and gloo if no rank has a GPU. Every rank runs this file, with torch_straggler next to it. Rank 0 prints a text
and writes the JSON. docs/straggler.md explains the meaning and the limits of each figure.
"""

from __future__ import annotations

import sys

from torch_straggler.program import main

if __name__ == "__main__":
    sys.exit(main())
