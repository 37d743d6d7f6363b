# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a cause of a failed job holds, by what the log tells of its ranks."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._job_signature import ERROR
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose_scene import Answer, Scene, confirmed, excluded, unknown
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain_text import listed


def earlier_error(scene: Scene) -> Answer:
    """Whether the log has an error before this one, of any rank."""
    before = [each for each in scene.log.occurrences if each.kind == ERROR and each.line < scene.occurrence.line]
    if not before:
        return excluded("the log has no error before this line")
    first = min(before, key=lambda each: each.line)
    where = f" on {listed(first.hosts)}" if first.hosts else ""
    return confirmed(f"line {first.line}{where}: {first.says}")


def different_collectives(scene: Scene) -> Answer:
    """Whether ranks wait in different places of the program."""
    operations, numbers = scene.told("operation"), scene.told("sequence")
    groups = dict.fromkeys(group for each in scene.log.occurrences for group in each.fields.get("group", ()))
    if len(groups) > 1 and max(len(operations), len(numbers)) > 1:
        return unknown(f"ranks wait in process groups {listed(list(groups))}, each of which counts collectives of its own")
    if len(operations) > 1:
        return confirmed(f"ranks wait in {', '.join(operations)}")
    if len(numbers) > 1:
        return confirmed(f"ranks wait in collectives number {listed(numbers)}")
    return excluded(f"all that tell wait in {operations[0]}, number {numbers[0]}") if numbers else unknown("the lines do not tell which")


def silent_ranks(scene: Scene) -> Answer:
    """Whether a few ranks did not say what all others say: they were not there, or hang elsewhere."""
    ranks, count = set(scene.occurrence.ranks), scene.log.context.nranks
    if count < 2 or not ranks:
        return unknown("how many ranks there are, or which they are, the log does not tell")
    silent = [str(rank) for rank in range(count) if rank not in ranks]
    if not silent:
        return excluded(f"all {count} ranks say it")
    if len(silent) > max(8, count // 8):
        return unknown(f"{len(ranks)} of {count} ranks say it")
    places = list(dict.fromkeys(host for rank in silent for host in [scene.log.context.host_of(int(rank))] if host))
    return confirmed(f"rank {listed(silent)} of {count} did not say it{f', on {listed(places)}' if places else ''}")


def versions_differ(scene: Scene) -> Answer:
    said = [f"{version} on {listed(list(hosts))}" for version, hosts in sorted(scene.log.context.versions.items())]
    if len(said) > 1:
        return confirmed("; ".join(said))
    if said:
        return unknown(f"only {said[0]} is told")
    numbers = [*scene.told("one_version"), *scene.told("other_version")]
    return confirmed(f"versions {listed(numbers)}") if len(set(numbers)) > 1 else unknown("the log does not tell them")
