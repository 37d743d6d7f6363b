# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_proofs; documented in plugins/modules/pair_proofs.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.rdma.cluster.plugins.plugin_utils._action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_gate import Fleet, read_records, unproven_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import run_id


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"measure": {"type": "raw", "default": "auto"}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        standings = Fleet.of(known_hosts(self.folder, "pairs"), run_id()).standings(read_records(self.folder), self.proof_max_age_hours)
        # A word that is no truth value is an error: what is not understood must not put load on a fabric.
        anew = None if options["measure"] == "auto" else boolean(options["measure"])
        unproven = [] if anew is False else unproven_hosts(standings, anew=bool(anew))
        valid = sum(each.valid for each in standings.values())
        return {"unproven": unproven, "msg": f"{valid} of {len(standings)} pairs are proven; {len(unproven)} hosts are to be measured."}
