# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base classes of the action plugins: checked arguments, the run folder, and its path in every result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from ansible import constants as C  # noqa: N812 (as Ansible itself calls it)
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.plugins.action.normal import ActionModule as Normal

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load, busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, RunFolderError
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.forged import (
    forged_names,
    note_forged,
    nothing_done,
    plain,
    raw_facts,
    run_folder,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.own_names import NOTED

#: The effects whose permission EFFECT_allowed changes the expectation of a check.
CHECKED_EFFECTS = ("reboot", "pcie_mrrs", "pcie_acs_write")
#: The folder of the variables that the intent action recorded.
SETTINGS = "settings"


#: Facts of the connection that Ansible itself adds to a module's result.
INTERPRETER = ("discovered_interpreter_", "ansible_discovered_interpreter_")
#: The keys of a result that our own actions add for the summary.
RUN_WORDS = ("run_folder", "explained")


#: The parts of a module's answer that Ansible prints as they are.
PRINTED = ("msg", "exception", "warnings", "deprecations", "reason")
#: Control characters, raw and in JSON's spelling. JSON has none within its texts; a terminal ends its lines with \r\n.
_RAW_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
_CONTROL = re.compile(_RAW_CONTROL.pattern + r"|\\(?:[bfr]|u00[0189][0-9A-Fa-f]|u007[Ff]|u20[0-9A-Fa-f]{2})")


class CleanAnswers(ActionBase):
    """An action that cleans its module's output before Ansible prints it."""

    def _parse_returned_data(self, res: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        data: dict[str, Any] = super()._parse_returned_data({**res, "stdout": clean_answer(res.get("stdout", ""))}, *args, **kwargs)
        return data


class RunAction(CleanAnswers):
    """An action of this collection; subclasses define ARGUMENTS and `work`."""

    TRANSFERS_FILES = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {}
    _raw_facts = staticmethod(raw_facts)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the action for Ansible; the result has run_folder, and changed: false unless `work` returns otherwise.

        A host whose facts set a variable of this collection fails here, before anything is done. A task that runs once for all hosts
        continues, because it does not use variables of this host that facts could have set.
        """
        result: dict[str, Any] = super().run(tmp, task_vars)
        self.variables: dict[str, Any] = task_vars or {}
        try:
            self.folder = self._run_folder()
            forged = self._forged()
            if forged and not self._task.run_once:
                return {**result, "changed": False, **self.refuse(forged), "run_folder": str(self.folder.path)}
            _validation, options = self.validate_argument_spec(dict(self.ARGUMENTS))  # type: ignore[no-untyped-call]
            return {**result, "changed": False, **self.work(options), "run_folder": str(self.folder.path)}
        except RunFolderError as error:
            return {**result, "changed": False, "failed": True, "msg": str(error)}

    def _run_folder(self) -> RunFolder:
        """This run's folder, independent of the host's facts."""
        return run_folder(self.variables, self._templar.template)

    def _forged(self) -> list[str]:
        """Our variables that the host's facts set or have changed."""
        return forged_names(self.variables, self.folder)

    def refuse(self, names: Sequence[str]) -> dict[str, Any]:
        """The result for a host whose facts set our variables; the stage's evidence records them."""
        note_forged(self.variables, self.folder, names)
        return {"failed": True, "msg": nothing_done(self.host, names)}

    @property
    def host(self) -> str:
        """The host's name in the inventory."""
        return str(self.variables["inventory_hostname"])

    @property
    def intent(self) -> Intent:
        """The host's normalized intent as the control node wrote it in this run; the host could change the copy in its facts."""
        intent: Intent | None = self.intent_of(self.host)
        if intent is None:
            raise AnsibleError(f"The intent of {self.host} was not read in this run. Call rdma.cluster.intent first.")
        return intent

    def intent_of(self, host: str) -> Intent | None:
        """The normalized intent of a host as the control node wrote it in this run, None if it did not."""
        intent: Intent | None = self.folder.read_if_there(self.folder.host_file("intent", host))
        return intent

    def play_intents(self) -> tuple[dict[str, Intent], str]:
        """Return host of the play → its intent, and which intents this run has not read, "" if none."""
        hosts = self.variables["ansible_play_hosts"]
        intents = {host: intent for host in hosts if (intent := self.intent_of(host)) is not None}
        unread = ", ".join(host for host in hosts if host not in intents)
        return intents, f"The intent was not read in this run: {unread}. Call rdma.cluster.intent before." if unread else ""

    def lost_hosts(self, unread: Iterable[str] = ()) -> list[str]:
        """Return the hosts that have left the play, a sentence each: what runs there is not known. unread: others that were not read."""
        playing = set(self.variables["ansible_play_hosts"])
        gone = [host for host in self.variables["ansible_play_hosts_all"] if host not in playing]
        return [f"{host} was not read, or has failed in this run" for host in (*gone, *unread)]

    @property
    def all_facts(self) -> dict[str, Any]:
        """The host's facts from this run's folder, else those that Ansible keeps."""
        tree: dict[str, Any] | None = self.folder.read_if_there(self.folder.host_file("facts", self.host))
        kept: dict[str, Any] = self.variables["ansible_facts"]["rdma"] if tree is None else tree
        return kept

    @property
    def proof_max_age_hours(self) -> float:
        """How long a measurement is valid if nothing that it depends on changes."""
        return float(self._setting("rdma_proof_max_age_hours", 168))

    @property
    def facts_max_age_seconds(self) -> float:
        """How long facts are valid within a run."""
        return float(self._setting("rdma_facts_max_age_seconds", 300))

    @property
    def allowed(self) -> dict[str, bool]:
        """The effects that change the expectation of a check → whether this run allows them."""
        return {effect: boolean(self._setting(f"{effect}_allowed", False)) for effect in CHECKED_EFFECTS}  # type: ignore[no-untyped-call]

    def local_file(self, name: str) -> Path:
        """A file on the control node. Raises AnsibleError if there is none.

        A relative path starts at the folder of the host's inventory; in a task that runs once, of the first host's. If there is no such
        file, it starts at the playbook's folder or its files/.
        """
        inventory = "" if "inventory_dir" in self._raw_facts(self.variables) else self.variables.get("inventory_dir")
        beside = Path(inventory, name) if inventory else None
        return beside if beside and beside.is_file() else Path(self._find_needle("files", name))  # type: ignore[no-untyped-call]

    def given_file(self, name: str) -> Path:
        """A file that the user names on the command line. Raises AnsibleError if there is none.

        A relative path is searched in the working directory, then in the playbook's folder and its files/.
        """
        path = Path(name).expanduser()
        return path if path.is_file() else Path(self._find_needle("files", name))  # type: ignore[no-untyped-call]

    def allowed_on(self, host: str) -> dict[str, bool]:
        """The same as `allowed` for any host of the play."""
        return {effect: self._is_allowed(host, f"{effect}_allowed") for effect in CHECKED_EFFECTS}

    def plan_text(self, name: str) -> str:
        """A cable plan on the control node (local_file) as text. Raises ParseError."""
        try:
            return self.local_file(name).read_text(encoding="utf-8")
        except (AnsibleError, OSError, UnicodeDecodeError) as error:
            raise ParseError(f"{name} cannot be read: {' '.join(str(error).split())[:300]}") from error

    def _setting(self, name: str, default: Any) -> Any:
        """A variable of the run (docs/intent.md); the value that the intent action recorded if the host's facts set it."""
        return self._noted(self.host, name, default) if name in self._raw_facts(self.variables) else self._templated(name, default)

    def argument(self, value: Any, *names: str, default: Any) -> Any:
        """An argument of a task that runs once for all hosts. names: the variables that it is made of, the most specific first.

        If this host's facts set one of them, the argument is the value that the intent action recorded, or the default.
        """
        if not set(names) & set(self._raw_facts(self.variables)):
            return value
        noted = (self._noted(self.host, name, None) for name in names)
        return next((each for each in noted if each is not None), default)

    def note_settings(self) -> None:
        """Record the variables that a task may need after the host's facts have set them. They contain no secrets."""
        noted = {}
        for name in NOTED:
            # A role's default may need variables that only the role has.
            with suppress(AnsibleError):
                noted[name] = plain(self._templated(name, None))
        self.folder.write_json(self.folder.host_file(SETTINGS, self.host), noted)

    def _noted(self, host: str, name: str, default: Any) -> Any:
        noted = (self.folder.read_if_there(self.folder.host_file(SETTINGS, host)) or {}).get(name)
        return default if noted is None else noted

    def _templated(self, name: str, default: Any) -> Any:
        return self._templar.template(self.variables[name]) if name in self.variables else default

    def _load_allowed(self, host: str) -> bool:
        """Whether a host may be measured while it is in use."""
        return self._is_allowed(host, "rdma_load_allowed")

    def _is_allowed(self, host: str, name: str) -> bool:
        """A permission of any host of the play; the recorded one if the host's facts set it."""
        variables = self.variables["hostvars"][host]
        forged = name in self._raw_facts(variables)
        return bool(boolean(self._noted(host, name, False) if forged else variables.get(name, False)))  # type: ignore[no-untyped-call]

    def at_work(self, loads: Mapping[str, Load | None]) -> dict[str, str]:
        """The hosts in use that may not be measured: host → what uses it. loads: the load of the facts, by host."""
        idle_only = [host for host in loads if not self._load_allowed(host)]
        words = {host: busy_words(loads[host]) for host in idle_only}
        return {host: each for host, each in words.items() if each}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Do the action's work and return its part of the result."""
        raise NotImplementedError

    def _execute_module(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Run a module as Ansible does, and drop facts that would become variables: a host may only return `rdma`."""
        return without_facts(super()._execute_module(*args, **kwargs), "rdma")

    def module(self, called: str, /, **arguments: Any) -> dict[str, Any]:
        """Run a module of this collection on the host."""
        done: dict[str, Any] = self._execute_module(module_name=f"rdma.cluster.{called}", module_args=arguments, task_vars=self.variables)
        return done


class SpokenModule(CleanAnswers, Normal):
    """A module of this collection that one host runs for itself."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module for Ansible, without the keys of our own actions in the result."""
        result: dict[str, Any] = super().run(tmp, task_vars)  # type: ignore[no-untyped-call]
        return {name: value for name, value in result.items() if name not in RUN_WORDS}


class HostModule(SpokenModule):
    """A module of this collection that a task runs for all hosts at once or on another host, where its facts would apply to every host.

    KEPT: the facts that it may return.
    """

    KEPT: ClassVar[tuple[str, ...]] = ()

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module for Ansible, without other facts in the result."""
        return without_facts(super().run(tmp, task_vars), *self.KEPT)


def clean_answer(text: str) -> str:
    """A module's output without control characters in the parts that Ansible itself prints.

    Ansible also prints keys that a module may not return (add_host, _ansible_*), and text around the JSON object.
    """
    if not _CONTROL.search(text):
        return text
    text = _RAW_CONTROL.sub("?", text)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(answer, dict):
        return text
    kept = {name: value for name, value in answer.items() if not name.startswith("_ansible_") and name not in C.INTERNAL_RESULT_KEYS}
    return json.dumps({name: _cleaned(value) if name in PRINTED else value for name, value in kept.items()})


def _cleaned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {clean(str(name)): _cleaned(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return clean(value, len(value), lines=True) if isinstance(value, str) else value


def without_facts(result: dict[str, Any], *kept: str) -> dict[str, Any]:
    """A module's result with only the facts of these names and those that Ansible adds."""
    facts = result.get("ansible_facts")
    if isinstance(facts, Mapping):
        result["ansible_facts"] = {name: value for name, value in facts.items() if name in kept or name.startswith(INTERPRETER)}
    elif facts is not None:
        result["ansible_facts"] = {}
    return result
