# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a host in the run folder: observe writes it, and the lookup reads it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts, from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan.plan import PERMITS, Permits, host_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

FOLDER = "plan"
#: A plan, and its inputs besides the host's facts.
Stored = dict[str, Any]


def permits_of(setting: Callable[[str, bool], Any]) -> dict[str, bool]:
    """Return the allowed effects. setting: returns the value of a variable by name, or its second argument."""
    return {name: bool(boolean(setting(name, False), strict=False)) for name in PERMITS}  # type: ignore[no-untyped-call]


def make(host: str, intent: Intent, facts: RunFacts, permits: Permits) -> Stored:
    """Return a plan to store."""
    return {"permits": permits, "intent": _sum(intent), "plan": host_plan(host, intent, facts, permits)}


def write(folder: RunFolder, host: str, plan: Stored) -> None:
    folder.write_json(folder.host_file(FOLDER, host), plan)


def holds(folder: RunFolder, host: str, intent: Intent, permits: Permits) -> bool:
    """Return whether the stored plan is for this intent and these permissions."""
    stored = folder.read_if_there(folder.host_file(FOLDER, host)) or {}
    return stored.get("permits") == permits and stored.get("intent") == _sum(intent)


def read(folder: RunFolder, host: str, permits: Permits) -> dict[str, Any] | None:
    """Return the plan of a host; None if this run has none. If a role or task allows other effects than the play, it is made again."""
    stored: Stored | None = folder.read_if_there(folder.host_file(FOLDER, host))
    if stored is None or stored["permits"] == permits:
        return stored and stored["plan"]
    intent, tree = (folder.read_json(folder.host_file(part, host)) for part in ("intent", "facts"))
    plan: dict[str, Any] = make(host, intent, from_dict(tree), permits)["plan"]
    return plan


def _sum(intent: Intent) -> str:
    return hashlib.sha256(json.dumps(intent, sort_keys=True).encode()).hexdigest()
