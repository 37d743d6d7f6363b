# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports that the gate's thresholds reject without a verdict: they too are re-measured before the gate fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.figures import Blame, Figure, Where, figures, positions
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.checks import Port, check_bandwidth
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.suspects import MOST
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.judged import Judged, with_doubts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.proof import EVIDENCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict


def low_ports(sweep: Evidence, found: Sequence[Judged], settings: Mapping[str, Any]) -> list[Judged]:
    """Return each such port as a NIC to re-measure, with the gate's words.

    found: the sweep's verdicts. settings: the intent's rdma_pairs. A port without a figure, or above the maximum, is not re-measured: that
    would show nothing.
    """
    matrix = sweep.bandwidth
    named = {where for each in found for where in sweep.named(each.verdict)}
    alone = _low_with_all(matrix, settings["software_fail_below" if sweep.software else "fail_below"]) - named
    blame = Blame.of([*(each.verdict for each in found), *(Verdict("nic", host, rail) for rail, host in sorted(alone))], matrix)
    used = positions(matrix, blame)
    low = []
    for where, figure, port in _unnamed(sweep, figures(matrix, blame), named):
        finding = check_bandwidth(port, settings)
        if finding.status == ERROR and figure.ratio is not None and figure.ratio < 1:
            verdict, words = _verdict(where, figure, used[where]), (finding.observed, finding.expected, finding.remedy)
            low.append(Judged(verdict, ERROR, *words, stands_out=where in alone))
    return with_doubts(low, found, matrix, settings) if sweep.software else low


def _low_with_all(matrix: Matrix, least: float) -> set[Where]:
    """Return the ports below a ratio with all of their at least two partners, one of which is above it with another one.

    A partner's figure with such a port shows nothing about the partner.
    """
    best: dict[Where, float] = {}
    met: dict[Where, set[Where]] = {}
    for rail, server, client, ratio in zip(matrix.rail, matrix.server, matrix.client, matrix.ratio, strict=True):
        if ratio > 0:
            for where, other in (((rail, server), (rail, client)), ((rail, client), (rail, server))):
                best[where] = max(ratio, best.get(where, 0.0))
                met.setdefault(where, set()).add(other)
    return {
        where for where, others in met.items() if len(others) > 1 and best[where] < least and max(best[each] for each in others) >= least
    }


def suspects_of(sweep: Evidence, settings: Mapping[str, Any], proofs: Proofs) -> list[Verdict]:
    """Return the suspects to re-measure: those blamed by a sweep, and ports that their own figures reject, unless there are too many."""
    found = sweep.verdicts(settings, proofs)
    blamed, low = ([each.verdict for each in of if each.is_suspect] for of in (found, low_ports(sweep, found, settings)))
    return blamed if len(blamed) + len(low) > MOST else blamed + low


def _unnamed(sweep: Evidence, known: Mapping[Where, Figure], named: set[Where]) -> Iterator[tuple[Where, Figure, Port]]:
    matrix, too_fast = sweep.bandwidth, sweep.too_fast()
    for (rail, host), figure in known.items():
        name, of_rail = matrix.hosts[host], matrix.rails[rail]
        limit = sweep.limits.get(name, {}).get(of_rail)
        if (rail, host) in named or limit is None or sweep.only_helps(name) or too_fast.get(name, {}).get(of_rail):
            continue
        yield (rail, host), figure, Port(name, of_rail, limit, figure)


def _verdict(where: Where, figure: Figure, at: Sequence[int]) -> Verdict:
    rail, host = where
    confidence = (figure.partners + 1) / (figure.partners + 2)
    return Verdict(
        "nic",
        host,
        rail,
        ratio=figure.ratio,
        confidence=confidence,
        partners=figure.partners,
        explained=len(at),
        evidence=tuple(at[:EVIDENCE]),
        measured=figure.partners,
    )
