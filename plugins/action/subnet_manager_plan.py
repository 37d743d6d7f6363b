# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.subnet_manager_plan; documented in plugins/modules/subnet_manager_plan.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.service import ports_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import busy_hosts, fleet_ports, plan_managers


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "keys": {"type": "dict", "default": {}, "no_log": True},
        "load": {"type": "bool", "default": False},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        inventory = list(self.variables["groups"]["all"])
        playing = list(self.variables.get("ansible_play_hosts_all") or inventory)
        wanted = {self.host, *self._members(), *playing}
        fleet = {name: self._known(name) for name in inventory if name in wanted}
        plan = plan_managers(self.host, fleet, inventory, options["keys"])
        if plan.problems:
            words = "The subnet manager cannot be set up:\n" + "\n".join(f"  - {each}" for each in plan.problems)
            # Check mode must reach every difference. The role's task has check_mode: false, so only the variable shows check mode.
            checks = bool(boolean(self.variables.get("ansible_check_mode", False)))  # type: ignore[no-untyped-call]
            return {"failed": not checks, "msg": words, "problems": plan.problems, "_ansible_verbose_always": True}
        none = ports_file()
        return {
            "problems": [],
            "flavor": plan.flavor,
            "starts_at_install": plan.starts_at_install,
            "instances": plan.instances,
            "sharp": plan.sharp,
            "ports": fleet_ports(fleet),
            "busy": self._busy(fleet, inventory, playing) if options["load"] else {},
            "ports_file": {"path": none.path, "none": none.text},
            # opensm.conf contains the keys.
            "_ansible_no_log": bool(options["keys"]),
        }

    def _busy(self, fleet: Mapping[str, Known], inventory: Sequence[str], playing: Sequence[str]) -> dict[str, str]:
        present = self.variables.get("ansible_play_hosts") or playing
        unread = [name for name in inventory if name not in playing and self._has_rails(name)]
        return busy_hosts(fleet, unread, [name for name in playing if name not in present])

    def _members(self) -> set[str]:
        """The hosts that the partitions name as members."""
        names: set[str | None] = set()
        for partition in self.intent["partitions"].values():
            for each in partition["members"] if isinstance(partition["members"], list) else ():
                names.add(each if isinstance(each, str) else each["host"])
        return {name for name in names if name}

    def _has_rails(self, host: str) -> bool:
        return "rdma_rails" in self.variables["hostvars"].get(host, {})

    def _known(self, host: str) -> Known:
        intent, facts = (self.folder.read_if_there(self.folder.host_file(what, host)) for what in ("intent", "facts"))
        return Known(intent, from_dict(facts) if facts else None)
