# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet's part of the collectives gate: this run's ladder and valid proofs in one pass, findings for every host."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import (
    ERROR,
    NOT_APPLICABLE,
    OK,
    UNKNOWN,
    WARNING,
    Finding,
    stopping,
)
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import (
    BUSBW_CHECK,
    EXIT_CHECK,
    HCAS_CHECK,
    STAGE,
    TRANSPORT_CHECK,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import HCA
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.blame import CONNECTION, EVERYWHERE, HOST, NO_MORE, SETUP, Blame
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.expected import BITS_PER_BYTE
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import (
    ALONE_FOLDER,
    ALONE_ONLY,
    BLOCKED,
    FILE,
    LADDER,
    CollectivePlan,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.record import Record, blame_of, findings_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.runs import WELL
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import REFUSED
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof, Proofs, Standing
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

declare(
    {
        "collective.exit": Check(
            "collectives",
            "each run: exit status 0 and complete output",
            "nccl-tests through Open MPI, srun or alone",
            "read the first warning in its output; check that the program exists and the launcher can reach all hosts",
            sources=(reads.result("nccl-tests"),),
        ),
        "collective.ranks": Check(
            "collectives",
            "each run: one job with the planned number of ranks on the planned hosts",
            "nccl-tests' list of devices; NCCL's log",
            "build nccl-tests with `MPI=1`; check the launcher's hosts and slots",
            sources=(reads.result("nccl-tests"),),
        ),
        "collective.wrong": Check(
            "collectives",
            "each run: every size was checked, and no value is wrong",
            "nccl-tests",
            "do not trust results of these hosts; check the GPUs for Xid and ECC errors",
            sources=(reads.result("nccl-tests"),),
        ),
        "collective.busbw": Check(
            "collectives",
            "each host: busbw of the large sizes on the last healthy set of hosts, or a proof of an earlier run; a single host is checked "
            "only if `rdma_collectives.nvlink_busbw_gbps` is set",
            "nccl-tests; the expected value is the payload of all NICs of a host: link, MTU and PCIe path",
            "check `collective.transport` and `collective.hcas` first, then run the pairs stage",
            sources=(reads.result("nccl-tests"), reads.LADDER),
        ),
        "collective.transport": Check(
            "collectives",
            "each host: all channels between hosts use NET/IB, with GPUDirect RDMA if planned; sockets are always an error",
            "NCCL's log (`NCCL_DEBUG=INFO`)",
            "find why NCCL uses no RDMA device: its log, `NCCL_IB_HCA`, `NCCL_IB_DISABLE`, memlock; for GPUDirect, run the gpu stage",
            sources=(reads.result("NCCL log"),),
        ),
        "collective.hcas": Check(
            "collectives",
            "each host: its channels use the devices of its compute rails; all of them, except for sendrecv, for some of its GPUs, and in "
            "a mesh",
            "NCCL's log",
            "check `NCCL_IB_HCA` (the nccl stage), and which NIC is near which GPU",
            sources=(reads.result("NCCL log"),),
        ),
        "collective.ladder": Check(
            "collectives",
            "each host: whether it is good together with the others, or which host or connection is to blame; a warning for the good side "
            "of a bad connection",
            "runs on 2, 4, 8 … hosts, and on halves of bad sets",
            "run the pairs stage for the host or connection that the finding names",
            sources=(reads.LADDER,),
        ),
        "collective.jitter": Check(
            "collectives",
            "the last set of hosts: the spread of its repeats; only a warning if one of them is bad",
            "`rdma_collectives.repeats` runs",
            "look for other load on hosts or fabric",
            sources=(reads.LADDER,),
        ),
        "collective.pairs": Check(
            "collectives",
            "the first two hosts of the ladder: at least 0.8 of the perftest result between them, else a warning",
            "the proofs of the pairs stage, all compute rails together",
            "check GPUDirect, ACS and the channels of NCCL: the network is good, but NCCL does not use it fully",
            sources=(reads.result("pair proofs"),),
        ),
    }
)

JITTER_CHECK, PAIRS_CHECK = "collective.jitter", "collective.pairs"
#: As a share of the NICs' sum. If two hosts reach less of perftest's bandwidth, the loss is in NCCL, not in the network.
LEAST_OF_PAIRS = 0.80
_PAIR = 2


def climbed(runs: Sequence[Record], well: Sequence[str]) -> str:
    """Return the steps of the ladder in words: "2 hosts 48.9, 4 hosts 48.7 GB/s"."""
    steps: dict[int, str] = {}
    for run in runs:
        if run["status"] == WELL and set(run["hosts"]) <= set(well):
            figure = "no figure" if run["gbytes_per_s"] is None else f"{run['gbytes_per_s']:.4g}"
            steps.setdefault(len(run["hosts"]), figure)
    return f"{', '.join(f'{size} hosts {steps[size]}' for size in sorted(steps))} GB/s"


def check_jitter(host: str, runs: Sequence[Record], well: Sequence[str]) -> Finding:
    """Return the finding `collective.jitter`: the spread of the repeats of the last set; a warning if one of them is bad."""
    same = [run for run in runs if set(run["hosts"]) == set(well)]
    expected = "the same in every repeat"
    figures = [run["gbytes_per_s"] for run in same if run["gbytes_per_s"] is not None]
    subject = f"{same[0]['operation']} on {len(well)} hosts"
    if len(same) < _PAIR or not figures:
        return Finding(STAGE, JITTER_CHECK, host, subject, NOT_APPLICABLE, f"run {len(same)} time{'s' if len(same) != 1 else ''}", expected)
    middle = statistics.median(figures)
    spread = f", {100 * (max(figures) - min(figures)) / middle:.1f} % apart" if middle else ""
    seen = f"{len(same)} runs: lowest {min(figures):.4g}, highest {max(figures):.4g} GB/s{spread}"
    bad = sum(run["status"] != WELL for run in same)
    if not bad:
        return Finding(STAGE, JITTER_CHECK, host, subject, OK, seen, expected)
    remedy = "1. Look for other load on these hosts and their fabric (fabric.counters, link.errors). 2. Run the collectives stage again."
    return Finding(STAGE, JITTER_CHECK, host, subject, WARNING, f"{seen}; {bad} of them bad", expected, remedy)


def check_pairs(host: str, runs: Sequence[Record], pair_gbps: Callable[[Sequence[str]], float | None]) -> Iterator[Finding]:
    """Yield `collective.pairs`: the first two hosts of the ladder against perftest's bandwidth between them on all their NICs."""
    run = next((run for run in runs if len(run["hosts"]) == _PAIR and run["status"] == WELL and run["gbytes_per_s"] is not None), None)
    if run is None:
        return
    subject, expected = f"{run['operation']} on {' and '.join(run['hosts'])}", f"{LEAST_OF_PAIRS:g} of perftest's bandwidth between them"
    gbps = pair_gbps(run["hosts"])
    if not gbps:
        why = "the pairs stage has no valid figure for all their rails"
        yield Finding(STAGE, PAIRS_CHECK, host, subject, NOT_APPLICABLE, why, expected)
        return
    share = run["gbytes_per_s"] * BITS_PER_BYTE / gbps
    seen = f"{run['gbytes_per_s']:.4g} GB/s, {share:.2f} of the {gbps / BITS_PER_BYTE:.4g} GB/s of perftest"
    if share >= LEAST_OF_PAIRS:
        yield Finding(STAGE, PAIRS_CHECK, host, subject, OK, seen, expected)
    else:
        remedy = (
            "The network is fast, but NCCL does not use it. Check collective.transport, collective.hcas, GPUDirect (gpu.path) and ACS "
            "(pcie.acs)."
        )
        yield Finding(STAGE, PAIRS_CHECK, host, subject, WARNING, seen, expected, remedy)


LADDER_CHECK = "collective.ladder"
EXPECTED = "a run that still holds"
TOGETHER = "good together with the other hosts"
NOT_STARTED = "See collective.exit of {host}. Check that the launcher reaches it, its GPUs are free and the programs start there."
#: Findings of a run on one of its hosts; the others apply to all of them.
_OF_A_HOST = (TRANSPORT_CHECK, HCAS_CHECK)


@dataclass(frozen=True)
class CollectiveGate:
    """The inputs of the gate. planned_hosts: of the play."""

    folder: RunFolder
    plan: CollectivePlan
    check_mode: bool
    planned_hosts: int

    def judge(self) -> dict[str, list[Finding]]:
        """Return findings for every host, and record good results as proofs."""
        findings = {host: self._of_host(host) for host in self.plan.fleet.hosts}
        if (self.ladder or self.alone) and not self.check_mode:
            self.folder.write_json(FILE, proofs.write(self._renewed(findings)))
        return findings

    @cached_property
    def several(self) -> bool:
        """Whether there is another host to run with, or the play may have one."""
        return len(self.plan.able) > 1 or len(self.plan.fleet.hosts) < self.planned_hosts

    @cached_property
    def ladder(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self.folder.read_if_there(LADDER)
        return found

    @cached_property
    def alone(self) -> dict[str, Record]:
        """Host → its single-host run."""
        found = {host: self.folder.read_if_there(self.folder.host_file(ALONE_FOLDER, host)) for host in self.plan.able}
        return {host: run for host, run in found.items() if run is not None}

    @cached_property
    def well(self) -> list[str]:
        """The hosts that this run has found good together."""
        return list(self.ladder["well"]) if self.ladder else []

    @cached_property
    def blames(self) -> list[Blame]:
        return [blame_of(each) for each in self.ladder["blames"]] if self.ladder else []

    @cached_property
    def blocked(self) -> Mapping[str, str]:
        """The hosts that were busy when the runs were planned or would have begun, and with what."""
        files = {host: self.folder.read_if_there(self.folder.host_file(ALONE_FOLDER, host, REFUSED)) for host in self.plan.able}
        return {**(self.folder.read_if_there(BLOCKED) or {}), **{host: each["in_use"] for host, each in files.items() if each}}

    @cached_property
    def last(self) -> Record | None:
        """The run on the last good set."""
        return next((run for run in self._runs if set(run["hosts"]) == set(self.well) and run["status"] == WELL), None)

    @property
    def _runs(self) -> Sequence[Record]:
        return self.ladder["runs"] if self.ladder else ()

    def _of_host(self, host: str) -> list[Finding]:
        """Return the findings of a host. If a run with it failed, a device in NCCL_IB_HCA that it does not have comes first."""
        found = list(self._ran_or_not(host))
        runs = [*self._runs, *([self.alone[host]] if host in self.alone else [])]
        failed = any(host in run["hosts"] and run["status"] != WELL for run in runs)
        observed, where = self.plan.missing_devices(host) if failed else ("", "")
        if not observed:
            return found
        remedy = f"1. On {host}, list the devices: `ls /sys/class/infiniband`. 2. Correct {HCA} in {where} of {host}."
        return [Finding(STAGE, HCAS_CHECK, host, HCA, ERROR, observed, "devices of the host", remedy), *found]

    def _ran_or_not(self, host: str) -> Iterator[Finding]:
        if host not in self.plan.able:
            yield Finding(STAGE, BUSBW_CHECK, host, "host", NOT_APPLICABLE, "no GPU for a collective", EXPECTED)
            return
        if host in self.alone:
            yield from findings_of(self.alone[host])
        if host in self.well:
            yield from self._climbed(host)
        elif self.ladder and host in self.ladder["left_out"]:
            yield from self._fallen(host)
        elif host not in self.alone or (self.several and self.alone[host]["status"] == WELL):
            yield self._unmeasured(host)

    def _climbed(self, host: str) -> Iterator[Finding]:
        """Yield the findings of a host in the last set."""
        ladder = self.ladder or {}
        for run in [*([self.last] if self.last else []), *ladder["also"]]:
            yield from _of_run(run, host)
        sides = [blame for blame in self.blames if blame.kind == CONNECTION and host in (*blame.hosts, *blame.others)]
        steps = climbed(self._runs, self.well)
        if sides:
            remedy = (
                "1. Run the pairs stage for these hosts with `-e rdma_measure=true`. "
                "2. Check cables, switch ports and uplinks between them."
            )
            yield Finding(STAGE, LADDER_CHECK, host, "ladder", WARNING, f"{steps}; {sides[0].words}", TOGETHER, remedy)
        else:
            yield Finding(STAGE, LADDER_CHECK, host, "ladder", OK, steps, TOGETHER)
        if host == ladder["launcher"] or (ladder["launcher"] not in self.well and host == self.well[0]):
            yield check_jitter(host, self._runs, self.well)
            yield from check_pairs(host, self._runs, self._pair_gbps)

    def _pair_gbps(self, hosts: Sequence[str]) -> float | None:
        """Return perftest's bandwidth between two hosts over all their rails, by the pairs stage's proofs; None if one is missing."""
        proven = proofs.read(self.folder.read_if_there(proofs.FILE))
        sums = []
        for host in hosts:
            rails = [rail.name for rail in self.plan.expectations.rails(host, hosts)]
            figures = [proof.medians.get("bandwidth") for rail in rails if (proof := proven.get(host, {}).get(rail)) is not None]
            if not rails or len(figures) < len(rails) or None in figures:
                return None
            sums.append(sum(figure for figure in figures if figure is not None))
        return min(sums)

    def _fallen(self, host: str) -> Iterator[Finding]:
        """Yield the findings of a host that ran but is not in the last set: its last run, and why the ladder continued without it."""
        runs = [run for run in self._runs if host in run["hosts"] and run["status"] != WELL]
        if runs:
            yield from stopping(_of_run(runs[-1], host))
        yield self._left_out(host)

    def _left_out(self, host: str) -> Finding:
        """Return why the ladder continued without a host. A host that it did not reach is not an error."""
        blame = next((blame for blame in self.blames if host in blame.left_out), None)
        if blame is None:
            problem = (self.ladder or {}).get("problem") or "the ladder was interrupted"
            return Finding(STAGE, LADDER_CHECK, host, "ladder", UNKNOWN, problem, TOGETHER, "Run the collectives stage again.")
        ran = blame.kind != NO_MORE and any(host in run["hosts"] for run in self._runs)
        remedy = NOT_STARTED.format(host=host) if blame.kind == HOST and self._never_ended(host) else _remedy(blame, host)
        return Finding(STAGE, LADDER_CHECK, host, "ladder", ERROR if ran else UNKNOWN, blame.words, TOGETHER, remedy)

    def _never_ended(self, host: str) -> bool:
        """Return whether no run with a host finished; such runs show nothing about the network."""
        runs = [stopping(findings_of(run)) for run in self._runs if host in run["hosts"] and run["status"] != WELL]
        return bool(runs) and all(any(each.check == EXIT_CHECK for each in found) for found in runs)

    def _unmeasured(self, host: str) -> Finding:
        """Return the finding on a host that was not run with others."""
        standing = self.plan.standings[host]
        proof = standing.proof
        if proof is not None and standing.valid and self.several and not proof.partners:
            standing = Standing(proof, ALONE_ONLY)
        if proof is not None and standing.valid:
            figure = f"{proof.medians['busbw']:.4g} GB/s" if "busbw" in proof.medians else "well"
            seen = f"{figure} with {proof.partners} other{'s' if proof.partners != 1 else ''}, proven by run {proof.run}"
            return Finding(STAGE, BUSBW_CHECK, host, self.plan.operation(host), OK, seen, EXPECTED)
        if self.check_mode:
            why = f"{standing.words}; nothing is run in check mode"
            return Finding(STAGE, BUSBW_CHECK, host, self.plan.operation(host), NOT_APPLICABLE, why, EXPECTED)
        if host in self.blocked:
            why = f"{standing.words}; not run, because the host is busy: {self.blocked[host]}"
            status = WARNING if standing.too_old else UNKNOWN
            remedy = "Rerun when the host is idle, or allow load with `-e rdma_load_allowed=true`."
            return Finding(STAGE, BUSBW_CHECK, host, self.plan.operation(host), status, why, EXPECTED, remedy)
        if not self.several:
            why = "a single GPU on a single host transfers nothing"
            return Finding(STAGE, BUSBW_CHECK, host, self.plan.operation(host), NOT_APPLICABLE, why, EXPECTED)
        why = f"{standing.words}; not run with another host{' (they are busy)' if self.blocked else ''}"
        problem = (self.ladder or {}).get("problem")
        remedy = "Measure with `-e rdma_measure=true`."
        return Finding(
            STAGE, BUSBW_CHECK, host, self.plan.operation(host), UNKNOWN, f"{why}{f': {problem}' if problem else ''}", EXPECTED, remedy
        )

    def _renewed(self, findings: Mapping[str, list[Finding]]) -> Proofs:
        """Return the proofs after this run: participating hosts without a stopping finding are proven."""
        ran = {host for run in self._runs for host in run["hosts"]} | set(self.alone)
        attempted = {host: {self.plan.operation(host)} for host in ran if host in self.plan.able}
        good: Proofs = {}
        for host in attempted:
            is_whole = host in self.well or not self.several
            if is_whole and not stopping(findings[host]):
                good[host] = {self.plan.operation(host): self._proof(host)}
        return proofs.renewed(self.plan.proofs, attempted, good)

    def _proof(self, host: str) -> Proof:
        run = self.last if host in self.well else self.alone.get(host)
        figure = run["gbytes_per_s"] if run else None
        partners = max(0, len(self.well) - 1) if host in self.well else 0
        medians = {} if figure is None else {"busbw": figure}
        return Proof(self.plan.basis(host), self.plan.now, self.folder.path.name, partners, medians, 0.0)


def _remedy(blame: Blame, host: str) -> str:
    return {
        HOST: f"1. Run the pairs stage for {host} with `-e rdma_measure=true`. 2. Fix the findings of its pcie, gpu and nccl checks.",
        SETUP: "See collective.exit and collective.ranks of this run. Check the build of nccl-tests, and the launcher's hosts and slots.",
        EVERYWHERE: "All these runs have the same fault: see their other findings.",
        NO_MORE: "Fix the named hosts or connections, then run the collectives stage again.",
    }.get(blame.kind, "1. Run the pairs stage for these hosts with `-e rdma_measure=true`. 2. Fix the findings of the fabric stage.")


def _of_run(run: Record, host: str) -> list[Finding]:
    """Return the findings of a run on one of its hosts: its own, and those that apply to all of them."""
    found = findings_of(run)
    return [replace(each, host=host) for each in found if each.check not in _OF_A_HOST or each.host == host]
