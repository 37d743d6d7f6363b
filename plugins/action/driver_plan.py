# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.driver_plan; documented in plugins/modules/driver_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.plan import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.withheld import Withheld, allow_words, reason_words, record

#: The names of the restarts in EFFECT_allowed and EFFECT_required.
EFFECTS = {"reload": "driver_reload", "reboot": "reboot"}


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "reload_allowed": {"type": "bool", "default": False},
        "reboot_allowed": {"type": "bool", "default": False},
        "reboot_drained": {"type": "bool", "default": False},
        "switch_allowed": {"type": "bool", "default": False},
        "removal": {"type": "dict"},
        "group": {"type": "str"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        removal = options["removal"]
        decided = plan(
            self.intent,
            from_dict(self.all_facts),
            reboot_allowed=options["reboot_allowed"],
            switch_allowed=options["switch_allowed"],
            removal=removal,
        )
        if decided["refused"] is not None:
            return {"plan": decided, "failed": not self._task.check_mode, "msg": f"{self.host}: refused. {decided['refused']}"}
        reasons = restarts(decided, reboot_drained=options["reboot_drained"])
        allowed = {"reload": options["reload_allowed"], "reboot": options["reboot_allowed"]}
        done = {kind: why for kind, why in reasons.items() if why and allowed[kind]}
        if options["group"]:
            self._record(decided, {kind: why for kind, why in reasons.items() if why and not allowed[kind]})
        return {
            "plan": decided,
            "reload_reason": reasons["reload"],
            # Do not boot a kernel without the driver. The driver is built first, and then the host is read again.
            "reboot_reason": reasons["reboot"] if decided["reboot"]["build_first"] is None else "",
            "msg": f"{self.host}: {decided['change']}. {decided['switch']['reason'] or decided['why']}",
            "ansible_facts": {
                **_required({kind: why for kind, why in reasons.items() if not allowed[kind]}),
                **_switch_required(decided["switch"], is_read=removal is not None),
            },
            # Ansible reports a change if a host is added to a group.
            **({"add_group": options["group"], "parent_groups": []} if options["group"] and done else {}),
        }

    def _record(self, decided: Mapping[str, Any], reasons: Mapping[str, str]) -> None:
        """Record for the summary the restarts that are not allowed, and a reboot that must wait."""
        reboot = decided["reboot"]
        found = [(EFFECTS[kind], why, allow_words(EFFECTS[kind])) for kind, why in reasons.items()]
        if reboot["needed"] and reboot["withheld"] is not None and "reboot" not in reasons:
            found.append((EFFECTS["reboot"], f"{reboot['why']} ({reboot['withheld']})", "remove this cause, then rerun"))
        for effect, why, allow in found:
            record(self.folder, Withheld(self.host, effect, "driver", reason_words(why), (self.host,), allow))


def restarts(decided: Mapping[str, Any], *, reboot_drained: bool) -> dict[str, str]:
    """Why a host needs a reload or a reboot now, "" if it does not. reboot_drained: whether the host is drained before the reboot."""
    reload, reboot = decided["reload"], decided["reboot"]
    drained = reboot_drained and reboot["drainable"]
    waits = reboot["withheld"] is not None and not drained
    return {
        "reload": reload["why"] if reload["needed"] and reload["live"] else "",
        "reboot": reboot["why"] if reboot["needed"] and not waits else "",
    }


def _switch_required(switch: Mapping[str, Any], *, is_read: bool) -> dict[str, Any]:
    """driver_switch_required and driver_switch_reason. Empty until the packages to remove were read on the host."""
    if switch["needed"] and not is_read:
        return {}
    withheld = switch["withheld"] is not None
    return {"driver_switch_required": withheld} | ({"driver_switch_reason": switch["reason"]} if withheld else {})


def _required(reasons: Mapping[str, str]) -> dict[str, Any]:
    """The facts driver_reload_required and reboot_required with their reasons, also if nothing is required any more."""
    return {f"{EFFECTS[kind]}_required": bool(why) for kind, why in reasons.items()} | {
        f"{EFFECTS[kind]}_reason": why for kind, why in reasons.items() if why
    }
