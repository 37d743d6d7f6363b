# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_start; documented in plugins/modules/pair_start.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import REFUSED
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

MODULE = "perftest_rounds"
PASSED = ("sweep", "plan", "token", "runtime_max_seconds", "queue_pairs")


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "sweep": {"type": "str", "required": True},
        "plan": {"type": "str", "required": True, "no_log": True},
        "token": {"type": "str", "required": True, "no_log": True},
        "runtime_max_seconds": {"type": "int", "required": True},
        "queue_pairs": {"type": "bool", "default": False},
        "folder": {"type": "str", "default": "pairs"},
        "host": {"type": "str"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        host = options["host"] or self.host
        allowed = self._load_allowed(host)
        given = {name: options[name] for name in PASSED}
        answer = self.module(MODULE, state="started", host=host, load_allowed=allowed, **given)
        in_use = answer.get("in_use")
        if answer.get("failed") or answer.get("unreachable") or not in_use:
            return answer
        # Its partners find no runner there. This file distinguishes the host from a dead one.
        self.folder.write_json(self.folder.host_file(options["folder"], host, REFUSED), {"in_use": in_use})
        return {**answer, "msg": f"{host} is not measured, in use: {in_use}", "_ansible_verbose_always": True}
