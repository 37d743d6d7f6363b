# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Verdicts on hosts that are measured against proven ones: if all that a new port does is slow, nothing in its sweep is healthy."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.proof import EVIDENCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict


def beside_proven(found: Sequence[Verdict], matrix: Matrix, new: int, least_ratio: float, share: float) -> list[Verdict]:
    """The verdicts of a sweep of the first `new` hosts against proven ones.

    found: those of the sweep by itself, of which a whole rail is none here: it is one of few. least_ratio: below it a measurement is bad;
    share: what a ratio of 1 is to what the partners have reached before. A new port most of whose measurements, with two partners or
    with all, are bad is to blame: its partners have been shown to be well.
    """
    kept = [verdict for verdict in found if verdict.kind != "rail"]
    named = {(verdict.rail, verdict.host) for verdict in kept if verdict.kind != "pair"}
    added = []
    for rail in range(len(matrix.rails)):
        for host in range(new):
            if not {(rail, host), (None, host)} & named and (verdict := _of_port(matrix, rail, host, least_ratio, share)) is not None:
                added.append(verdict)
    convicted = {(verdict.rail, verdict.host) for verdict in added}
    return [*added, *(each for each in kept if each.kind != "pair" or (each.rail, each.host) not in convicted)]


def _of_port(matrix: Matrix, rail: int, host: int, least_ratio: float, share: float) -> Verdict | None:
    ends = zip(matrix.rail, matrix.server, matrix.client, strict=True)
    own = [at for at, (on, server, client) in enumerate(ends) if on == rail and host in (server, client)]
    bad = [at for at in own if math.isnan(matrix.ratio[at]) or matrix.ratio[at] * share < least_ratio]
    if not own or len(bad) * 2 <= len(own):
        return None
    slow = [matrix.ratio[at] * share for at in bad if not math.isnan(matrix.ratio[at])]
    partners = {matrix.server[at] + matrix.client[at] - host for at in bad}
    return replace(
        Verdict("nic", host, rail),
        failed=len(slow) * 2 < len(bad),
        ratio=statistics.median(slow) if slow else None,
        confidence=(len(partners) + 1) / (len(own) + 2),
        partners=len(partners),
        explained=len(bad),
        evidence=tuple(bad[:EVIDENCE]),
    )
