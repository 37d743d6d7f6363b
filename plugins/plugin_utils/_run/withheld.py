# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Effects that a role did not apply because the user has not allowed them: one record for each host and effect in the run folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import LONGEST_SUBJECT
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, if_sound, natural

FOLDER = "withheld"


@dataclass(frozen=True)
class Withheld:
    """One withheld effect of one host.

    effect: "pcie_acs_write"; stage: "" outside a stage; reason: why the role needs it, one sentence; touches: the ports, packages or
    hosts that it would change; allow: the setting that allows it.
    """

    host: str
    effect: str
    stage: str
    reason: str
    touches: tuple[str, ...]
    allow: str

    def __post_init__(self) -> None:
        # Hosts supply reasons and ports.
        for name in ("host", "reason", "allow"):
            object.__setattr__(self, name, clean(getattr(self, name)))
        object.__setattr__(self, "touches", tuple(clean(each, LONGEST_SUBJECT) for each in self.touches))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "touches": list(self.touches)}

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Withheld:
        """The record in a file. Raises ParseError for a damaged one."""
        texts = ("host", "effect", "stage", "reason", "allow")
        touches = data.get("touches")
        if not all(isinstance(data.get(name), str) for name in texts) or not isinstance(touches, list):
            raise ParseError("not a record of a withheld effect")
        return cls(**{name: data[name] for name in texts}, touches=tuple(map(str, touches)))


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
    """The setting that allows an effect with the usual variable name."""
    return f"{effect}_allowed: true"


def reason_words(reason: Any) -> str:
    """A reason as one sentence: a text, a list of texts, or a mapping of ports (packages, planes) to their reasons."""
    if isinstance(reason, Mapping):
        return "; ".join(f"{name}: {reason_words(each)}" for name, each in reason.items())
    if isinstance(reason, (list, tuple)):
        return "; ".join(reason_words(each) for each in reason)
    return " ".join(str(reason).split())


def record(folder: RunFolder, withheld: Withheld) -> None:
    """Write the record; a later one of the same host and effect replaces it."""
    folder.write_json(folder.host_file(f"{FOLDER}/{withheld.effect}", withheld.host), withheld.to_dict())


def grouped(folder: RunFolder) -> list[WithheldGroup]:
    """All withheld effects of a run; hosts with the same reason share a group."""
    groups: dict[tuple[str, str, str, str], list[Withheld]] = {}
    for file in sorted((folder.path / FOLDER).glob("*/*.json"), key=lambda file: (file.parent.name, natural(file.stem))):
        found = if_sound(file, Withheld.parse)
        if found is not None:
            groups.setdefault((found.effect, found.stage, found.reason, found.allow), []).append(found)
    return [
        WithheldGroup(*key, hosts=_once(each.host for each in those), touches=_once(name for each in those for name in each.touches))
        for key, those in groups.items()
    ]


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
