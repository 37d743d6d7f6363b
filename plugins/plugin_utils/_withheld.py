# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Effects that a role did not apply because the user has not allowed them: one record for each host and effect in the run folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder, natural

FOLDER = "withheld"


@dataclass(frozen=True)
class Withheld:
    """One withheld effect of one host.

    effect: "pcie_acs_write"; stage: "" outside a stage; reason: why the role wants it, one sentence; touches: the ports, packages or
    hosts that it would change; allow: what the user does to allow it.
    """

    host: str
    effect: str
    stage: str
    reason: str
    touches: tuple[str, ...]
    allow: str

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "touches": list(self.touches)}


@dataclass(frozen=True)
class WithheldGroup:
    """One withheld effect with all hosts that share the reason. touches: of all hosts, each once."""

    effect: str
    stage: str
    reason: str
    allow: str
    hosts: tuple[str, ...]
    touches: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "hosts": list(self.hosts), "touches": list(self.touches)}


def allow_words(effect: str) -> str:
    """How to allow an effect whose variable follows the rule."""
    return f"{effect}_allowed: true"


def reason_words(reason: Any) -> str:
    """A reason as one sentence: a text, a list of texts, or a mapping of ports (packages, planes) to their reasons."""
    if isinstance(reason, Mapping):
        return "; ".join(f"{name}: {reason_words(each)}" for name, each in reason.items())
    if isinstance(reason, (list, tuple)):
        return "; ".join(reason_words(each) for each in reason)
    return " ".join(str(reason).split())


def record(folder: RunFolder, withheld: Withheld) -> None:
    """Write the record. A later one of the same host and effect replaces it."""
    folder.write_json(folder.host_file(f"{FOLDER}/{withheld.effect}", withheld.host), withheld.to_dict())


def grouped(folder: RunFolder) -> list[WithheldGroup]:
    """All withheld effects of a run; hosts with the same reason share a group."""
    groups: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for file in sorted((folder.path / FOLDER).glob("*/*.json"), key=lambda file: (file.parent.name, natural(file.stem))):
        data = json.loads(file.read_text(encoding="utf-8"))
        groups.setdefault((data["effect"], data["stage"], data["reason"], data["allow"]), []).append(data)
    return [
        WithheldGroup(*key, hosts=_once(data["host"] for data in those), touches=_once(each for data in those for each in data["touches"]))
        for key, those in groups.items()
    ]


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
