# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint of NCCL's variables on the control node: what the intent says about them, and what facts tell of the sources."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.environment_file import unquoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import others_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import NCCL_FILES, NCCL_PREFIXES
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.devices import parse_list
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.lint import lint
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import (
    ENVIRONMENT,
    EVERYBODY,
    NAMED_FILE,
    SITE_FILE,
    USER_FILE,
    Source,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import INFO, SEVERITIES, Plan, Problem
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import HCA, SOCKET_IFNAME
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import TOPOLOGY, profile_settings
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import GID_INDEX, TRAFFIC_CLASS, nccl_files, roce_computes
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.fabric import COLLNET, CROSS_NIC, PKEY, rails_apart
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.gpudirect import NONE, gpudirect_path
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile

#: What of the intent the variables follow from that neither somebody asks for nor a profile sets.
FOLLOWS_FROM = {
    HCA: "rdma_rails",
    GID_INDEX: "rdma_rails",
    PKEY: "rdma_partitions",
    COLLNET: "rdma_fabric",
    CROSS_NIC: "rdma_fabric",
    TRAFFIC_CLASS: "rdma_roce",
    SOCKET_IFNAME: "rdma_nccl.socket_ifname",
}


def origins(intent: Intent, facts: Facts) -> dict[str, str]:
    """Each variable that the intent may set → the part of the intent that says so."""
    nccl = intent["nccl"]
    by_profile = {setting.name: "rdma_nccl.profile" for setting, _value in profile_settings(intent, facts)}
    asked_for = dict.fromkeys(nccl["variables"], "rdma_nccl.variables")
    return {**FOLLOWS_FROM, **by_profile, TOPOLOGY: "rdma_nccl.topology_file", **asked_for}


def written(intent: Intent, facts: RunFacts) -> dict[str, Mapping[str, str]]:
    """The variables that the nccl stage writes, as facts would tell of them: nccl.conf and the environment file, each by its path."""
    ours = (intent["nccl"]["conf_file"], intent["nccl"]["environment_file"])
    return {file.path: parse_nccl_conf(file.text).variables for file in nccl_files(intent, facts) if file.path in ours and file.content}


SITE, ROOTS = NCCL_FILES
#: Rules that the finding nccl.hca has too, of each device that NCCL_IB_HCA names.
_OF_HCA = ("devices_not_known", "hca_missing", "hca_unused")
#: Rules about which file is read, whatever is in it.
_OF_FILES = ("shadowed", "not_read")


def nccl_lint_plan(intent: Intent, facts: Facts) -> dict[str, Any]:
    """What NCCL's variables of a host depend on, in the shape that rdma.cluster.nccl_lint takes as plan; None: not known or not planned."""
    rails = intent["rails"]
    profile = roce_profile(intent) if roce_computes(intent) else None
    return {
        "leave_out": _leave_out(intent, facts),
        "traffic_class": profile["traffic_class"] if profile else None,
        "trust": profile["trust"] if profile else None,
        "rails_apart": rails_apart(intent) if rails else None,
        "gpudirect": _gpudirect(intent, facts),
        "asked_for": sorted(intent["nccl"]["variables"]),
        "rail_interfaces": {rail.netdev: str(rail.rail["name"]) for rail in resolve(rails, facts) if rail.netdev is not None},
    }


def _leave_out(intent: Intent, facts: Facts) -> dict[str, str]:
    """Devices that are none of a compute rail → what they are; none where the intent names no compute rail."""
    rails = resolve(intent["rails"], facts)
    compute = {rail.device for rail in rails if rail.rail["role"] == "compute"}
    others = {rail.device: f"{rail.rail['role']}, {rail.name}" for rail in rails if rail.rail["role"] != "compute"}
    if not compute or None in compute:
        return {}
    return {name: others.get(name, "not a rail for NCCL") for name in sorted(facts.devices) if name not in compute}


def _gpudirect(intent: Intent, facts: Facts) -> str | None:
    if (intent.get("gpudirect") or {}).get("path") == NONE:
        return NONE
    return gpudirect_path(intent, facts)["path"]


def nccl_lint(
    variables: Mapping[str, Any] | str,
    facts: Mapping[str, Any] | None = None,
    version: str | None = None,
    plan: Mapping[str, Any] | None = None,
    path: str = SITE,
) -> list[dict[str, str]]:
    """Problems of variables by name, or of the text of an nccl.conf.

    facts: a tree of rdma_facts, or a part of it; path: the file that it is, or will be.
    """
    if isinstance(variables, str):
        conf = parse_nccl_conf(variables)
        source = Source(SITE_FILE, path, "", conf.variables, (*conf.ignored, *conf.altered))
    else:
        source = Source(SITE_FILE, path, "", {name: str(value) for name, value in variables.items()})
    return [problem.to_dict() for problem in lint([source], facts or {}, version, Plan(**(plan or {})))]


def host_problems(intent: Intent, facts: RunFacts) -> list[dict[str, str]] | None:
    """Problems of the files that rdma_facts has read on a host; None if it has read none of them.

    What other findings of the gate tell is worth a note only. What the intent has is corrected there, and told once of all our files.
    """
    files = facts.nccl_files
    if files is None:
        return None
    plan, ours = Plan(**nccl_lint_plan(intent, facts)), _Ours.of(intent, facts, files)
    sources = [ours.marked(_source(path, variables, ours.environment), variables) for path, variables in sorted(files.items())]
    problems = lint(sources, _told(facts), intent["nccl"]["version"], plan)
    found = [replace(each, severity=INFO) if ours.told_elsewhere(each, sources) else each for each in problems]
    return [problem.to_dict() for problem in sorted(found, key=lambda each: SEVERITIES.index(each.severity))]


def _told(facts: Facts) -> dict[str, Any]:
    """What rules read of facts, in the shape of their tree."""

    def told(port: Port) -> dict[str, Any]:
        return {"state": port.state, "link_layer": port.link_layer, "rocev2": port.rocev2}

    devices = {name: {"ports": {number: told(port) for number, port in each.ports.items()}} for name, each in facts.devices.items()}
    return {"devices": devices, "interfaces": facts.interfaces, "modules": facts.stack.modules if facts.stack else None}


@dataclass(frozen=True)
class _Ours:
    """What the nccl stage writes: path → name → value, as the file has it. origins: name → what of the intent says so.

    stale: whether a file differs from the plan, which is the finding nccl.file. others: names that lines of others set in these files.
    """

    written: Mapping[str, Mapping[str, str]]
    origins: Mapping[str, str]
    environment: str
    stale: bool
    others: Collection[str] = ()

    @classmethod
    def of(cls, intent: Intent, facts: RunFacts, there: Mapping[str, Mapping[str, str]]) -> _Ours:
        """there: the facts' nccl_files."""
        files = {path: _shown_by_facts(variables) for path, variables in written(intent, facts).items()}
        others = {path: dict(others_of(facts.files, path)) for path in files}
        stale = any(there.get(path) != {**others[path], **variables} for path, variables in files.items())
        kept = {name for variables in others.values() for name in variables}
        return cls(files, origins(intent, facts), intent["nccl"]["environment_file"], stale, kept)

    def marked(self, source: Source, there: Mapping[str, str]) -> Source:
        """A source whose variables that are as the intent has them are known to come from it, so that two files say one thing once."""
        wanted = self.written.get(_file_of(source), {})
        same = {name for name, value in there.items() if wanted.get(name) == value}
        return replace(source, origins={name: self.origins.get(name, "rdma_nccl") for name in sorted(same)})

    def told_elsewhere(self, problem: Problem, sources: Sequence[Source]) -> bool:
        """Whether another finding of the gate has it: nccl.hca of devices that are named, nccl.file of what the stage writes anew."""
        if problem.rule in _OF_HCA and problem.where == self.origins[HCA]:
            return any(_names_devices(source.variables[HCA]) for source in sources if HCA in source.origins)
        return self.stale and problem.rule not in (*_OF_FILES, "value_form") and self._is_written_anew(problem, sources)

    def _is_written_anew(self, problem: Problem, sources: Sequence[Source]) -> bool:
        """Whether it is about what a file of ours has and the intent does not, or about what none has and the intent does."""
        ours = {source.place for source in sources if _file_of(source) in self.written}
        owners = {EVERYBODY, *(source.owner for source in sources)}
        wanted, names = {name for variables in self.written.values() for name in variables}, set(problem.variable.split(", "))
        if names & set(self.others):
            return False
        return bool(problem.variable) and (problem.where in ours or (problem.where in owners and names <= wanted))


def _file_of(source: Source) -> str:
    return source.owner if source.kind == ENVIRONMENT else source.path


def _shown_by_facts(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(NCCL_PREFIXES)}


def _names_devices(value: str) -> bool:
    listed = parse_list(value)
    return bool(listed.entries) and not listed.excluded


def _source(path: str, variables: Mapping[str, str], environment: str) -> Source:
    if path == SITE:
        return Source(SITE_FILE, path, "", variables)
    if path == ROOTS:
        return Source(USER_FILE, path, "root", variables)
    if path == environment:
        plain = {name: unquoted(value) for name, value in variables.items()}
        return Source(ENVIRONMENT, f"environment of programs started with {path}", path, plain)
    return Source(NAMED_FILE, path, environment, variables)
