# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Intent and facts of a lab machine: the facts were read by rdma_facts on one (Debian 12, Linux 6.1, two rxe devices)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"


def lab_facts() -> dict[str, Any]:
    """A fresh copy of the facts of node1."""
    facts: dict[str, Any] = json.loads((FIXTURES / "facts/lab-node1.json").read_text(encoding="utf-8"))
    return copy.deepcopy(facts)


def lab_rails(node: int = 1) -> list[dict[str, Any]]:
    """The normalised rails of a lab machine."""
    return [
        {
            "name": f"rail{rail}",
            "nic": {"pci": pci},
            "link_layer": "roce",
            "rate_gbps": None,
            "plane": "lab",
            "role": "compute",
            "address": f"192.168.{100 + rail}.{node}/24",
            "mtu_bytes": 9000,
            "soft": True,
        }
        for rail, pci in enumerate(("0000:21:00.0", "0000:41:00.0"))
    ]
