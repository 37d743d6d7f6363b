# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.withheld; documented in plugins/modules/withheld.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.withheld import Withheld, allow_words, reason_words, record

#: The name of an effect is part of the names of variables and of a file.
EFFECT = re.compile(r"[a-z][a-z0-9_]*")


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "effect": {"type": "str", "required": True},
        "reason": {"type": "raw", "required": True},
        "touches": {"type": "list", "elements": "str", "default": []},
        "allow": {"type": "str"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        effect = options["effect"]
        if not EFFECT.fullmatch(effect):
            return {"failed": True, "msg": f"effect: expected lower-case letters, digits and _, for example pcie_acs_write; got {effect!r}"}
        reason = reason_words(options["reason"])
        if not reason:
            return {"failed": True, "msg": f"reason: expected why {effect} is needed, got nothing"}
        stage = str(self._setting("rdma_stage", ""))
        withheld = Withheld(self.host, effect, stage, reason, tuple(options["touches"]), options["allow"] or allow_words(effect))
        record(self.folder, withheld)
        touches = f" It would change: {', '.join(withheld.touches)}." if withheld.touches else ""
        # Printed without -v, like debug, because a role also reports it in a playbook without this collection's summary.
        return {
            "msg": f"{effect}_required: {reason.rstrip('.')}.{touches} To allow it: {withheld.allow}",
            "_ansible_verbose_always": True,
            "ansible_facts": {f"{effect}_required": True, f"{effect}_reason": reason},
        }
