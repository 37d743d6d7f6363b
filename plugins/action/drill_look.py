# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.drill_look; documented in plugins/modules/drill_look.py."""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from ansible.module_utils.urls import open_url

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.alerts import LONGEST_ANSWER_BYTES, read_alerts
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.host_drill import LOOK_SECONDS, STAGES, HostDrill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.turned import Alert
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.now import current_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

#: How long Prometheus or Alertmanager may take to answer.
FETCH_SECONDS = 10
_NOT_FOUND = 404


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "step": {"type": "int", "required": True},
        "phase": {"type": "str", "required": True, "choices": ["before", "during", "after"]},
        "finished": {"type": "str", "default": ""},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        began, drill, number, phase = time.monotonic(), HostDrill(self.folder), options["step"], options["phase"]
        finished = f"{number} {phase}"
        try:
            if options["finished"] == finished or (phase != "before" and not drill.is_made(number)):
                return {"finished": finished}
            findings = current_findings(STAGES, self.folder, drill.known, self.plan_text, datetime.now(UTC).date())
            look = {"before": drill.look_before, "during": drill.look_during, "after": drill.look_after}[phase]
            url = drill.settings["alerts_url"]
            is_done = look(number, findings, (lambda: _alerts(url)) if url is not None else None)
        except ParseError as error:
            return {"failed": True, "msg": str(error), "finished": ""}
        if is_done:
            return {"finished": finished}
        time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began)))
        return {"finished": ""}


def _alerts(url: str) -> Sequence[Alert]:
    return read_alerts(url, _fetch)


def _fetch(url: str) -> bytes | None:
    try:
        with open_url(url, timeout=FETCH_SECONDS) as answer:  # type: ignore[no-untyped-call]
            data: bytes = answer.read(LONGEST_ANSWER_BYTES)
            return data
    except urllib.error.HTTPError as error:
        if error.code == _NOT_FOUND:
            return None
        raise
