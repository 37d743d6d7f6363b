# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.intent; documented in plugins/modules/intent.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent import SECTIONS, IntentError, normalise


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: self._templar.template(self.variables[name]) for name in ("rdma_rails", *SECTIONS) if name in self.variables}
        try:
            return {"ansible_facts": {"rdma_intent": normalise(given)}}
        except IntentError as error:
            return {"failed": True, "msg": str(error), "problems": error.problems}
