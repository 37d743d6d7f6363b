# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GID indexes that moved since the last pair proof: a job with a fixed NCCL_IB_GID_INDEX then hangs (nccl#1333, nccl#2157)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_ip, resolve, rocev2_gid_index
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof, Proofs

STAGE, CHECK = "network", "network.gid"


def check_moved_gids(hosts: Mapping[str, Known], proofs: Proofs) -> dict[str, list[Finding]]:
    """Return findings `network.gid` of RoCE rails whose GID index is not that of their last proof, whatever its age.

    A rail without a proof, and one without a GID, which is an error of its own, are left out.
    """
    return {host: list(_moved(host, known, proofs.get(host, {}))) for host, known in hosts.items()}


def _moved(host: str, known: Known, proofs: Mapping[str, Proof]) -> Iterator[Finding]:
    if known.intent is None or known.facts is None:
        return
    for rail in resolve(known.intent["rails"], known.facts):
        proof = proofs.get(rail.name)
        before = proof.endpoint.get("gid_index") if proof is not None else None
        index = _index(rail, known.facts)
        if proof is None or before is None or index is None or index == before:
            continue
        yield Finding(
            STAGE, CHECK, host, rail.subject, WARNING,
            observed=f"GID index {before} → {index} since the last pair proof (run {proof.run}); jobs with NCCL_IB_GID_INDEX={before} hang",
            expected=f"GID index {before}, as in the last pair proof",
            remedy=(
                f"1. Remove NCCL_IB_GID_INDEX from the jobs on {host}, because NCCL 2.21 and newer finds the index by itself. "
                f"Before 2.21, set it to {index}. 2. Restart these jobs. 3. To record the new index, run "
                "`ansible-playbook rdma.cluster.pairs -e rdma_measure=true` on the control node."
            ),
        )  # fmt: skip


def _index(rail: ResolvedRail, facts: RunFacts) -> int | None:
    """Return the current GID index of a RoCE rail's address."""
    if rail.rail["link_layer"] != "roce" or rail.device is None or rail.port is None:
        return None
    return rocev2_gid_index(facts.devices[rail.device].ports[rail.port], rail_ip(rail.rail))
