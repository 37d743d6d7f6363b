# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the action plugins share: arguments checked, the run's folder at hand, and where it is in every result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.rdma.cluster.plugins.module_utils._load import busy_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder, RunFolderError


class RunAction(ActionBase):
    """An action of this collection: give ARGUMENTS and `work`."""

    TRANSFERS_FILES = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ansible's entry; the result says changed: false and run_folder unless `work` says otherwise."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        self.variables: dict[str, Any] = task_vars or {}
        _validation, options = self.validate_argument_spec(dict(self.ARGUMENTS))  # type: ignore[no-untyped-call]
        try:
            self.folder = RunFolder.current(str(self._setting("rdma_run_dir", "")))
            return {**result, "changed": False, "run_folder": str(self.folder.path), **self.work(options)}
        except RunFolderError as error:
            return {**result, "changed": False, "failed": True, "msg": str(error)}

    @property
    def host(self) -> str:
        """The host's name in the inventory."""
        return str(self.variables["inventory_hostname"])

    @property
    def intent(self) -> dict[str, Any]:
        """The host's normalised intent."""
        intent: dict[str, Any] = self.variables["ansible_facts"]["rdma_intent"]
        return intent

    @property
    def facts(self) -> dict[str, Any]:
        """The digest of the host's facts."""
        facts: dict[str, Any] = self.variables["ansible_facts"]["rdma"]
        return facts

    @property
    def all_facts(self) -> dict[str, Any]:
        """The whole tree of the host's facts, of which Ansible keeps the digest only."""
        tree: dict[str, Any] | None = self.folder.read_if_there(self.folder.host_file("facts", self.host))
        return self.facts if tree is None else tree

    @property
    def proof_max_age_hours(self) -> float:
        """How long a measurement holds, if nothing that it depends on changes."""
        return float(self._setting("rdma_proof_max_age_hours", 168))

    @property
    def facts_max_age_seconds(self) -> float:
        """How long facts hold within a run."""
        return float(self._setting("rdma_facts_max_age_seconds", 300))

    def _setting(self, name: str, default: Any) -> Any:
        """A variable of the run, as docs/intent.md lists them."""
        return self._templar.template(self.variables[name]) if name in self.variables else default

    @staticmethod
    def _load_allowed(variables: Mapping[str, Any]) -> bool:
        """Whether a host may be measured while it is at work."""
        return bool(boolean(variables.get("rdma_load_allowed", False)))  # type: ignore[no-untyped-call]

    def at_work(self, loads: Mapping[str, Mapping[str, Any] | None]) -> dict[str, str]:
        """The hosts that are at work and may not be measured: host → what is at work there. loads: of the facts, by host."""
        hostvars = self.variables["hostvars"]
        idle_only = [host for host in loads if not self._load_allowed(hostvars[host])]
        words = {host: busy_words(loads[host]) for host in idle_only}
        return {host: each for host, each in words.items() if each}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Do what the action is for and return what it adds to the result."""
        raise NotImplementedError

    def module(self, called: str, /, **arguments: Any) -> dict[str, Any]:
        """Run a module of this collection on the host."""
        done: dict[str, Any] = self._execute_module(module_name=f"rdma.cluster.{called}", module_args=arguments, task_vars=self.variables)
        return done
