# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The finding: one check on one subject, with what was observed, what was expected, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean

OK = "ok"
WARNING = "warning"
ERROR = "error"
UNKNOWN = "unknown"
NOT_APPLICABLE = "not_applicable"
STATUSES = (OK, WARNING, ERROR, UNKNOWN, NOT_APPLICABLE)
#: The longest name of a subject, in characters.
LONGEST_SUBJECT = 1000
_ONE_LINE = {"stage": 100, "check": 200, "host": 300, "subject": LONGEST_SUBJECT}
_LINES = ("observed", "expected", "remedy")
_OPTIONAL = ("silenced_by", "caused_by")
#: What stops a gate: something is wrong, or could not be checked.
STOPPING = frozenset({ERROR, UNKNOWN})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Finding:
    """One check on one subject of one host.

    stage: the stage whose gate runs the check; check: stable dotted id ("link.state"); subject: what was checked, in plain
    words ("rail 1 (rail1, ens2)"); status: one of STATUSES; observed and expected: sentences or values as text;
    remedy: what to do, empty if there is nothing to do; caused_by: the check whose error on the same host explains this
    finding, None if there is none; rate_ratio: of a rate, what was measured divided by what was expected, from 0 to 1, None if the check
    is about no rate.

    Hosts, cables and tools supply these texts. So they are cut to a bounded length, and lose what does not print: see `clean`. Only
    observed, expected and remedy may have several lines.
    """

    stage: str
    check: str
    host: str
    subject: str
    status: str
    observed: str
    expected: str
    remedy: str = ""
    silenced_by: str | None = None
    caused_by: str | None = None
    rate_ratio: float | None = None

    def __post_init__(self) -> None:
        for name, longest in _ONE_LINE.items():
            self._set(name, clean(_text(getattr(self, name)), longest))
        for name in _LINES:
            self._set(name, clean(_text(getattr(self, name)), lines=True))
        for name in _OPTIONAL:
            if getattr(self, name) is not None:
                self._set(name, clean(_text(getattr(self, name)), LONGEST_SUBJECT))
        if self.status not in STATUSES:
            raise ValueError(f"finding {self.check}: status is one of {', '.join(STATUSES)}, got {self.status!r}")
        if self.rate_ratio is not None:
            self._set_ratio(self.rate_ratio)

    def _set_ratio(self, ratio: Any) -> None:
        if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not ratio >= 0:
            raise ValueError(f"finding {self.check}: rate_ratio is a number from 0 to 1, got {quoted(ratio)}")
        object.__setattr__(self, "rate_ratio", min(1.0, float(ratio)))

    def _set(self, name: str, text: str) -> None:
        if text is not getattr(self, name):
            object.__setattr__(self, name, text)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """Return a finding from the output of to_dict; unknown keys are an error (TypeError)."""
        return cls(**data)


def stopping(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that stop a gate: errors and unknowns that are not silenced."""
    return [finding for finding in findings if finding.status in STOPPING and finding.silenced_by is None]


def worst(findings: Iterable[Finding]) -> str:
    """Return the overall status: error before unknown before warning before ok; not_applicable if there is nothing else."""
    present = {finding.status for finding in findings if finding.silenced_by is None}
    for status in (ERROR, UNKNOWN, WARNING, OK):
        if status in present:
            return status
    return NOT_APPLICABLE
