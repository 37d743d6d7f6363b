# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.observe; documented in plugins/modules/observe.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._host.load import host_users
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import since
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import digest
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import EXPECTED, FactsError, admitted, facts_finding, place_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._firmware.requests import firmware_names
from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan import stored
from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan.stored import permits_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import files_to_ask
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import plugin_query
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import sysctl_settings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"max_age_seconds": {"type": "float"}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        most = options["max_age_seconds"]
        if self._is_known(self.facts_max_age_seconds if most is None else most):
            return self._plan_again() or {"read": False}
        packages = sorted(self.intent["nccl"]["install"]["packages"])
        asked = {"files": files_to_ask(self.intent), "packages": packages, "nccl_plugin": plugin_query(self.intent)}
        known = self.variables["ansible_facts"].get("rdma")
        firmware = firmware_names(self.intent, from_dict(known) if known else None)
        # Reading quality of service takes up to five processes for each interface, so it is read only if it is planned.
        subset = ["all"] if self.intent["roce"] is not None else ["!qos"]
        settings = sorted(sysctl_settings(self.intent))
        before = time.time()
        read = self.module("rdma_facts", gather_subset=subset, sysctl=settings, firmware=firmware, **asked)
        after = time.time()
        if read.get("failed") or read.get("unreachable"):
            return read
        try:
            tree = admitted((read.get("ansible_facts") or {}).get("rdma"))
        except FactsError as error:
            return self._refuse_facts(str(error))
        if tree.get("time"):
            # Times of the control node's clock. The host's clock was read in between (check host.clock).
            tree["time"]["between_seconds"] = [before, after]
        name = self.folder.host_file("facts", self.host)
        earlier: tuple[str, dict[str, Any]] | None = self.folder.earlier(name)
        tree["since"] = since(earlier[1], tree, earlier[0]) if earlier is not None else None
        # With a loopback address the SSH port is forwarded, and other hosts cannot reach this host at the address of our session.
        tree["reached_at"] = str(self._templar.template(self.variables.get("ansible_host") or self.host))
        permits = permits_of(self._setting)
        try:
            brief, facts = digest(tree), from_dict(tree)
            plan = stored.make(self.host, self.intent, facts, permits)
        except Exception as error:  # noqa: BLE001 (whatever a host's data does)
            return self._refuse_facts(place_of(error))
        # Only valid facts are stored in the run folder, where the fleet gates read them.
        stored.write(self.folder, self.host, plan)
        place = self.folder.write_json(name, tree)
        return {"read": True, "stored": str(place), "users": host_users(facts.load), "ansible_facts": {"rdma": brief}}

    def _plan_again(self) -> dict[str, Any] | None:
        """Plan again from the stored facts if intent or permissions have changed since. Returns a failure or None."""
        intent, permits = self.intent, permits_of(self._setting)
        if stored.holds(self.folder, self.host, intent, permits):
            return None
        try:
            plan = stored.make(self.host, intent, from_dict(self.all_facts), permits)
        except Exception as error:  # noqa: BLE001 (whatever a host's data does)
            return self._refuse_facts(place_of(error))
        stored.write(self.folder, self.host, plan)
        return None

    def _refuse_facts(self, problem: str) -> dict[str, Any]:
        """The result for a host with invalid facts. The findings of the stage record the problem as unknown."""
        stage = str(self._setting("rdma_stage", ""))
        if stage in STAGES:
            self.folder.write_findings(stage, self.host, [facts_finding(stage, self.host, problem)])
        return {"read": False, "failed": True, "msg": f"{self.host}: its facts are refused: {problem}. Expected {EXPECTED}."}

    def _is_known(self, max_age_seconds: float) -> bool:
        """Whether this run has read the host recently. A task that changes a host also reads it again."""
        file = self.folder.path / self.folder.host_file("facts", self.host)
        if "rdma" not in self.variables["ansible_facts"] or not file.exists():
            return False
        return time.time() - file.stat().st_mtime < max_age_seconds
