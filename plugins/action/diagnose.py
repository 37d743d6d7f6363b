# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.diagnose; documented in plugins/modules/diagnose.py."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TextIO

from ansible.errors import AnsibleError
from ansible.utils.display import Display

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.diagnose import Fleet, confirmed, diagnose
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import JobLog, read_job_log
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log_line import LONGEST_LINE
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.past import JobTime, failed_at, time_of_log
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.text import text
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import admitted
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.hostnames import names_in_logs
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts, from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import FOLDER, HostRecord, from_stored
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.times import GivenTimeError, given_time
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.words import rail_names
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

display = Display()
FILE, TEXT_FILE, TIME_FILE = "diagnosis.json", "diagnosis.txt", "job_time.json"


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "state": {"type": "str", "choices": ["time", "diagnosed"], "default": "diagnosed"},
        "log": {"type": "str"},
        "time": {"type": "str"},
        "hosts": {"type": "dict", "default": {}},
        "problems": {"type": "dict", "default": {}},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        read = self._read(options["log"]) if options["log"] is not None else read_job_log(())
        if isinstance(read, str):
            return {"failed": True, "msg": f"The log {options['log']} cannot be read on the control node: {read}"}
        if options["state"] == "time":
            return self._time(read, options)
        names = {str(name): str(host) for name, host in options["hosts"].items()}
        play = list(self.variables["ansible_play_hosts_all"])
        nowhere = sorted(f"{name}: {host}" for name, host in names.items() if host not in play)
        if nowhere:
            return {"failed": True, "msg": f"rdma_job_hosts maps names to hosts that are not in the play: {', '.join(nowhere)}"}
        problems = {host: [str(each) for each in options["problems"].get(host) or ()] for host in play}
        wrong = [host for host in play if problems[host]]
        refused = {host: problems[host] for host in wrong if not self._is_absent(host, problems[host])}
        self._unusable = set(wrong)
        briefs = {host: self._brief(host) for host in play}
        job_time = self._job_time()
        records, seconds = self._records(job_time, briefs, names)
        fleet = Fleet(briefs, self._known, names, refused, [host for host in wrong if host not in refused], records=records)
        found = diagnose(read, fleet, job_time, seconds)
        explanation = text(found, options["log"] or "")
        stored = self.folder.write_json(FILE, {"log": options["log"], **found.to_dict()})
        self.folder.write(TEXT_FILE, explanation + "\n")
        diagnosis = found.to_dict()
        return {
            "explained": explanation,
            "stored": str(stored),
            "first_cause": read.cause,
            "findings": diagnosis["findings"],
            "confirmed": [cause.name for cause in confirmed(found)],
            "unknown_hosts": diagnosis["unknown_hosts"],
            "refused_intents": diagnosis["refused_intents"],
        }

    def _read(self, name: str) -> JobLog | str:
        """The log, or why it cannot be read."""
        try:
            with self.given_file(name).open(encoding="utf-8", errors="replace") as handle:
                return read_job_log(_lines(handle))
        except (AnsibleError, OSError) as error:
            return " ".join(str(error).split())[:300]

    def _time(self, log: JobLog, options: Mapping[str, Any]) -> dict[str, Any]:
        """The time around which the hosts are read: the given one, else that of the log's first error."""
        if options["time"] is None:
            found = time_of_log(log, time.time())
        else:
            try:
                seconds = given_time("rdma_job_time", options["time"], time.time())
            except GivenTimeError as error:
                return {"failed": True, "msg": str(error)}
            found = JobTime(seconds, None, None, "the time of rdma_job_time")
        self.folder.write_json(TIME_FILE, found.to_dict())
        return {**found.to_dict(), "known": found.seconds is not None or found.local is not None}

    def _job_time(self) -> JobTime | None:
        """The time of the failure that an earlier task of this run found."""
        tree = self.folder.read_if_there(TIME_FILE)
        return None if tree is None else JobTime(**tree)

    def _records(
        self, job_time: JobTime | None, briefs: Mapping[str, RunFacts | None], names: Mapping[str, str]
    ) -> tuple[list[HostRecord], float | None]:
        """What the hosts recorded around the failure, and its time by the control node's clock."""
        if job_time is None:
            return [], None
        trees = {host: self.folder.read_if_there(self.folder.host_file(FOLDER, host)) for host in briefs}
        records = {host: from_stored(tree) for host, tree in trees.items() if tree is not None}
        seconds = failed_at(job_time, records, names_in_logs(briefs, names).get(job_time.host or ""))
        known = {host: self._known(host) for host in records}
        rails = {host: rail_names(each.intent, each.facts) for host, each in known.items()}
        return [replace(record, middle=seconds, rails=rails[host]) for host, record in records.items()], seconds

    def _brief(self, host: str) -> RunFacts | None:
        """Ansible's facts of a host, checked here unless observe has stored them: a host without an intent is read without observe."""
        facts = self._raw_facts(self.variables["hostvars"][host]).get("rdma")
        try:
            is_stored = (self.folder.path / self.folder.host_file("facts", host)).exists()
            return from_dict(facts if is_stored else admitted(facts)) if facts else None
        except Exception as error:  # noqa: BLE001 (whatever a host's data does)
            display.warning(f"{host}: its facts are refused: {error}")
            return None

    def _known(self, host: str) -> Known:
        """All facts of this run, or Ansible's digest of them, and the intent. A refused intent, or one of an earlier run, is not used."""
        tree = self.folder.read_if_there(self.folder.host_file("facts", host))
        facts = from_dict(tree) if tree else self._brief(host)
        return Known(host, facts, None if host in self._unusable else self.intent_of(host))

    def _is_absent(self, host: str, problems: Iterable[str]) -> bool:
        """Whether the inventory has no part of an intent for the host, and there is no other problem."""
        variables = self.variables["hostvars"][host]
        return not any(name in variables for name in SECTIONS) and all(each.startswith("rdma_rails is missing") for each in problems)


def _lines(handle: TextIO) -> Iterator[str]:
    """The lines of a log. An extremely long line comes in pieces."""
    while line := handle.readline(4 * LONGEST_LINE):
        yield line
