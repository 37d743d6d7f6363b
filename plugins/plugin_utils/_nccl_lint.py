# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint of NCCL's variables on the control node: what the intent says about them, and what facts tell of the sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._environment_file import unquoted
from ansible_collections.rdma.cluster.plugins.module_utils._host_state import NCCL_FILES
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_conf import parse_nccl_conf
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_lint import lint
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_precedence import ENVIRONMENT, NAMED_FILE, SITE_FILE, USER_FILE, Source
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_problem import Plan
from ansible_collections.rdma.cluster.plugins.module_utils._rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._gpudirect_plan import NONE, gpudirect_path
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl import roce_computes
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl_fabric import rails_apart
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce_profile import roce_profile

Intent = Mapping[str, Any]
Facts = Mapping[str, Any]
SITE, ROOTS = NCCL_FILES


def nccl_lint_plan(intent: Intent, facts: Facts | None) -> dict[str, Any]:
    """What NCCL's variables of a host depend on, in the shape that rdma.cluster.nccl_lint takes as plan; None: not known or not planned."""
    rails = intent["rails"]
    profile = roce_profile(intent) if roce_computes(intent) else None
    return {
        "leave_out": _leave_out(intent, facts or {}),
        "traffic_class": profile["traffic_class"] if profile else None,
        "trust": profile["trust"] if profile else None,
        "rails_apart": rails_apart(intent) if rails else None,
        "gpudirect": _gpudirect(intent, facts or {}),
        "asked_for": sorted(intent["nccl"]["variables"]),
    }


def _leave_out(intent: Intent, facts: Facts) -> dict[str, str]:
    """Devices that are none of a compute rail → what they are; none where the intent names no compute rail."""
    rails = resolve(intent["rails"], facts)
    compute = {rail.device for rail in rails if rail.rail["role"] == "compute"}
    others = {rail.device: f"{rail.rail['role']}, {rail.name}" for rail in rails if rail.rail["role"] != "compute"}
    if not compute or None in compute:
        return {}
    return {name: others.get(name, "no rail of NCCL's") for name in sorted(facts.get("devices") or {}) if name not in compute}


def _gpudirect(intent: Intent, facts: Facts) -> str | None:
    if (intent.get("gpudirect") or {}).get("path") == NONE:
        return NONE
    return gpudirect_path(intent, facts)["path"]


def nccl_lint(
    variables: Mapping[str, Any] | str,
    facts: Facts | None = None,
    version: str | None = None,
    plan: Mapping[str, Any] | None = None,
    path: str = SITE,
) -> list[dict[str, str]]:
    """Problems of variables by name, or of the text of an nccl.conf. path: the file that it is, or will be."""
    if isinstance(variables, str):
        conf = parse_nccl_conf(variables)
        source = Source(SITE_FILE, path, "", conf.variables, (*conf.ignored, *conf.altered))
    else:
        source = Source(SITE_FILE, path, "", {name: str(value) for name, value in variables.items()})
    return [problem.to_dict() for problem in lint([source], facts or {}, version, Plan(**(plan or {})))]


def host_problems(intent: Intent, facts: Facts) -> list[dict[str, str]] | None:
    """Problems of the files that rdma_facts has read on a host; None if it has read none of them."""
    files = facts.get("nccl_files")
    if files is None:
        return None
    plan = Plan(**nccl_lint_plan(intent, facts))
    return [problem.to_dict() for problem in lint(_sources(intent, files), facts, intent["nccl"]["version"], plan)]


def _sources(intent: Intent, files: Mapping[str, Mapping[str, str]]) -> list[Source]:
    environment = intent["nccl"]["environment_file"]
    return [_source(path, variables, environment) for path, variables in sorted(files.items())]


def _source(path: str, variables: Mapping[str, str], environment: str) -> Source:
    if path == SITE:
        return Source(SITE_FILE, path, "", variables)
    if path == ROOTS:
        return Source(USER_FILE, path, "root", variables)
    if path == environment:
        plain = {name: unquoted(value) for name, value in variables.items()}
        return Source(ENVIRONMENT, f"environment of what is started with {path}", path, plain)
    return Source(NAMED_FILE, path, environment, variables)
