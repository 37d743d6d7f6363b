# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages of the build, in order."""

from __future__ import annotations

STAGES = ("preflight", "driver", "link", "fabric", "host", "network", "qos", "gpu", "nccl", "pairs", "collectives")


def up_to(stage: str) -> tuple[str, ...]:
    """The stages before this one, and itself."""
    return STAGES[: STAGES.index(stage) + 1]
