# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_proofs; documented in plugins/modules/pair_proofs.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.action import PairAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.path_mtu import PLAN, path_mtu_plan


class ActionModule(PairAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "measure": {"type": "raw", "default": "auto"},
        "path_mtu": {"type": "bool", "default": False},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.prepare()
        standings = [each for of in self.standings.values() for each in of.values()]
        valid = sum(each.valid for each in standings)
        near = self.outside()
        choice = self.choice(self.measure(options["measure"]), near)
        probes = choice is not None or options["path_mtu"]
        if probes:
            self.folder.write_json(PLAN, path_mtu_plan(self.fleet, near))
        hosts, outside = (list(choice.hosts), list(choice.outside)) if choice else ([], [])
        words = f"{valid} of {len(standings)} ports have a valid proof; hosts to measure: {len(hosts)}."
        return {"hosts": [host for host in hosts if host not in outside], "outside": outside, "path_mtu": probes, "msg": words}
