# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.changed; documented in plugins/modules/changed.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import FOLDER, Clock, HostRecord, from_stored
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.text import changed_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.times import GivenTimeError, time_or_run, time_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.words import rail_names
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

FILE, TEXT_FILE, SCHEMA = "changed.json", "changed.txt", 1


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "state": {"type": "str", "choices": ["window", "shown"], "required": True},
        "since": {"type": "str", "required": True},
        "to": {"type": "str"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        now = time.time()
        try:
            since = time_or_run("rdma_since", options["since"], now, self.folder)
            until = now if options["to"] is None else time_or_run("rdma_until", options["to"], now, self.folder)
        except GivenTimeError as error:
            return {"failed": True, "msg": str(error)}
        if since >= until:
            return {"failed": True, "msg": f"rdma_since ({time_words(since)}) is not before rdma_until ({time_words(until)})."}
        if options["state"] == "window":
            return {"since": since, "until": until, "seconds": until - since}
        records = [self._record(host, since, until) for host in self.variables["ansible_play_hosts_all"]]
        if records and all(record.since == records[0].since for record in records):
            since, until = records[0].since, records[0].until
        text = changed_text(records, since, until)
        tree = {"schema": SCHEMA, "since": since, "until": until, "hosts": {record.host: record.to_dict() for record in records}}
        stored = self.folder.write_json(FILE, tree)
        self.folder.write(TEXT_FILE, text + "\n")
        return {"explained": text, "stored": str(stored), "changes": sum(len(record.changes) for record in records)}

    def _record(self, host: str, since: float, until: float) -> HostRecord:
        """The record of a host; without any change and unknown if the host was not read."""
        tree = self.folder.read_if_there(self.folder.host_file(FOLDER, host))
        if tree is None:
            return HostRecord(host, False, since, until, Clock(None, None))
        facts = self.folder.read_if_there(self.folder.host_file("facts", host))
        try:
            rails = rail_names(self.intent_of(host), from_dict(facts) if facts else None)
        except (ParseError, KeyError, TypeError, ValueError):
            rails = {}
        return replace(from_stored(tree), rails=rails)
