# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions that a playbook calls, without Ansible: on a run folder, for hosts of a play."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder


def act(
    module: Any,
    folder: RunFolder,
    hosts: Sequence[str],
    host: str = "",
    *,
    gone: Sequence[str] = (),
    variables: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The result of an action for a host; one that runs once, for the first. gone: hosts that are no longer in the play."""
    action = module.ActionModule.__new__(module.ActionModule)
    action.folder, action._task = folder, SimpleNamespace(check_mode=False, run_once=False)
    action._templar = SimpleNamespace(template=lambda value: value)
    action._find_needle = lambda _kind, name: str(folder.path.parent / name)
    facts = {name: {"ansible_facts": {}, "__pairs_collected": {"finished": True}} for name in hosts}
    playing = [name for name in hosts if name not in gone]
    play = {"ansible_play_hosts": playing, "ansible_play_hosts_all": [*hosts], "groups": {"all": [*hosts]}, "hostvars": facts}
    action.variables = {**play, "ansible_facts": {}, "inventory_hostname": host or playing[0], **(variables or {})}
    done: dict[str, Any] = action.work(options)
    return done
