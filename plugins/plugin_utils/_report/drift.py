# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drift: each difference between intent and host as one line, from the results of a run in check mode."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import LONGEST_SUBJECT, Finding, stopping
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.qos.qos import KEYS_OF_CHECK

_PORT = ("driver", "link")
#: Check → the stages whose changes explain its findings: without driver there is no port, without port no GID.
#: No change of the build explains the findings of other checks.
EXPLAINED_BY = {
    "driver.module": ("driver",),
    "driver.device": ("driver",),
    "link.state": _PORT,
    "link.layer": _PORT,
    "link.sm": _PORT,
    "link.pkey": _PORT,
    "host.memlock": ("host",),
    "host.files": ("host",),
    "host.ipc": ("host",),
    "host.sysctl": ("host",),
    "host.cpu": ("host",),
    "host.pcie": ("host",),
    **dict.fromkeys(
        ("qos.backend", *KEYS_OF_CHECK, "qos.boot"),
        (*_PORT, "qos"),
    ),
    "network.mtu": (*_PORT, "network"),
    "network.gid": (*_PORT, "network"),
    "network.boot": ("network",),
    "nccl.file": (*_PORT, "nccl"),
    "nccl.hca": _PORT,
    "nccl.lint": (*_PORT, "nccl"),
    "nccl.pkey": _PORT,
    "nccl.version": ("nccl",),
    "nccl.install": ("nccl",),
    "nccl.alike": _PORT,
    "pair.bandwidth": (*_PORT, "network"),
    "pair.latency": (*_PORT, "network"),
}


#: The characters of the different lines that are kept of either side.
LONGEST_DIFFERENCE = 65536
#: Checks whose findings are explained only by a change of a file or service that the observation names.
OF_FILES = frozenset({"network.boot"})


@dataclass(frozen=True)
class Difference:
    """One line of drift.jsonl: was and should_be are the different lines as text; "" if there are none."""

    host: str
    stage: str
    subject: str
    was: str
    should_be: str

    def __post_init__(self) -> None:
        # A host's files and settings may contain anything.
        object.__setattr__(self, "subject", clean(self.subject, LONGEST_SUBJECT))
        for name in ("was", "should_be"):
            object.__setattr__(self, name, clean(getattr(self, name), LONGEST_DIFFERENCE, lines=True))

    def to_dict(self) -> dict[str, str]:
        return asdict(self)

    @property
    def is_live(self) -> bool:
        """Whether it affects the running host beyond its own stage; a different file does so only at the next boot."""
        return not self.subject.startswith("/")


def differences(host: str, stage: str, result: Mapping[str, Any]) -> list[Difference]:
    """The changes of a task, planned or made, from the diffs in its result; empty for a task without diffs."""
    found = []
    for each in result.get("results") or [result]:
        if not each.get("changed"):
            continue
        diffs = each.get("diff") or []
        for diff in [diffs] if isinstance(diffs, Mapping) else diffs:
            if "before" in diff and "after" in diff:
                found.append(Difference(host, stage, _subject(diff), *_changed_lines(_text(diff["before"]), _text(diff["after"]))))
    return found


def _subject(diff: Mapping[str, Any]) -> str:
    header = diff.get("after_header") or diff.get("before_header")
    return str(header or _state(diff["after"]).get("path", "")).removesuffix(" (content)")


def _state(side: Any) -> Mapping[str, Any]:
    """The attributes of a side of a diff: ansible.builtin.file, and copy if only the mode differs, return them instead of text."""
    return side if isinstance(side, Mapping) else {}


def _text(side: Any) -> str:
    return "\n".join(f"{key} {value}" for key, value in sorted(_state(side).items()) if key != "path") or str(side or "")


def _changed_lines(before: str, after: str) -> tuple[str, str]:
    """The different lines of either side."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    was, should_be = ("\n".join(line[2:] for line in lines if line.startswith(mark)) for mark in ("- ", "+ "))
    return was, should_be


def drift(changes: Sequence[Difference], findings: Iterable[Finding]) -> list[Difference]:
    """All differences: the changes that the build would make, and the findings of its gates that these do not explain."""
    return [*changes, *(_of(finding) for finding in stopping(findings) if not _explained(finding, changes))]


def _of(finding: Finding) -> Difference:
    return Difference(finding.host, finding.stage, f"{finding.check}: {finding.subject}", finding.observed, finding.expected)


def _explained(finding: Finding, changes: Sequence[Difference]) -> bool:
    """Whether the finding is the consequence of a change on the same host, which has its own line."""
    stages = EXPLAINED_BY.get(finding.check, ())
    if finding.check in OF_FILES:
        # Our changes do not explain a file of another program or admin.
        changes = [change for change in changes if re.search(rf"{re.escape(change.subject)}(?=[: ])", finding.observed)]
    return any(
        change.host == finding.host and change.stage in stages and (change.is_live or change.stage == finding.stage) for change in changes
    )
