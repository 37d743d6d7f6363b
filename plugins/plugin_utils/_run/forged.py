# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of this run although a host's facts may set our variables, and the variables that they set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import DEFAULT_FOLDER, RunFolder, RunFolderError, run_id
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.own_names import names_finding, own_names, refused, remedy

Variables = Mapping[str, Any]


def raw_facts(variables: Variables) -> Mapping[str, Any]:
    """The facts that modules returned for a host. Only Ansible's ansible_facts has all of them."""
    facts: Mapping[str, Any] = variables.get("ansible_facts") or {}
    return facts


def run_folder(variables: Variables, template: Callable[[Any], Any]) -> RunFolder:
    """This run's folder. If the host's facts have rdma_run_dir, the folder that the run already has."""
    facts, name = raw_facts(variables), "rdma_run_dir"
    if name not in facts:
        return RunFolder.current(str(template(variables[name]) if name in variables else ""))
    hostvars = variables["hostvars"]
    others = [hostvars[host] for host in variables["ansible_play_hosts_all"] if name not in raw_facts(hostvars[host])]
    trusted = [str(each.get(name, "")) for each in others]
    for base in dict.fromkeys(["", *trusted, str(variables.get(name, ""))]):
        folder = RunFolder(Path(base or DEFAULT_FOLDER).absolute() / run_id())
        # Only this run knows the name of its folder, so an existing one was created for a host without such facts.
        if folder.path.is_dir():
            return folder
    if trusted:
        return RunFolder.current(trusted[0])
    host = variables["inventory_hostname"]
    raise RunFolderError(f"{host}: {refused([name])}, and this run has no folder yet. {remedy(host)}")


def forged_names(variables: Variables, folder: RunFolder) -> list[str]:
    """Our variables that the host's facts set, and rdma_intent if it differs from the one that the intent action wrote in this run."""
    facts = raw_facts(variables)
    names = own_names(facts)
    intent = folder.host_file("intent", str(variables["inventory_hostname"]))
    written = folder.read_if_there(intent) if "rdma_intent" in facts else None
    return [*names, "rdma_intent"] if written is not None and plain(facts["rdma_intent"]) != written else names


def note_forged(variables: Variables, folder: RunFolder, names: Iterable[str]) -> None:
    """Record a host whose facts set our variables in the evidence of the current stage."""
    stage, host = str(variables.get("rdma_stage", "")), str(variables["inventory_hostname"])
    if stage in STAGES:
        folder.write_findings(stage, host, [names_finding(stage, host, list(names))])


def nothing_done(host: str, names: Iterable[str]) -> str:
    """The message for a host whose facts set our variables."""
    return f"{host}: {refused(names)}. Nothing was done. {remedy(host)}"


def plain(value: Any) -> Any:
    """A value after a round trip through the run folder's JSON."""
    return json.loads(json.dumps(value, default=str))
