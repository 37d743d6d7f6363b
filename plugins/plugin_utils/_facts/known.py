# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The known hosts of a run: intent and usable facts of each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
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
