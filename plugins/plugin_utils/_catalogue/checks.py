# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalogue of checks. Each check is declared next to its function and collected here; docs/checks.md is generated from it.

To add a check, write a function that returns its findings and, in the same file, `declare({"link.new": Check("link", …, sources=(…))})`
at the beginning of a line, where all_checks finds it. Call the function in _gate/host_checks.py. `python tests/tools/docs.py` writes the
page.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.sources import Source

HOUSE, PACKAGE = Path(__file__).parents[1], "ansible_collections.rdma.cluster.plugins.plugin_utils"
#: The stages in the order of the build.
STAGES = ("preflight", "driver", "link", "fabric", "host", "network", "qos", "gpu", "nccl", "pairs", "collectives")


@dataclass(frozen=True)
class Check:
    """One check: its stage, its subject, where it is read, the remedy, and the same sources as data for the tests.

    threshold: the meaning of rdma_checks.ID.threshold, "" if it has none. fixed: rdma_checks cannot change it.
    follows: the checks whose error on the same rail explains an `unknown` of this one, the most basic first; repeats: those whose error
    also explains an `error` of this one, because both check the same thing.
    """

    stage: str
    subject: str
    read_from: str
    remedy: str
    threshold: str = ""
    fixed: bool = False
    follows: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


NO_NIC = ("intent.nic", "driver.nic")
NO_DEVICE = (*NO_NIC, "driver.device")
#: Check ID → check, of the modules imported so far. all_checks returns all of them.
CHECKS: dict[str, Check] = {}


def declare(checks: Mapping[str, Check]) -> None:
    """Add a module's checks to the catalogue. Raises ValueError for an ID that another module has declared."""
    twice = sorted(CHECKS.keys() & checks.keys())
    if twice:
        raise ValueError(f"declared twice: {', '.join(twice)}")
    CHECKS.update(checks)


@cache
def all_checks() -> Mapping[str, Check]:
    """Every check, by stage in the order of the build. Imports the modules that declare checks."""
    for path in sorted(HOUSE.rglob("*.py")):
        if path != Path(__file__) and "\ndeclare(" in path.read_text(encoding="utf-8"):
            importlib.import_module(".".join([PACKAGE, *path.relative_to(HOUSE).with_suffix("").parts]))
    order = ("every", *STAGES)
    return dict(sorted(CHECKS.items(), key=lambda item: (order.index(item[1].stage.split(", ")[0]), item[0])))
