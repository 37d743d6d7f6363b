# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that use a network plugin, and a run in which they have moved data through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import RECEIVES, SENDS, TRANSFER_BYTES, TransferResult
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.plugin import plugin_order
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.judge import TransferVerdicts, judge_transfers
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import FOLDER, PLAN, Proofs, Transfers
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.known import known_of

SUM = "sha256:" + "a" * 64
MESH = {"kind": "mesh", "version": "679a394", "file": {"file": "mesh.so"}, "checksum": SUM, "variables": {"NCCL_MESH_GID_INDEX": 1}}
OTHER = {"kind": "file", "name": "ofi", "file": {"file": "libnccl-net-ofi.so"}, "checksum": SUM}
NOW = 1_000_000.0
#: What Soft-RoCE counts, and what its interface counts besides.
BY_VERBS = {"ports": {"rxe_rail0/1": {"bytes": None, "packets": 4113}}, "netdevs": {"ens2": 4_465_000}}
BY_TCP = {"ports": {"rxe_rail0/1": {"bytes": None, "packets": 0}}, "netdevs": {"ens2": 4_465_000}}


def users(nodes: int, plugin: Mapping[str, Any] | None = None, *, topology: str = "switched", library: str = "0" * 64) -> dict[str, Known]:
    """Lab machines with the plugin installed. plugin: rdma_nccl.plugin, without it MESH."""
    hosts: dict[str, Any] = {}
    for node in range(1, nodes + 1):
        intent = lab_intent(node, nccl={"plugin": dict(MESH if plugin is None else plugin)})
        intent["fabric"] = {**(intent.get("fabric") or {}), "topology": topology}
        facts = comparable(lab_facts(node))
        whole = {"sha256": library, "machine": "x86_64", "interfaces": [9, 8], "verbs": True}
        stamp = {"version": "", "order": plugin_order(intent["nccl"]["plugin"]), "sha256": library}
        seen = {"path": "x", "machine": "x86_64", "library": whole, "stamp": stamp, "probe": None, "unread": None}
        facts["nccl"] = {"library": None, "version": None, "tests": None, "openmpi": None, "plugin": seen}
        hosts[f"node{node}"] = {"intent": intent, "facts": facts}
    return known_of(hosts)


def transfers(known: Mapping[str, Known], proofs: Proofs | None = None) -> Transfers:
    return Transfers.of(known, proofs or {}, NOW, 168.0)


def moved(path: Path, known: Mapping[str, Known], changed: Mapping[tuple[str, str], Mapping[str, Any]] | None = None) -> RunFolder:
    """A run that has made every transfer, all by verbs. changed: (host, role) → other values of its result."""
    folder, all_of = RunFolder(path), transfers(known)
    folder.write_json(PLAN, asdict(all_of.plan("run-1", all_of.meetings, 5)))
    for host in all_of.users:
        results = []
        for meeting in all_of.of_host(host):
            role, partner = (SENDS, meeting.receiver) if host == meeting.sender else (RECEIVES, meeting.sender)
            good = TransferResult(partner, meeting.rail, role, "rxe_rail0", TRANSFER_BYTES, at="closed", seconds=1.0, **BY_VERBS)
            results.append(asdict(replace(good, **(changed or {}).get((host, role), {}))))
        folder.write_json(folder.host_file(FOLDER, host), {"results": results})
    return folder


def verdicts(
    folder: RunFolder,
    known: Mapping[str, Known],
    proofs: Proofs | None = None,
    blocked: Mapping[str, str] | None = None,
    *,
    check: bool = False,
) -> TransferVerdicts:
    return judge_transfers(folder, known, transfers(known, proofs), blocked or {}, check_mode=check)


def found(folder: RunFolder, known: Mapping[str, Known], **more: Any) -> dict[tuple[str, str], Finding]:
    """(host, subject) → the finding."""
    by_host = verdicts(folder, known, **more).findings
    return {(host, finding.subject): finding for host, findings in by_host.items() for finding in findings}
