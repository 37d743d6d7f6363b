# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet's part of the pairs gate: this run's sweep and valid proofs in one pass, findings for every host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, UNKNOWN, WARNING, Finding, stopping
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import LINK_LAYERS, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import AGAIN, ISOLATION, LOAD, SPINES, SWEEP, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import LatencyBounds, Limit, is_software, latency_bounds, limits
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.figures import Figure
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import FULL, Fleet, Standings, measured_pairs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.checks import (
    BANDWIDTH_CHECK,
    STAGE,
    Port,
    check_bandwidth,
    check_clock,
    check_errors,
    check_latency,
    check_results,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.qos_proof import QosGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.reader import Refused
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import NoLimit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import BANDWIDTH, LATENCY, tests_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt, Proof, Proofs, in_doubt
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.judged import CLEARED, Judged, after_again
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.low import low_ports
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.probes import answering, crossed_cables, crossing_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.words import steps
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.policy import apply_rules
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import partition_words

EXPECTED = "a measurement that still holds"


@dataclass(frozen=True)
class PairGate:
    """The inputs of the gate. settings: the intent's rdma_pairs. now: seconds since 1970. planned_hosts: of the play.

    doubts: what stops this gate on planes and whole rails. Ports in doubt are not proven by this run.
    """

    folder: RunFolder
    fleet: Fleet
    proofs: Proofs
    settings: Mapping[str, Any]
    max_age_hours: float
    check_mode: bool
    now: float
    planned_hosts: int
    doubts: Sequence[Doubt] = ()

    def judge(self) -> dict[str, list[Finding]]:
        """Return findings for every host. Record good measurements as proofs, and write the figures to pairs/summary.json."""
        findings = {host: list(self._of_host(host)) or [_no_pair(host, self.planned_hosts)] for host in self.fleet.hosts}
        self.folder.write_json("pairs/summary.json", self._summary())
        if self.sweep is not None and not self.check_mode:
            self.folder.write_json(pairs_proofs.FILE, pairs_proofs.write(self._renewed(findings)))
        return findings

    @cached_property
    def sweep(self) -> Evidence | None:
        return Evidence.of(self.folder, SWEEP, self.fleet.intents, self.fleet.facts)

    @cached_property
    def standings(self) -> Standings:
        return self.fleet.standings(self.proofs, self.now, self.max_age_hours)

    @cached_property
    def refused(self) -> Mapping[str, Sequence[Refused]]:
        """Host → the ignored lines of its results, of each sweep of this run."""
        others = (Evidence.of(self.folder, name, self.fleet.intents, self.fleet.facts) for name in (AGAIN, LOAD, SPINES, ISOLATION))
        found: dict[str, list[Refused]] = {}
        for sweep in (self.sweep, *others):
            for host, lines in ({} if sweep is None else sweep.refused).items():
                found.setdefault(host, []).append(lines)
        return found

    @cached_property
    def verdicts(self) -> list[Judged]:
        """The verdicts of the sweep, after the re-measurement of their suspects."""
        return [each for each in self._accusations if each.stands_out]

    @cached_property
    def _accusations(self) -> list[Judged]:
        """The verdicts, and the ports that only their own figures reject, both after the re-measurement."""
        sweep = self.sweep
        if sweep is None:
            return []
        found = sweep.verdicts(self.settings, self.proofs)
        found += low_ports(sweep, found, self.settings)
        again = Evidence.of(self.folder, AGAIN, self.fleet.intents, self.fleet.facts)
        if again is None:
            return found
        after = after_again(found, sweep.bandwidth, again.bandwidth, self.settings, software=sweep.software, places=sweep.places)
        return self._with_probes(after, sweep, again)

    def _with_probes(self, found: list[Judged], sweep: Evidence, again: Evidence) -> list[Judged]:
        """Return the verdicts; those on hosts and NICs that still fail have the partners' observations of their addresses."""
        matrix, probes = sweep.bandwidth, again.probes
        failing = [each for each in found if each.verdict.failed and each.verdict.host is not None and each.again != CLEARED]
        accused = {matrix.hosts[each.verdict.host or 0] for each in failing if each.verdict.kind != "pair"}
        after = {}
        for each in failing:
            ends = [matrix.hosts[end] for end in (each.verdict.host, each.verdict.other) if end is not None]
            seen = [crossing_words(end, crossed_cables(end, probes, self._macs, accused)) for end in ends]
            known = [words for words in seen if words is not None]
            if len(ends) == 1 and known:
                after[id(each)] = replace(each, observed=f"{each.observed}; {known[0][0]}", remedy=steps(known[0][1]))
            elif known:
                observed = f"{each.observed}; two cables are swapped at {' or '.join(ends)}: a NIC answers ARP on another rail"
                after[id(each)] = replace(each, observed=observed, remedy=steps(*(words[1] for words in known)))
            elif answering(probe for probe in probes if probe.target in ends):
                after[id(each)] = replace(each, observed=f"{each.observed}; {' or '.join(ends)} answers ping")
        return [after.get(id(each), each) for each in found]

    @property
    def _macs(self) -> dict[tuple[str, str], str]:
        """Return (host, rail) → MAC address of its interface."""
        found = {}
        for host, facts in self.fleet.facts.items():
            for rail in resolve(self.fleet.intents[host]["rails"], facts):
                netdev = facts.netdevs.get(rail.netdev or "")
                if netdev and netdev.mac is not None:
                    found[host, rail.name] = netdev.mac.lower()
        return found

    @cached_property
    def blame(self) -> dict[str, dict[str, list[Judged]]]:
        """Host → rail → the verdicts that name it, or the rejection by its own figure."""
        found: dict[str, dict[str, list[Judged]]] = {}
        if self.sweep is not None:
            matrix = self.sweep.bandwidth
            for each in self._accusations:
                for rail, host in self.sweep.named(each.verdict):
                    found.setdefault(matrix.hosts[host], {}).setdefault(matrix.rails[rail], []).append(each)
        return found

    @cached_property
    def figures(self) -> dict[str, dict[str, dict[str, Figure]]]:
        """Test → host → rail → its figure in this run's sweep."""
        return {} if self.sweep is None else self.sweep.figures([each.verdict for each in self.verdicts])

    @cached_property
    def too_fast(self) -> dict[str, dict[str, int]]:
        return {} if self.sweep is None else self.sweep.too_fast()

    @cached_property
    def limits(self) -> Mapping[str, Mapping[str, Limit | NoLimit]]:
        """The limits of each endpoint of the fleet."""
        tests = tests_of(self.fleet.intents[self.fleet.hosts[0]]) if self.fleet.hosts else []
        whole = {"hosts": self.fleet.hosts, "rails": [{"name": rail} for rail in self.fleet.rails], "tests": tests}
        return limits(whole, self.fleet.intents, self.fleet.facts)

    @cached_property
    def blocked(self) -> Mapping[str, str]:
        """The hosts that were busy when the sweep was planned or began, and with what."""
        return {**(self.folder.read_if_there("pairs/blocked.json") or {}), **({} if self.sweep is None else self.sweep.in_use)}

    @cached_property
    def counters(self) -> Mapping[str, Mapping[str, Any]]:
        return {} if self.sweep is None else self.sweep.counters()

    @cached_property
    def qos(self) -> QosGate:
        return QosGate(self.folder, self.fleet, self.sweep, self._line_gbps)

    def _line_gbps(self, host: str, rail: str) -> float | None:
        """Return the capacity of one port: its limit, or for software its figure in the sweep."""
        limit = self.limits.get(host, {}).get(rail)
        return limit.gbps if isinstance(limit, Limit) else self.figures[BANDWIDTH].get(host, {}).get(rail, NOTHING).median

    def attempted(self, host: str, rail: str) -> bool:
        """Return whether this run tried to prove an endpoint. An endpoint that only helps others is judged by its own proof."""
        return self.sweep is not None and self.sweep.has(host, rail) and not self.sweep.only_helps(host)

    def _of_host(self, host: str) -> Iterator[Finding]:
        measured = []
        lost = self._lost_clock(host)
        for rail in self.fleet.endpoints[host]:
            if rail in lost:
                continue
            if self.attempted(host, rail):
                measured.append(rail)
                yield from self._measured(host, rail)
            elif self.standings[host][rail].valid:
                yield from self._proven(host, rail)
            elif len(self.fleet.reached(host, rail)) > 1:
                yield self._unmeasured(host, rail)
            elif self.planned_hosts > 1:
                yield self._alone(host, rail)
        yield from self._clock(host, lost)
        if host in self.refused:
            yield check_results(host, self.refused[host])
        yield from (_no_endpoint(host, rail, self.fleet.why_missing(host, rail)) for rail in self.fleet.missing(host))
        if measured:
            software = [(rail, is_software(self.limits[host][rail])) for rail in measured]
            yield from check_errors(host, self.counters.get(host, {}), software)
            yield from self.qos.traffic(host, measured, self.counters.get(host, {}))
        yield from self.qos.load(host)

    def _lost_clock(self, host: str) -> list[str]:
        """Return the rails of a host without measurements because perftest could not calibrate its clock, here or at a partner."""
        if self.sweep is None:
            return []
        rails = [rail for rail in self.fleet.endpoints[host] if self._touched(host, rail) and self.attempted(host, rail)]
        figures = {rail: self.figures[BANDWIDTH].get(host, {}).get(rail, NOTHING) for rail in rails}
        return [rail for rail, figure in figures.items() if not figure.measured and not figure.failed and not figure.missing]

    def _touched(self, host: str, rail: str) -> bool:
        """Return whether perftest could not calibrate its clock in a measurement of an endpoint."""
        lost = () if self.sweep is None else self.sweep.uncalibrated
        return any(on == rail and host in (client, partner) for client, on, partner in lost)

    def _clock(self, host: str, lost: Sequence[str]) -> Iterator[Finding]:
        """Yield one finding for a host: the number of measurements lost by perftest's clock, and the rails without any left."""
        if self.sweep is None:
            return
        own = sum(number for (client, _rail, _partner), number in self.sweep.uncalibrated.items() if client == host)
        others = sorted({client for client, rail, partner in self.sweep.uncalibrated if partner == host and rail in lost})
        if own or lost:
            sources = (str(each["clock_source"]) for each in self.sweep.failures(host) if each.get("clock_source"))
            yield check_clock(host, own, lost, others, next(sources, None))

    def _measured(self, host: str, rail: str) -> Iterator[Finding]:
        figure = self.figures[BANDWIDTH].get(host, {}).get(rail, NOTHING)
        verdicts = tuple(self.blame.get(host, {}).get(rail, []))
        port = Port(host, rail, self.limits[host][rail], figure, verdicts, self.too_fast.get(host, {}).get(rail, 0))
        yield check_bandwidth(port, self.settings)
        if LATENCY in self.figures and not any(each.verdict.failed for each in verdicts):
            latency = self.figures[LATENCY].get(host, {}).get(rail, NOTHING)
            usec = latency.median if latency.failed + latency.missing <= latency.measured else None
            # Without any record, perftest could not calibrate its clock, which is a separate finding.
            if latency.measured or latency.failed or latency.missing or not self._touched(host, rail):
                yield check_latency(port, usec, self._latency_bounds(host, rail))
        if self.sweep is not None and self.sweep.gpu is not None:
            endpoint = self.fleet.endpoints[host][rail]
            infiniband = endpoint.get("gid_index") is None
            yield self.sweep.gpu.check(host, rail, endpoint["gpu"], self.settings["gpu_fail_below"], infiniband=infiniband)

    def _proven(self, host: str, rail: str) -> Iterator[Finding]:
        proof = self.standings[host][rail].proof
        if proof is not None:
            named = tuple(each for each in self.blame.get(host, {}).get(rail, []) if each.verdict.kind != "pair")
            port = Port(host, rail, self.limits[host][rail], _figure_of(proof), named, run=proof.run)
            yield check_bandwidth(port, self.settings)
            if LATENCY in proof.medians:
                yield check_latency(port, proof.medians[LATENCY], self._latency_bounds(host, rail))

    def _latency_bounds(self, host: str, rail: str) -> LatencyBounds | NoLimit:
        planned = next(each for each in self.fleet.intents[host]["rails"] if each["name"] == rail)
        software = is_software(self.limits[host][rail])
        layer = LINK_LAYERS[planned["link_layer"]]
        bounds = latency_bounds(layer, software=software, command=self.settings["latency_command"])
        fail_usec = self.settings.get("latency_fail_usec")
        if isinstance(bounds, NoLimit) or fail_usec is None:
            return bounds
        return LatencyBounds(min(bounds.warn_usec, fail_usec), fail_usec)

    def _alone(self, host: str, rail: str) -> Finding:
        """Return the finding on an endpoint that no other host of this play can reach."""
        apart = partition_words(self.fleet.endpoints[host][rail].get("pkey"))
        if apart and len(self.fleet.having(rail)) > 1 and len(self.fleet.hosts) == self.planned_hosts:
            return Finding(STAGE, BANDWIDTH_CHECK, host, rail, NOT_APPLICABLE, f"no other host on this rail is in its {apart}", EXPECTED)
        others = [each for each in self.fleet.hosts if each != host and rail in (of["name"] for of in self.fleet.intents[each]["rails"])]
        if not others and len(self.fleet.hosts) == self.planned_hosts:
            return Finding(STAGE, BANDWIDTH_CHECK, host, rail, NOT_APPLICABLE, "no other host has this rail", EXPECTED)
        why = "the other hosts of this rail are not in the play, or cannot be measured"
        return Finding(STAGE, BANDWIDTH_CHECK, host, rail, UNKNOWN, why, EXPECTED, "Fix the other hosts first, then rerun.")

    def _unmeasured(self, host: str, rail: str) -> Finding:
        """Return the finding on an endpoint with neither a valid proof nor a measurement in this run."""
        standing = self.standings[host][rail]
        if self.check_mode:
            why = f"{standing.words}; nothing is measured in check mode"
            return Finding(STAGE, BANDWIDTH_CHECK, host, rail, NOT_APPLICABLE, why, EXPECTED)
        if host in self.blocked:
            why = f"{standing.words}; not measured, because the host is busy: {self.blocked[host]}"
            status = WARNING if standing.too_old else UNKNOWN
            remedy = "Rerun when the host is idle, or allow load with `-e rdma_load_allowed=true`."
            return Finding(STAGE, BANDWIDTH_CHECK, host, rail, status, why, EXPECTED, remedy)
        others = "; the other hosts on this rail are busy" if self.blocked else ""
        why = f"{standing.words}; not measured in this run{others}"
        return Finding(STAGE, BANDWIDTH_CHECK, host, rail, UNKNOWN, why, EXPECTED, "Measure with `-e rdma_measure=true`.")

    def _renewed(self, findings: Mapping[str, list[Finding]]) -> Proofs:
        """Return the proofs after this sweep: ports without a verdict, a rejection by a check, or a doubt on their plane are proven.

        A host with ignored result lines proves none of its ports with this sweep.
        """
        attempted = {host: {rail for rail in of if self._tried(host, rail)} for host, of in self.fleet.endpoints.items()}
        doubted = in_doubt(self.doubts, {(host, rail) for host, rails in attempted.items() for rail in rails})
        good: Proofs = {}
        for host, rails in attempted.items():
            if host in self.refused:
                continue
            bad = {each.subject for each in self._refused(host, findings[host])} | {rail for rail in rails if (host, rail) in doubted}
            for rail in rails - bad - set(self.blame.get(host, {})):
                good.setdefault(host, {})[rail] = self._proof(host, rail)
        return pairs_proofs.renewed(self.proofs, attempted, good)

    def _refused(self, host: str, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings against a proof: those that stop the gate, alone or by the intent's rules.

        A milder rule does not make a port good.
        """
        today = datetime.fromtimestamp(self.now, UTC).date()
        return stopping([*findings, *apply_rules(findings, self.fleet.intents[host]["checks"], today)])

    def _tried(self, host: str, rail: str) -> bool:
        """Return whether an endpoint has results or a verdict of this run. Endpoints not reached by a stopped sweep keep their proofs."""
        figure = self.figures[BANDWIDTH].get(host, {}).get(rail, NOTHING)
        if self.attempted(host, rail):
            return bool(figure.measured or figure.failed)
        return any(each.verdict.kind != "pair" for each in self.blame.get(host, {}).get(rail, []))

    def _proof(self, host: str, rail: str) -> Proof:
        of = {test: figure for test, by_host in self.figures.items() if (figure := by_host.get(host, {}).get(rail)) is not None}
        bandwidth = of[BANDWIDTH]
        medians = {test: figure.median for test, figure in of.items() if figure.median is not None}
        endpoint = self.fleet.endpoints[host][rail]
        basis = self.fleet.bases[host][rail]
        met = self.sweep.partners(host, rail) if self.sweep is not None and self._leaves_pairs_out else None
        return Proof(basis, self.now, self.folder.path.name, bandwidth.partners, medians, bandwidth.ratio or 0.0, endpoint, met)

    @property
    def _leaves_pairs_out(self) -> bool:
        """Return whether the schedule of the sweep omits pairs. Beside proven hosts, a few partners are enough for every schedule."""
        kind = FULL if self.sweep is None else self.sweep.plan["schedule"]["kind"]
        return FULL not in (kind, measured_pairs(self.settings["schedule"]) if kind == "against" else kind)

    def _summary(self) -> dict[str, Any]:
        """Return one line for each rail and each verdict, for a person; verdicts cleared by the re-measurement are separate."""
        return {
            "rails": [self._rail(rail) for rail in self.fleet.rails if self.fleet.having(rail)],
            "verdicts": [each.words for each in self.verdicts if each.again != CLEARED],
            "cleared": [each.words for each in self.verdicts if each.again == CLEARED],
        }

    def _rail(self, rail: str) -> dict[str, Any]:
        having = self.fleet.having(rail)
        proven = sum(self.standings[host][rail].valid and not self.attempted(host, rail) for host in having)
        return {"rail": rail, "ports": len(having), "proven": proven, **(self.sweep.of_rail(rail) if self.sweep else NOT_SWEPT)}


NOTHING = Figure(0, 0, 0, 0, None, None, None, None)
NOT_SWEPT = {"planned": 0, "measured": 0, "median_gbps": None, "lowest_gbps": None, "highest_gbps": None, "median_usec": None}


def _figure_of(proof: Proof) -> Figure:
    median = proof.medians[BANDWIDTH]
    return Figure(proof.partners, 0, 0, proof.partners, median, median, median, proof.ratio)


def _no_endpoint(host: str, rail: str, known: tuple[str, str] | None) -> Finding:
    """Return the finding on a planned rail that cannot be measured. known: reason and remedy for an existing port, if known."""
    why, remedy = known or ("no RDMA device, or no GID for its address", f"Fix the findings of the driver and network stages on {host}.")
    return Finding(STAGE, BANDWIDTH_CHECK, host, rail, UNKNOWN, why, "an endpoint to measure", remedy)


def _no_pair(host: str, planned_hosts: int) -> Finding:
    """Return the finding on a host without any planned pair."""
    if planned_hosts < 2:
        why = "a single host has no pair"
        return Finding(STAGE, BANDWIDTH_CHECK, host, "all rails", NOT_APPLICABLE, why, "at least one pair")
    remedy = f"Fix the findings of the driver and network stages on {host}: a rail without a GID has no pairs."
    why = "no pair of this host was planned"
    return Finding(STAGE, BANDWIDTH_CHECK, host, "all rails", UNKNOWN, why, "at least one pair", remedy)
