# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the causes of a failed job in its log: what the ranks wait for, and which ones are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import said
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log_context import Context
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Answer, Scene, confirmed, excluded, unknown
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed

_RANKS = re.compile(r"([0-9]{1,7})(?: ?- ?([0-9]{1,7}))?")
_REACHED = re.compile(r"^([0-9]{1,7})\].* ([0-9]{1,18})$")
#: The maximum number of ranks in one range.
_MOST_RANKS = 65_536
#: Collectives to which all ranks bring the same number of elements.
_SAME_SIZE = frozenset({"ALLREDUCE", "BARRIER", "BROADCAST", "REDUCE"})


def different_collectives(scene: Scene) -> Answer:
    """Whether ranks wait in different collectives of the program. That all ranks wait in the same one is known only from all of them."""
    operations, numbers, sizes = (scene.field_values(name) for name in ("operation", "sequence", "elements"))
    groups = _groups(scene)
    mismatch = said(scene, "torch.mismatch")
    if mismatch is not None:
        return mismatch
    if len(groups) > 1 and max(len(operations), len(numbers), len(sizes)) > 1:
        return unknown(f"ranks wait in process groups {listed(groups)}, each of which counts its own collectives")
    if max(len(operations), len(numbers)) > 1:
        where = ", ".join(operations) if len(operations) > 1 else f"collectives number {listed(numbers)}"
        return confirmed(f"ranks wait in {where}")
    if len(sizes) > 1 and set(operations) <= _SAME_SIZE:
        return confirmed(f"ranks wait in {operations[0]}, number {numbers[0]}, with different numbers of elements: {listed(sizes)}")
    return _agreement(scene, f"{operations[0]}, number {numbers[0]}") if numbers else unknown("the lines do not contain the collective")


def _groups(scene: Scene) -> list[str]:
    """The process groups of the log. Each counts its own collectives."""
    return list(dict.fromkeys(group for each in scene.log.occurrences for group in each.fields.get("group", ())))


def _agreement(scene: Scene, what: str) -> Answer:
    """Whether all ranks of the job report that they wait in the same collective."""
    ranks, count = len(scene.occurrence.ranks), scene.log.context.nranks
    if count > 1 and ranks >= count:
        return excluded(f"all {count} ranks wait in {what}")
    return unknown(f"{ranks} of {count or 'an unknown number of'} ranks report that they wait in {what}; the others report nothing")


def _ranks_of(texts: Iterable[str]) -> list[int]:
    """The ranks in lists as PyTorch writes them: "3", "0, 2" and "0-3"."""
    ranks: dict[int, None] = {}
    for first, last in (found for text in texts for found in _RANKS.findall(text)):
        for rank in range(int(first), min(int(last or first), int(first) + _MOST_RANKS) + 1):
            ranks[rank] = None
    return sorted(ranks)


def _behind(scene: Scene) -> dict[int, int]:
    """Rank → its last collective, of the ranks that have not begun the one in which the others wait, and whose process still writes."""
    numbers = [int(number) for number in scene.field_values("sequence")]
    if not numbers or len(_groups(scene)) > 1:
        return {}
    texts = [text for each in scene.log.occurrences for text in each.fields.get("reached", ())]
    reached = {int(rank): int(last) for rank, last in (_REACHED.findall(text)[0] for text in texts)}
    return {rank: last for rank, last in sorted(reached.items()) if rank not in scene.occurrence.ranks and last < min(numbers)}


def _named_ranks(scene: Scene) -> Answer | None:
    context = scene.log.context
    absent = _ranks_of(text for each in scene.log.occurrences for text in each.fields.get("absent", ()))
    if absent:
        return confirmed(f"PyTorch names rank {listed([str(rank) for rank in absent])}{_hosts_of(context, absent)}")
    behind = _behind(scene)
    if behind:
        last = listed([str(number) for number in dict.fromkeys(behind.values())])
        words = f"rank {listed([str(rank) for rank in behind])}{_hosts_of(context, behind)} had not begun this collective"
        return confirmed(f"{words}: the last one was number {last}, and the process still ran")
    return None


def silent_ranks(scene: Scene) -> Answer:
    """Whether a few ranks were missing, or hang elsewhere.

    They are those that PyTorch names, else those that had not begun the collective, else those without the line that all others wrote.
    """
    named = _named_ranks(scene)
    if named is not None:
        return named
    context = scene.log.context
    ranks, count = set(scene.occurrence.ranks), context.nranks
    joined = _ranks_of(text for each in scene.log.occurrences for text in each.fields.get("joined", ()))
    if count > 1 and len(joined) >= count:
        return excluded(f"all {count} ranks joined the collective, according to PyTorch")
    if count < 2 or not ranks:
        return unknown("the log does not contain the number of ranks, or the ranks of this line")
    silent = [rank for rank in range(count) if rank not in ranks]
    if not silent:
        return excluded(f"all {count} ranks report it")
    if len(silent) > max(8, count // 8):
        return unknown(f"{len(ranks)} of {count} ranks report it")
    return confirmed(f"rank {listed([str(rank) for rank in silent])} of {count} did not report it{_hosts_of(context, silent)}")


def _hosts_of(context: Context, ranks: Iterable[int]) -> str:
    places = list(dict.fromkeys(host for rank in ranks for host in [context.host_of(rank)] if host))
    return f", on {listed(places)}" if places else ""
