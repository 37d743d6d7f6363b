# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint of NCCL's variables on the control node: the intent's side of them, and the sources in the facts."""

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
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.management import KEY as MANAGEMENT
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import TOPOLOGY, profile_settings
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import (
    GID_INDEX,
    TRAFFIC_CLASS,
    compute_rails,
    nccl_files,
    roce_computes,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.fabric import COLLNET, CROSS_NIC, PKEY, rails_apart
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import plugin_variables
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.gpudirect import NONE, gpudirect_path
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile, service_level

#: The part of the intent from which variables follow that are neither requested nor set by a profile.
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
    """Return each variable that the intent may set → the responsible part of the intent."""
    nccl = intent["nccl"]
    by_profile = {setting.name: "rdma_nccl.profile" for setting, _value in profile_settings(intent, facts)}
    asked_for = dict.fromkeys(nccl["variables"], "rdma_nccl.variables")
    by_management = intent["fabric"]["management"] and not nccl["socket_ifname"]
    socket = {SOCKET_IFNAME: MANAGEMENT} if by_management else {}
    by_plugin = dict.fromkeys(plugin_variables(intent, facts), "rdma_nccl.plugin")
    return {**FOLLOWS_FROM, **socket, **by_profile, **by_plugin, TOPOLOGY: "rdma_nccl.topology_file", **asked_for}


def written(intent: Intent, facts: RunFacts) -> dict[str, Mapping[str, str]]:
    """Return the variables that the nccl stage writes, in the form of the facts: nccl.conf and the environment file, by path."""
    ours = (intent["nccl"]["conf_file"], intent["nccl"]["environment_file"])
    return {file.path: parse_nccl_conf(file.text).variables for file in nccl_files(intent, facts) if file.path in ours and file.content}


SITE, ROOTS = NCCL_FILES
#: Rules that the finding nccl.hca also covers, for each device in NCCL_IB_HCA.
_OF_HCA = ("devices_not_known", "hca_missing", "hca_unused")
#: Rules about which file is read, independent of its content.
_OF_FILES = ("shadowed", "not_read")


def nccl_lint_plan(intent: Intent, facts: Facts) -> dict[str, Any]:
    """Return the inputs of a host's NCCL variables, in the shape of the plan of rdma.cluster.nccl_lint; None: unknown or not planned."""
    rails = intent["rails"]
    profile = roce_profile(intent) if roce_computes(intent) else None
    return {
        "leave_out": _leave_out(intent, facts),
        "traffic_class": profile["traffic_class"] if profile else None,
        "trust": profile["trust"] if profile else None,
        "service_level": service_level(compute_rails(intent)),
        "rails_apart": rails_apart(intent) if rails else None,
        "gpudirect": _gpudirect(intent, facts),
        "asked_for": sorted(intent["nccl"]["variables"]),
        "rail_interfaces": {name: rail.name for rail in resolve(rails, facts) for name in rail.interfaces},
    }


def _leave_out(intent: Intent, facts: Facts) -> dict[str, str]:
    """Return devices that do not belong to a compute rail → their role; none if the intent has no compute rail."""
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
    """Return problems of variables by name, or of the text of an nccl.conf.

    facts: a tree of rdma_facts, or a part of it. path: the file that it is, or will be.
    """
    if isinstance(variables, str):
        conf = parse_nccl_conf(variables)
        source = Source(SITE_FILE, path, "", conf.variables, (*conf.ignored, *conf.altered))
    else:
        source = Source(SITE_FILE, path, "", {name: str(value) for name, value in variables.items()})
    return [problem.to_dict() for problem in lint([source], facts or {}, version, Plan(**(plan or {})))]


def host_problems(intent: Intent, facts: RunFacts) -> list[dict[str, str]] | None:
    """Return problems of the files that rdma_facts has read on a host; None if it has read none of them.

    A problem that other findings of the gate report is only a note. Variables of the intent are corrected there, and reported once for all
    our files.
    """
    files = facts.nccl_files
    if files is None:
        return None
    plan, ours = Plan(**nccl_lint_plan(intent, facts)), _Ours.of(intent, facts, files)
    sources = [ours.marked(_source(path, variables, ours.environment), variables) for path, variables in sorted(files.items())]
    problems = lint(sources, _facts_for_lint(facts), intent["nccl"]["version"], plan)
    found = [replace(each, severity=INFO) if ours.reported_elsewhere(each, sources) else each for each in problems]
    return [problem.to_dict() for problem in sorted(found, key=lambda each: SEVERITIES.index(each.severity))]


def _facts_for_lint(facts: Facts) -> dict[str, Any]:
    """Return the parts of the facts that rules read, in the shape of their tree."""

    def port_facts(port: Port) -> dict[str, Any]:
        return {"state": port.state, "link_layer": port.link_layer, "rocev2": port.rocev2}

    devices = {name: {"ports": {number: port_facts(port) for number, port in each.ports.items()}} for name, each in facts.devices.items()}
    return {"devices": devices, "interfaces": facts.interfaces, "modules": facts.stack.modules if facts.stack else None}


@dataclass(frozen=True)
class _Ours:
    """The nccl stage's files: path → name → value, as in the file. origins: name → the responsible part of the intent.

    stale: whether a file differs from the plan, which is the finding nccl.file. others: names that foreign lines in these files set.
    """

    written: Mapping[str, Mapping[str, str]]
    origins: Mapping[str, str]
    environment: str
    stale: bool
    others: Collection[str] = ()

    @classmethod
    def of(cls, intent: Intent, facts: RunFacts, there: Mapping[str, Mapping[str, str]]) -> _Ours:
        """Return the stage's files. there: the facts' nccl_files."""
        files = {path: _shown_by_facts(variables) for path, variables in written(intent, facts).items()}
        others = {path: dict(others_of(facts.files, path)) for path in files}
        stale = any(there.get(path) != {**others[path], **variables} for path, variables in files.items())
        kept = {name for variables in others.values() for name in variables}
        return cls(files, origins(intent, facts), intent["nccl"]["environment_file"], stale, kept)

    def marked(self, source: Source, there: Mapping[str, str]) -> Source:
        """Return a source that marks the variables from the intent, so that two files do not report the same problem twice."""
        wanted = self.written.get(_file_of(source), {})
        same = {name for name, value in there.items() if wanted.get(name) == value}
        return replace(source, origins={name: self.origins.get(name, "rdma_nccl") for name in sorted(same)})

    def reported_elsewhere(self, problem: Problem, sources: Sequence[Source]) -> bool:
        """Return whether another finding of the gate reports it: nccl.hca for named devices, nccl.file for rewritten files."""
        if problem.rule in _OF_HCA and problem.where == self.origins[HCA]:
            return any(_names_devices(source.variables[HCA]) for source in sources if HCA in source.origins)
        return self.stale and problem.rule not in (*_OF_FILES, "value_form") and self._is_rewritten(problem, sources)

    def _is_rewritten(self, problem: Problem, sources: Sequence[Source]) -> bool:
        """Return whether it is about a variable in our file that the intent does not have, or one that only the intent has."""
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
