# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_proofs_void; documented in plugins/modules/pair_proofs_void.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        known = proofs.read(self.folder.read_if_there(proofs.FILE))
        rails = sorted(known.pop(self.host, {}))
        if rails and not self._task.check_mode:
            self.folder.write_json(proofs.FILE, proofs.write(known))
        return {"rails": rails}
