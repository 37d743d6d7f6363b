# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The measurements of pairs in a run folder."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import FABRIC
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import CLOCK_TOLERANCE, Limit, Limits, grid, is_software, limits
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fabric import paths_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.figures import Blame, Figure, Where, figures, too_fast
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.gpu_shares import GpuShares
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.reader import Refused
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import BANDWIDTH, GPU_BANDWIDTH, LATENCY
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import (
    partitions,
    plan_meetings,
    planned_meetings,
    rail_schedules,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.crossings import Paths
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.judged import Judged, judged
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.probes import Probe, answering, answering_elsewhere, parse_probes
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.recorded import RecordedVerdicts, digest
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict, beside_proven, localize
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.words import Places
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, if_sound

#: The sweep itself, the re-measured suspects, the many-to-one load, the load across the spines, and the attempts between partitions.
SWEEP, AGAIN, LOAD, SPINES, ISOLATION = "pairs", "pairs/again", "pairs/qos", "pairs/spines", "pairs/isolation"
CROSS_RAILS = "pairs/cross"
CLOCK = "clock"
#: Written for a host that was in use when the sweep began, and was not started: {"in_use": "…"}.
REFUSED = ".refused.json"
#: The verdicts of a sweep, in its folder.
VERDICTS = "verdicts.json"
T = TypeVar("T")
Uncalibrated = Mapping[tuple[str, str, str], int]
#: Host → rail → the increase of counters during the sweep, as in _pairs.counters.risen.
Counters = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Evidence:
    """One sweep: its plan and its results. facts: of comparable()."""

    folder: RunFolder
    name: str
    plan: Mapping[str, Any]
    intents: Mapping[str, Intent]
    facts: Mapping[str, Facts]

    @classmethod
    def of(cls, folder: RunFolder, name: str, intents: Mapping[str, Intent], facts: Mapping[str, Facts]) -> Evidence | None:
        """Return the run's sweep of this name (SWEEP, AGAIN, LOAD, SPINES, ISOLATION or CROSS_RAILS), None if there is none."""
        plan = folder.read_if_there(f"{name}/plan.json")
        return None if plan is None else cls(folder, name, plan, intents, facts)

    @property
    def tests(self) -> list[str]:
        return [test["name"] for test in self.plan["tests"]]

    @cached_property
    def measured(self) -> Matrix:
        """The measurements, not compared with anything."""
        return self._values(BANDWIDTH)

    @cached_property
    def bandwidth(self) -> Matrix:
        """The measurements, compared with the limits of links, MTU and PCIe paths; software devices with one another."""
        return self.measured.with_level() if self.software else self.measured.with_limits(grid(self.plan, self.limits))

    @cached_property
    def latency(self) -> Matrix | None:
        """The latencies, not compared with anything; None if they were not measured."""
        return self._values(LATENCY) if LATENCY in self.tests else None

    @cached_property
    def gpu(self) -> GpuShares | None:
        """The bandwidths from GPU memory as shares of those from host memory, by pair; None if they were not measured."""
        if GPU_BANDWIDTH not in self.tests:
            return None
        without = {
            (host, rail["name"])
            for rail in self.plan["rails"]
            for host, number in zip(self.plan["hosts"], rail["profiles"], strict=True)
            if number is None or self.plan["profiles"][number]["gpu"] is None
        }
        return GpuShares.of(self._values(GPU_BANDWIDTH), self.measured, without)

    def _values(self, test: str) -> Matrix:
        """Return the results without failures of perftest's clock calibration, which show nothing about ports."""
        matrix = self._recorded[test]
        lost = {at for at, failure in matrix.failures.items() if failure.kind == CLOCK}
        return matrix.part([at for at in range(len(matrix)) if at not in lost]) if lost else matrix

    @cached_property
    def _recorded(self) -> dict[str, Matrix]:
        """Return test → its results. The files have those of all tests, and are read once."""
        # First: if a file changes while it is read, its verdicts must not count as those of the new content.
        _stamps = self._stamps
        found = Matrix.read([(self.plan, self._files())], self.tests, by_round=self.name == AGAIN)
        return {
            test: self._without_refused(matrix.with_missing(planned_meetings(self.plan), plan_meetings(self.plan)))
            for test, matrix in found.items()
        }

    @cached_property
    def in_use(self) -> dict[str, str]:
        """The planned hosts that were in use when the sweep began, and were not measured: host → by what."""
        files = {host: self.folder.read_if_there(self.folder.host_file(self.name, host, REFUSED)) for host in self.plan["hosts"]}
        return {host: str(each["in_use"]) for host, each in files.items() if each is not None}

    def _without_refused(self, matrix: Matrix) -> Matrix:
        """Return the results without those recorded by partners of refused hosts: a missing answer there shows nothing about ports."""
        gone = {number for number, host in enumerate(matrix.hosts) if host in self.in_use}
        if not gone:
            return matrix
        kept = [at for at in range(len(matrix)) if not gone & {matrix.server[at], matrix.client[at]}]
        return replace(matrix.part(kept), missing=[each for each in matrix.missing if not gone & set(each[1:])])

    @cached_property
    def uncalibrated(self) -> Uncalibrated:
        """(host whose perftest could not calibrate its clock, rail, its partner) → the number of lost measurements."""
        lost: Counter[tuple[str, str, str]] = Counter()
        for matrix in (self._recorded[test] for test in (BANDWIDTH, LATENCY) if test in self.tests):
            clients = matrix.server if matrix.is_read else matrix.client
            for at in (at for at, failure in matrix.failures.items() if failure.kind == CLOCK):
                client = clients[at]
                partner = matrix.server[at] + matrix.client[at] - client
                lost[matrix.hosts[client], matrix.rails[matrix.rail[at]], matrix.hosts[partner]] += 1
        return lost

    @property
    def refused(self) -> Mapping[str, Refused]:
        """Host → the ignored lines of its results: it is not trusted about other hosts."""
        return self.measured.refused

    def failures(self, host: str) -> list[dict[str, Any]]:
        """Return the stored raw output of a host's failures."""
        path = self._file(host, ".failures.jsonl")
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [each for line in lines if isinstance(each := json.loads(line), dict)]

    @cached_property
    def probes(self) -> list[Probe]:
        """The observations by hosts of partners with which a measurement had failed."""
        return [probe for host in self.plan["hosts"] for probe in parse_probes(self.failures(host)) if probe.observer == host]

    @cached_property
    def limits(self) -> Limits:
        """The limits of each endpoint."""
        return limits(self.plan, self.intents, self.facts)

    @cached_property
    def paths(self) -> Paths | None:
        """The elements of the fabric that measurements cross; None if this run has not found any."""
        fabric = self.folder.read_if_there(FABRIC)
        return None if fabric is None else paths_of(fabric, self.plan, self.facts, bidirectional=self.bandwidth.is_bidirectional)

    @cached_property
    def software(self) -> bool:
        """Whether all devices are software. They have no line rate, so the level of the fleet counts."""
        return all(is_software(limit) for of in self.limits.values() for limit in of.values())

    def has(self, host: str, rail: str) -> bool:
        """Return whether a host takes part on a rail."""
        column = next((each for each in self.plan["rails"] if each["name"] == rail), None)
        if host in self.in_use:
            return False
        return column is not None and host in self.plan["hosts"] and column["addresses"][self.plan["hosts"].index(host)] is not None

    @cached_property
    def partitions(self) -> dict[tuple[str, str], int | None]:
        """(rail, host) → the partition of its port, None if there is none. Ports of different partitions are not paired."""
        return {
            (rail["name"], host): pkey
            for rail in self.plan["rails"]
            for host, pkey in zip(self.plan["hosts"], partitions(self.plan, rail), strict=True)
        }

    def partners(self, host: str, rail: str) -> list[str]:
        """Return the planned partners of an endpoint, in the plan's order."""
        return [each for each in self.plan["hosts"] if each in self._partners.get((host, rail), ())]

    @cached_property
    def _partners(self) -> dict[tuple[str, str], set[str]]:
        """(host, rail) → its partners. This is large for a full schedule of many hosts."""
        found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for rail, _round, server, client in planned_meetings(self.plan):
            name, ends = self.plan["rails"][rail]["name"], (self.plan["hosts"][server], self.plan["hosts"][client])
            for host, partner in (ends, ends[::-1]):
                found[host, name].add(partner)
        return dict(found)

    def is_over(self, hosts: Container[str]) -> bool:
        """Return whether the runner of each participating host has finished. A stopped sweep is not over."""
        there = [host for host in self.plan["hosts"] if host in hosts and host not in self.in_use]
        files = (self.folder.host_file(self.name, host, ".end.json") for host in there)
        return all((self.folder.read_if_there(file) or {}).get("finished") is True for file in files)

    def only_helps(self, host: str) -> bool:
        """Return whether a host takes part only as a proven partner."""
        schedule = self.plan["schedule"]
        return schedule["kind"] == "against" and host not in self.plan["hosts"][: schedule["new"]]

    @cached_property
    def places(self) -> Places:
        """The places where hosts are reached, and the probes that they answered during the re-measurement, after a failure."""
        plan = self.folder.read_if_there(f"{AGAIN}/plan.json") if self.name == SWEEP else None
        probes = [] if plan is None else replace(self, name=AGAIN, plan=plan).probes
        return Places.of(self.plan, answering(probes), answering_elsewhere(probes))

    def verdicts(self, settings: Mapping[str, Any], proofs: Proofs) -> list[Judged]:
        """Return the verdicts, by this sweep alone or by the earlier results of proven partners."""
        found = self.recorded_verdicts(settings, proofs).verdicts
        return judged(found, self.bandwidth, settings, software=self.software, places=self.places)

    def recorded_verdicts(self, settings: Mapping[str, Any], proofs: Proofs) -> RecordedVerdicts:
        """Return the verdicts from the run folder if they match results, plan, facts, settings and proofs; else compute and write them."""
        name, inputs = f"{self.name}/{VERDICTS}", self._inputs(settings, proofs)
        recorded = if_sound(self.folder.path / name, RecordedVerdicts.from_dict)
        if recorded is not None and recorded.inputs == inputs:
            return recorded
        matrix, found = self.bandwidth, self._localized(settings, proofs)
        stopping = [each.verdict for each in judged(found, matrix, settings, software=self.software) if each.is_suspect]
        computed = RecordedVerdicts(inputs, matrix.hosts, matrix.rails, len(matrix), self._endpoints, found, stopping)
        self.folder.write_json(name, computed.to_dict())
        return computed

    def _localized(self, settings: Mapping[str, Any], proofs: Proofs) -> list[Verdict]:
        found = localize(self.bandwidth, paths=self.paths)
        if self.plan["schedule"]["kind"] == "against":
            least_ratio = settings["software_fail_below"] if self.software else settings["fail_below"]
            found = beside_proven(found, self.bandwidth, self.plan["schedule"]["new"], least_ratio, self._proven_share(proofs))
        return found

    def _inputs(self, settings: Mapping[str, Any], proofs: Proofs) -> str:
        """Return the digest of all inputs of the verdicts.

        Facts are read again between the steps of a run, so it has only the relevant ones.
        """
        fabric = self.folder.path / FABRIC
        graph = hashlib.sha256(fabric.read_bytes()).hexdigest() if fabric.exists() else None
        devices = {profile["device"] for profile in self.plan["profiles"]} if graph else set[str]()
        guids = {
            host: {name: each.node_guid for name, each in self.facts[host].devices.items() if name in devices}
            for host in self.plan["hosts"]
            if host in self.facts
        }
        proven = self._proven_medians(proofs) if self.plan["schedule"]["kind"] == "against" else None
        return digest(self.plan, self._stamps, self.in_use, repr(self.limits), graph, guids, dict(settings), proven)

    @cached_property
    def _stamps(self) -> dict[str, tuple[int, int, int]]:
        """Host → values that change whenever its result file changes."""
        stats = {host: path.stat() for host, path in self._files().items()}
        return {host: (stat.st_size, stat.st_mtime_ns, stat.st_ino) for host, stat in stats.items()}

    def named(self, verdict: Verdict) -> list[Where]:
        """Return the endpoints that a verdict names: both of a pair, all of a host or rail, or those of a path's measurements."""
        matrix = self.bandwidth
        if verdict.kind == "path":
            at_fault = [(matrix.rail[at], host) for at in verdict.evidence for host in (matrix.server[at], matrix.client[at])]
            return list(dict.fromkeys(at_fault))
        hosts = {host for host in (verdict.host, verdict.other) if host is not None}
        return [(rail, host) for rail, host in self._endpoints if verdict.rail in (None, rail) and (not hosts or host in hosts)]

    @cached_property
    def _endpoints(self) -> list[Where]:
        return list(dict.fromkeys(self.bandwidth.endpoints()))

    def _proven_share(self, proofs: Proofs) -> float:
        """Return the ratio of this sweep's level to the earlier results of its proven partners; 1 for cards, compared with their links."""
        known = self._proven_medians(proofs)
        if not self.software or not known:
            return 1.0
        level = next((value / ratio for value, ratio in zip(self.bandwidth.value, self.bandwidth.ratio, strict=True) if ratio > 0), 0.0)
        return level / statistics.median(known)

    def _proven_medians(self, proofs: Proofs) -> list[float]:
        """Return the earlier results of the proven partners of this sweep."""
        return [proof.medians[BANDWIDTH] for host in self.plan["hosts"] if self.only_helps(host) for proof in proofs.get(host, {}).values()]

    def figures(self, verdicts: Sequence[Verdict]) -> dict[str, dict[str, dict[str, Figure]]]:
        """Return test → host → rail → its figure with partners that are not to blame."""
        matrices = {BANDWIDTH: self.bandwidth, **({} if self.latency is None else {LATENCY: self.latency})}
        blame = Blame.of(verdicts, self.bandwidth)
        return {test: _by_name(matrix, figures(matrix, blame)) for test, matrix in matrices.items()}

    def too_fast(self) -> dict[str, dict[str, int]]:
        """Return host → rail → the number of measurements above the physical maximum."""
        hosts, rails = list(self.bandwidth.hosts), list(self.bandwidth.rails)
        ceilings = {
            (rails.index(rail), hosts.index(host)): limit.ceiling_gbps * (1 + CLOCK_TOLERANCE)
            for host, of in self.limits.items()
            for rail, limit in of.items()
            if isinstance(limit, Limit)
        }
        return _by_name(self.bandwidth, too_fast(self.bandwidth, ceilings))

    def of_rail(self, rail: str) -> dict[str, Any]:
        """Return the summary of a rail for a person."""
        at = list(self.bandwidth.rails).index(rail) if rail in self.bandwidth.rails else -1
        planned = rail_schedules(self.plan)[at].schedule.meetings if at >= 0 else 0
        gbps, usec = (_known(matrix, at) for matrix in (self.bandwidth, self.latency))
        return {
            "planned": planned,
            "measured": len(gbps),
            "median_gbps": statistics.median(gbps) if gbps else None,
            "lowest_gbps": min(gbps, default=None),
            "highest_gbps": max(gbps, default=None),
            "median_usec": statistics.median(usec) if usec else None,
        }

    def _files(self) -> dict[str, Path]:
        paths = ((host, self._file(host, ".jsonl")) for host in self.plan["hosts"])
        return {host: path for host, path in paths if path.exists()}

    def _file(self, host: str, suffix: str) -> Path:
        return self.folder.path / self.folder.host_file(self.name, host, suffix)

    def counters(self) -> Counters:
        """Return the increase of the ports' counters during the sweep."""
        files = ((host, self._file(host, ".counters.json")) for host in self.plan["hosts"])
        return {host: self.folder.read_json(str(path.relative_to(self.folder.path))) for host, path in files if path.exists()}


def _by_name(matrix: Matrix, found: Mapping[Where, T]) -> dict[str, dict[str, T]]:
    named: dict[str, dict[str, T]] = {}
    for (rail, host), each in found.items():
        named.setdefault(matrix.hosts[host], {})[matrix.rails[rail]] = each
    return named


def _known(matrix: Matrix | None, rail: int) -> list[float]:
    if matrix is None:
        return []
    return [value for on, value in zip(matrix.rail, matrix.value, strict=True) if on == rail and not math.isnan(value)]
