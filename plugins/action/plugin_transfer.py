# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.plugin_transfer; documented in plugins/modules/plugin_transfer.py."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ansible import context
from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import parse_transfer_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import (
    BLOCKED,
    FOLDER,
    HOSTS,
    PLAN,
    PROOFS,
    Transfers,
    read_proofs,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import run_id

MODULE = "plugin_transfer"
COLLECT_SECONDS = 30.0


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "scope": {"type": "str", "required": True, "choices": ["plan", "start", "collect"]},
        "measure": {"type": "raw", "default": "auto"},
        "token": {"type": "str", "no_log": True},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        scopes: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "plan": self._plan_scope,
            "start": self._start_scope,
            "collect": self._collect_scope,
        }
        return scopes[options["scope"]](options)

    def _plan_scope(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Plan the transfers. An invalid `measure` is an error, because a misunderstood value must not put load on a fabric."""
        measure = self.argument(options["measure"], "nccl_transfer_measure", "rdma_measure", default="auto")
        remeasure = None if measure == "auto" else boolean(measure)  # type: ignore[no-untyped-call]
        known = known_hosts(self.folder, self.variables["ansible_play_hosts"])
        self.folder.write_json(HOSTS, list(known))
        proofs = read_proofs(self.folder.read_if_there(PROOFS))
        transfers = Transfers.of(known, proofs, time.time(), self.proof_max_age_hours)
        if not transfers.users:
            return {"hosts": [], "token": "", "msg": "No host of this run uses a network plugin of NCCL."}
        blocked = self.at_work({host: facts.load for host in transfers.users if (facts := known[host].facts) is not None})
        self.folder.write_json(BLOCKED, blocked)
        meetings = [] if self._task.check_mode else transfers.chosen(remeasure, blocked)
        plan = transfers.plan(run_id(), meetings, int(context.CLIARGS.get("forks") or 1))
        self.folder.write(PLAN, plan.to_text())
        proven = sum(map(transfers.is_proven, transfers.meetings))
        words = f"{proven} of {len(transfers.meetings)} transfers have a valid proof; to make: {len(meetings)}"
        words += f"; in use: {', '.join(blocked)}." if blocked else "."
        return {"hosts": list(plan.hosts), "token": secrets.token_hex(32), "msg": words}

    def _start_scope(self, options: Mapping[str, Any]) -> dict[str, Any]:
        text = (self.folder.path / PLAN).read_text(encoding="utf-8")
        given = {"run": run_id(), "host": self.host, "plan": text, "token": options["token"]}
        answer = self.module(MODULE, state="started", load_allowed=self._load_allowed(self.host), **given)
        problem = answer.get("msg") if answer.get("failed") else answer.get("in_use")
        if problem:
            # The gate reports it. Its partners find nobody there.
            self._store({"problem": f"the host is in use: {problem}" if answer.get("in_use") else str(problem)})
        if answer.get("failed") and not answer.get("unreachable"):
            return {"started": False, "in_use": "", "msg": f"{self.host}: {problem}"}
        return answer

    def _collect_scope(self, _options: Mapping[str, Any]) -> dict[str, Any]:
        if self.folder.read_if_there(self.folder.host_file(FOLDER, self.host)) is not None:
            return {"results": [], "msg": f"{self.host} has started nothing."}
        plan = parse_transfer_plan((self.folder.path / PLAN).read_text(encoding="utf-8"))
        wait_seconds = plan.limit_seconds(self.host) + COLLECT_SECONDS
        answer = self.module(MODULE, state="collected", run=run_id(), wait_seconds=wait_seconds)
        if answer.get("unreachable"):
            return answer
        if answer.get("failed"):
            self._store({"problem": str(answer.get("msg"))})
            return {"results": [], "msg": f"{self.host}: {answer.get('msg')}"}
        if not self._task.check_mode:
            self._store({"results": answer["results"]})
        return {"results": answer["results"]}

    def _store(self, data: Mapping[str, Any]) -> None:
        self.folder.write_json(self.folder.host_file(FOLDER, self.host), data)
