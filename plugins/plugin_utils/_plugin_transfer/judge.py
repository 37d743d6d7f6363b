# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of the nccl gate on data that hosts have moved through the network plugin: whether it arrived, and by verbs or by TCP."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import MESH
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.mesh import DISABLE_RDMA
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import (
    SENDS,
    TRANSFER_BYTES,
    Meeting,
    TransferResult,
    checked_result,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_DEVICE, Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.plugin import plugin_use
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import FOLDER, PLAN, PORT, Proofs, Transfers, subject
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, run_id

STAGE, CHECK = "nccl", "nccl.plugin_transfer"
declare(
    {
        CHECK: Check(
            STAGE,
            "data that two hosts move through the network plugin of `rdma_nccl.plugin`: whether every byte arrives, and whether the RDMA "
            "ports counted it, which means verbs and not TCP",
            "the answers of the plugin, loaded as `nobody` on both hosts; the counters of RDMA ports and interfaces before and after",
            "read the plugin's last function and warning in the finding; build the plugin with libibverbs; allow TCP between the hosts",
            follows=(*NO_DEVICE, "network.gid", "nccl.plugin"),
            sources=(reads.result("plugin transfer"),),
        )
    }
)
#: The part of the data that the byte counter of a port must show at least: other programs may reset it, but nothing compresses.
_SHARE = 0.9
#: The largest packets of RDMA.
_PACKET_BYTES = 4096
_EXPECTED = f"{TRANSFER_BYTES} bytes by verbs, counted at an RDMA port"


@dataclass(frozen=True)
class TransferVerdicts:
    """findings: by host. proofs: those of before, and of the transfers that passed in this run."""

    findings: dict[str, list[Finding]]
    proofs: Proofs


def judge_transfers(
    folder: RunFolder, known: Mapping[str, Known], transfers: Transfers, blocked: Mapping[str, str], *, check_mode: bool
) -> TransferVerdicts:
    """Judge the transfers of all hosts that use the plugin. blocked: the hosts in use → their users."""
    planned: Mapping[str, Any] = folder.read_if_there(PLAN) or {"meetings": []}
    case = _Case(folder, transfers, planned, blocked, check_mode)
    findings: dict[str, list[Finding]] = {}
    proofs = dict(transfers.proofs)
    for host, each in known.items():
        if not each.intent or not each.facts or not plugin_use(each.intent, each.facts).used:
            continue
        findings[host] = list(case.host(host))
        for meeting in transfers.of_host(host) if host in transfers.users else ():
            found = next((finding for finding in findings[host] if finding.subject == subject(host, meeting)), None)
            if found is not None and found.status == OK and case.was_planned(meeting):
                basis = transfers.basis(meeting)
                proofs[f"{host}: {found.subject}"] = {"basis": basis, "measured": transfers.now, "words": found.observed, "run": run_id()}
    return TransferVerdicts(findings, proofs)


@dataclass(frozen=True)
class _Case:
    folder: RunFolder
    transfers: Transfers
    planned: Mapping[str, Any]
    blocked: Mapping[str, str]
    check_mode: bool

    def was_planned(self, meeting: Meeting) -> bool:
        """Return whether a transfer was planned in this run."""
        return any(Meeting(**each) == meeting for each in self.planned["meetings"])

    def host(self, host: str) -> Iterator[Finding]:
        """Yield the findings on one host."""
        if host not in self.transfers.users:
            yield self._finding(host, "network plugin", UNKNOWN, "nothing was moved: the plugin is not installed as requested", "")
            return
        meetings = self.transfers.of_host(host)
        if not meetings:
            why = "no other host of this run is reached through the plugin: none shares a subnet or a rail"
            yield self._finding(host, "network plugin", NOT_APPLICABLE, why, "")
        stored = self.folder.read_if_there(self.folder.host_file(FOLDER, host)) if meetings else None
        results, problem = _results(stored)
        for meeting in meetings:
            yield self._meeting(host, meeting, results, problem)

    def _meeting(self, host: str, meeting: Meeting, results: Mapping[tuple[str, str, bool], TransferResult], problem: str) -> Finding:
        sends = host == meeting.sender
        partner = meeting.receiver if sends else meeting.sender
        name = subject(host, meeting)
        if not self.was_planned(meeting):
            return self._finding(host, name, *self._unmoved(host, partner, meeting))
        result = results.get((partner, meeting.rail, sends))
        if result is None:
            why = problem or self.blocked.get(host) or "no result of this run"
            return self._finding(host, name, UNKNOWN, f"nothing was moved: {why}", f"Run the nccl stage again for {host} and {partner}.")
        device = meeting.sender_device if sends else meeting.receiver_device
        return self._finding(host, name, *_verdict(result, host, device, self.transfers.users[host].kind))

    def _unmoved(self, host: str, partner: str, meeting: Meeting) -> tuple[str, str, str]:
        """Judge a transfer that was not planned in this run."""
        proof = self.transfers.proof(host, meeting)
        if proof is not None and self.transfers.is_young(proof):
            when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(proof["measured"]))
            return OK, f"{proof['words']} (proven {when})", ""
        before = "its proof is too old" if proof is not None else "it was never moved with this plugin and these settings"
        busy = {name: self.blocked[name] for name in (host, partner) if name in self.blocked}
        if self.check_mode:
            return NOT_APPLICABLE, f"{before}; nothing is moved in check mode", ""
        status = WARNING if proof is not None else UNKNOWN
        if busy:
            words = "; ".join(f"{name} is in use: {who}" for name, who in busy.items())
            remedy = "Rerun when the hosts are idle, or allow load with `-e rdma_load_allowed=true`."
            return status, f"{before}; {words}", remedy
        return status, f"{before}; nothing was moved in this run", "Run `ansible-playbook rdma.cluster.nccl -e rdma_measure=true`."

    @staticmethod
    def _finding(host: str, name: str, status: str, observed: str, remedy: str) -> Finding:
        return Finding(STAGE, CHECK, host, name, status, observed, _EXPECTED, remedy)


def _results(stored: Any) -> tuple[dict[tuple[str, str, bool], TransferResult], str]:
    """Return (partner, rail, whether the host sends) → the result, and why there is none, "" if there is one."""
    if not isinstance(stored, Mapping):
        return {}, ""
    if stored.get("problem"):
        return {}, str(stored["problem"])
    try:
        results = [checked_result(each) for each in stored["results"]]
    except (KeyError, TypeError) as error:
        return {}, f"the host's answer is not readable: {type(error).__name__}"
    return {(each.partner, each.rail, each.role == SENDS): each for each in results}, ""


def _verdict(result: TransferResult, host: str, device: str, kind: str) -> tuple[str, str, str]:
    """Judge one transfer: (status, observed, remedy). device: of the rail. kind: of the plugin."""
    if result.failed.startswith(f"{result.partner} failed: "):
        return UNKNOWN, f"nothing was moved: {result.failed}", f"See the finding on {result.partner}."
    if result.failed:
        return ERROR, f"the transfer failed: {result.failed}", _failed_remedy(result)
    if result.mismatch:
        remedy = "1. Use another version of the plugin: NCCL would compute with wrong data. 2. Report it to the authors of the plugin."
        return ERROR, f"the received data is wrong: {result.mismatch}", remedy
    return _path(result, host, device, kind)


def _path(result: TransferResult, host: str, device: str, kind: str) -> tuple[str, str, str]:
    """Judge by which path correct data has arrived."""
    carried = [name for name, port in result.ports.items() if _carries(port)]
    if carried:
        counted = ", ".join(f"{name} counted {_counted(result.ports[name])}" for name in carried)
        words = f"{result.bytes} bytes by verbs: {counted}"
        if kind != MESH and not any(name.partition("/")[0] == device for name in carried):
            remedy = "NCCL would use other NICs than planned. Use another version of the plugin."
            return WARNING, f"{words}; the rail's device is {device}", remedy
        return OK, words, ""
    if result.ports and all(port["bytes"] is None and port["packets"] is None for port in result.ports.values()):
        return UNKNOWN, f"{result.bytes} bytes arrived, but no RDMA port of {host} has counters", f"Check `rdma statistic show` on {host}."
    remedy = (
        f"1. Build the plugin with libibverbs, from rdma_nccl.plugin.source. 2. Remove {DISABLE_RDMA} from its variables. "
        f"3. Check that `ibv_devices` lists {device} on {host}."
    )
    return ERROR, f"the plugin moved the data by TCP, not by verbs: {_by_tcp(result)}", remedy


def _failed_remedy(result: TransferResult) -> str:
    if "cannot be reached" in result.failed or "did not call" in result.failed:
        return f"1. Allow TCP port {PORT} between the rails of the hosts. 2. Check the address of {result.rail} on {result.partner}."
    return (
        "1. Correct the other errors of both hosts. 2. Allow all TCP ports between the rails in their firewalls: a plugin uses any. "
        "3. Use another version of the plugin."
    )


def _carries(port: Mapping[str, int | None]) -> bool:
    """Return whether a port has counted enough for the data."""
    size, packets = port["bytes"], port["packets"]
    return (size or 0) >= _SHARE * TRANSFER_BYTES or (packets or 0) >= TRANSFER_BYTES // _PACKET_BYTES


def _counted(port: Mapping[str, int | None]) -> str:
    counts = (("bytes", port["bytes"]), ("packets", port["packets"]))
    return " and ".join(f"{value} {name}" for name, value in counts if value)


def _by_tcp(result: TransferResult) -> str:
    """Return the interfaces that counted the data."""
    seen = [f"{name} counted {size} bytes" for name, size in result.netdevs.items() if size >= _SHARE * TRANSFER_BYTES]
    ports = ", ".join(result.ports) or "no RDMA port"
    return f"{'; '.join(seen) or 'no interface counted the data either'}; {ports} {'did not' if result.ports else 'exists'}"
