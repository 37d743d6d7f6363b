# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The explanation of one host: its state that matters to RDMA and NCCL, and the differences from the intent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import rail_ports
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.devices import errors, gpus, rails, unplanned
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.nccl import nccl
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.system import driver, limits, settings, system, time_and_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import MARK, text_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict

STAGE = "link"
LEGEND = f"{MARK} marks differences from the intent and likely causes of low throughput. The gates decide: rdma.cluster.validate."


def explain(host: str, intent: Intent | None, facts: Mapping[str, Any] | None, problems: Sequence[str] = ()) -> str:
    """The text, in lines of at most 120 columns, without a final line break.

    intent: normalized, or None if there is none to compare with; problems are then the reasons, one sentence each.
    facts: the tree of rdma_facts; any part may be missing or null, and the text then says "not read" or omits it.
    """
    tree = from_dict(facts)
    ports = rail_ports(STAGE, host, intent["rails"] if intent is not None else [], tree)
    return "\n\n".join(
        [
            _head(host, intent, problems),
            system(tree),
            driver(intent, tree.stack),
            rails(intent, ports, tree),
            unplanned(ports, tree.devices if facts else None),
            gpus(intent, ports, tree),
            errors(tree.since),
            limits(intent, tree.limits),
            settings(intent, tree),
            time_and_load(intent, tree),
            nccl(intent, tree),
        ]
    )


def _head(host: str, intent: Intent | None, problems: Sequence[str]) -> str:
    lines = [*text_lines(f"{host}: what matters to RDMA and NCCL", 0), *text_lines(LEGEND, 0)]
    if intent is None:
        lines += text_lines("There is no intent to compare with" + (", because of these problems:" if problems else "."), marked=True)
        lines += [line for problem in problems for line in text_lines(problem, 4)]
    return "\n".join(lines)
