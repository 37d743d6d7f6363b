# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.recorder_read: measures the host's clock, runs the module of this name, and stores its answer."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import FOLDER, Clock, read_answer
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

#: The clock is read this often; the fastest answer counts.
READINGS = 3


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "time": {"type": "float"},
        "local": {"type": "str"},
        "before_seconds": {"type": "float", "default": 600},
        "after_seconds": {"type": "float", "default": 300},
        "journal": {"type": "bool", "default": False},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        clock = self._clock()
        shift = clock.offset_seconds or 0.0
        given = {name: value for name, value in options.items() if value is not None}
        given |= {"time": given["time"] + shift} if "time" in given else {}
        answer = self.module("recorder_read", **given)
        if answer.get("failed") or answer.get("unreachable"):
            return answer
        try:
            record = read_answer(self.host, answer.get("record"), clock)
        except ParseError as error:
            return {"failed": True, "msg": f"{self.host}: its record is refused: {error}."}
        stored = self.folder.write_json(self.folder.host_file(FOLDER, self.host), record.to_dict())
        measured = {"offset_seconds": clock.offset_seconds, "error_seconds": clock.error_seconds}
        return {"events": len(record.changes), "recorded": record.recorded, "clock": measured, "stored": str(stored)}

    def _clock(self) -> Clock:
        """How far the host's clock is ahead of ours: read on the host between two readings of ours."""
        best: Clock = Clock(None, None)
        for _reading in range(READINGS):
            before = time.time()
            done = self._low_level_execute_command("date +%s.%N", sudoable=False)  # type: ignore[no-untyped-call]
            after = time.time()
            try:
                there = float(str(done.get("stdout", "")).strip().splitlines()[-1])
            except (ValueError, IndexError):
                continue
            error = (after - before) / 2
            if math.isfinite(there) and error >= 0 and (best.error_seconds is None or error < best.error_seconds):
                best = Clock(round(there - (before + after) / 2, 6), round(error, 6))
        return best
