# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts' answers about their neighbors in the run folder: cables/HOST.json, {"peers": ..., "why_not": ...}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.link_peers import LinkPeers
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

FOLDER = "cables"
NOT_ASKED = "its neighbors were not read in this run"


@dataclass(frozen=True)
class Answer:
    """peers: None if they could not be read; why_not is then the reason."""

    peers: LinkPeers | None
    why_not: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"peers": None if self.peers is None else self.peers.to_dict(), "why_not": self.why_not}


def answer_of(host: str, result: Mapping[str, Any]) -> Answer:
    """Return the answer in the result of the module link_peers. A host's answer in another form is refused."""
    if result.get("failed"):
        return Answer(None, clean(next(iter(str(result.get("msg") or "").strip().splitlines()), "link_peers failed"), 300))
    try:
        return Answer(LinkPeers.from_dict(result))
    except ParseError as error:
        return Answer(None, f"rejected the answer of {host}: {error}")


def read_answers(folder: RunFolder, hosts: Iterable[str]) -> dict[str, Answer]:
    """Return host → its answer; a host without one was not asked."""
    return {host: _stored(folder, host) for host in hosts}


def _stored(folder: RunFolder, host: str) -> Answer:
    try:
        stored = folder.read_if_there(folder.host_file(FOLDER, host))
        if stored is None:
            return Answer(None, NOT_ASKED)
        return Answer(None if stored["peers"] is None else LinkPeers.from_dict(stored["peers"]), str(stored["why_not"]))
    except (ParseError, KeyError, TypeError) as error:
        return Answer(None, f"the file of its neighbors is damaged: {error}")
