# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Helpers for the findings of the fabric stage: the stage, the host name of switches, and the limits of an incomplete graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View

STAGE = "fabric"
INCOMPLETE = "the discovery is incomplete"


@dataclass(frozen=True)
class Cause:
    """A finding and the nodes and ends that it explains. No other finding should name these."""

    finding: Finding
    nodes: frozenset[str] = frozenset()
    ends: frozenset[End] = frozenset()

    @property
    def is_trouble(self) -> bool:
        return self.finding.status in (ERROR, UNKNOWN, WARNING)


@dataclass(frozen=True)
class Reporter:
    """Makes the findings on one plane."""

    view: View

    def cause(  # noqa: PLR0917
        self,
        check: str,
        status: str,
        subject: str,
        observed: str,
        expected: str,
        remedy: str = "",
        *,
        host: str | None = None,
        nodes: Iterable[str] = (),
        ends: Iterable[End] = (),
        absence: bool = False,
    ) -> Cause:
        """Return a cause. host: the affected host; None means the plane.

        absence: something was not found, which an incomplete graph cannot prove.
        """
        if absence and not self.view.whole and status in (ERROR, WARNING):
            status, observed = NOT_APPLICABLE, f"{observed}, in the part that was read: {INCOMPLETE}"
        finding = Finding(STAGE, check, host or self.view.plane, subject, status, observed, expected, remedy)
        return Cause(finding, frozenset(nodes), frozenset(ends))

    def well(self, check: str, observed: str, expected: str) -> Cause:
        """Return the finding that a check is ok on the plane. An incomplete graph cannot prove that."""
        if not self.view.whole:
            return self.skip(check, f"{INCOMPLETE}; in the part that was read: {observed}", expected)
        return self.cause(check, OK, self.view.plane, observed, expected)

    def skip(self, check: str, why: str, expected: str) -> Cause:
        return self.cause(check, NOT_APPLICABLE, self.view.plane, why, expected)


def by_host(findings: Iterable[Finding], hosts: Iterable[str]) -> tuple[dict[str, list[Finding]], list[Finding]]:
    """Return the findings of each host of the play, and the others: on switches, and on hosts outside the play."""
    of_hosts: dict[str, list[Finding]] = {host: [] for host in hosts}
    others = []
    for finding in findings:
        if finding.host in of_hosts:
            of_hosts[finding.host].append(finding)
        else:
            others.append(finding)
    return of_hosts, others


def explained(causes: Iterable[Cause]) -> tuple[frozenset[str], frozenset[End]]:
    """Return all nodes and ends that troubles explain."""
    troubles = [cause for cause in causes if cause.is_trouble]
    return frozenset().union(*(cause.nodes for cause in troubles)), frozenset().union(*(cause.ends for cause in troubles))


def counted(those: Collection[object], what: str) -> str:
    """ "1 cable", "3 cables"."""
    count = len(those)
    return f"{count} {what}" + ("" if count == 1 else "s")
