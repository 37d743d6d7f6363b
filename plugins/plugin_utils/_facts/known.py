# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The known hosts of a run: intent and usable facts of each, who uses them, and whether they have one setting."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load, host_users
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import place_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts, from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder


@dataclass(frozen=True)
class Known:
    """A host's normalized intent and its facts, None if there are none. problem: why its facts cannot be used, else ""."""

    intent: Intent | None
    facts: RunFacts | None
    problem: str = ""


def known_hosts(folder: RunFolder, hosts: Iterable[str], use: Callable[[Mapping[str, Known]], object] | None = None) -> dict[str, Known]:
    """Return intent and facts of hosts, one file of the run at a time.

    use: the processing of all hosts at once, which is first tried on each host alone.
    """
    # All of it is kept. Python would scan it for garbage again and again as it grows.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return {host: _known(folder, host, use) for host in hosts}
    finally:
        if was_enabled:
            gc.enable()


def _known(folder: RunFolder, host: str, use: Callable[[Mapping[str, Known]], object] | None) -> Known:
    intent: Intent | None = folder.read_if_there(folder.host_file("intent", host))
    try:
        facts = folder.read_if_there(folder.host_file("facts", host))
        known = Known(intent, from_dict(comparable(facts)) if facts else None)
        if intent and use is not None:
            use({host: known})
    except Exception as error:  # noqa: BLE001 (whatever a host's data does)
        return Known(intent, None, place_of(error))
    return known


def stored_intents(folder: RunFolder) -> dict[str, Intent]:
    """Return the intent of each host of the run that has one."""
    read = {host: folder.read_if_there(folder.host_file("intent", host)) for host in folder.stored_hosts("intent")}
    return {host: intent for host, intent in read.items() if intent is not None}


def hosts_in_use(folder: RunFolder, hosts: Iterable[str]) -> list[str]:
    """Return the hosts in use, also by queue pairs, a sentence each. A host whose facts were not read in this run counts as in use."""
    users = {host: host_users(_load(folder, host)) for host in hosts}
    return [f"{host} is in use: {words}" for host, words in users.items() if words]


def _load(folder: RunFolder, host: str) -> Load | None:
    """Return the users of a host as they were read: facts to compare have no queue pairs."""
    tree = folder.read_if_there(folder.host_file("facts", host))
    try:
        return from_dict(tree).load if tree else None
    except Exception:  # noqa: BLE001 (whatever a host's data does: it then counts as in use)
        return None


def disagreements(name: str, settings: Mapping[str, object]) -> list[str]:
    """Return the hosts with another setting than the first host, a sentence; none if all have the same. name: of the variable."""
    first = next(iter(settings), None)
    others = [host for host, each in settings.items() if first is not None and each != settings[first]]
    return [f"{', '.join(others[:4])} and {first} have different {name}: set it for all hosts"] if others else []
