# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of runs as metrics: of all hosts in metrics.prom of a run, of one host in the file of its collector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import STATUSES
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.catalogue import DRIFT, FINDINGS, GATE, GATE_TIME, PROOF_TIME
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.exposition import Metric, Sample


@dataclass(frozen=True)
class Gate:
    """The verdict of a stage's gate on a host. status: the worst of its findings. judged: seconds since 1970."""

    status: str
    judged: float


@dataclass(frozen=True)
class HostResults:
    """What runs have found about one host.

    gates: by stage. findings: check → status → count of findings that are not ok. proofs: rail → when it was measured, in seconds since
    1970. drift: stage → settings that differ; None if no run has looked for it.
    """

    gates: Mapping[str, Gate] = field(default_factory=dict)
    findings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    proofs: Mapping[str, float] = field(default_factory=dict)
    drift: Mapping[str, int] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> HostResults:
        """Return what to_dict has made. Raises ParseError."""
        try:
            return cls(
                gates={str(stage): Gate(str(gate["status"]), float(gate["judged"])) for stage, gate in data["gates"].items()},
                findings={str(check): {str(key): int(value) for key, value in of.items()} for check, of in data["findings"].items()},
                proofs={str(rail): float(measured) for rail, measured in data["proofs"].items()},
                drift=None if data["drift"] is None else {str(stage): int(count) for stage, count in data["drift"].items()},
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ParseError(f"not the results of runs: {type(error).__name__} {error}") from error


def result_samples(hosts: Mapping[str, HostResults]) -> list[tuple[Metric, list[Sample]]]:
    """Return the families of the results of hosts, by name.

    A host in a stage has one sample for each status, 1 for the current one and 0 for the others, so that a query needs no table of
    numbers: `rdma_cluster_gate{status="error"} == 1`. A host without drift has a sample of 0, which shows that its drift has ended.
    """
    return [
        (GATE, list(_gates(hosts))),
        (GATE_TIME, [({"host": host, "stage": stage}, gate.judged) for host, of in hosts.items() for stage, gate in of.gates.items()]),
        (FINDINGS, list(_findings(hosts))),
        (PROOF_TIME, [({"host": host, "rail": rail}, at) for host, of in hosts.items() for rail, at in sorted(of.proofs.items())]),
        (DRIFT, list(_drift(hosts))),
    ]


def counted(findings: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Return check → status → count of (check, status)."""
    found: dict[str, dict[str, int]] = {}
    for (check, status), count in sorted(Counter(findings).items()):
        found.setdefault(check, {})[status] = count
    return found


def _gates(hosts: Mapping[str, HostResults]) -> Iterable[Sample]:
    for host, of in hosts.items():
        for stage, gate in of.gates.items():
            for status in STATUSES:
                yield {"host": host, "stage": stage, "status": status}, float(status == gate.status)


def _findings(hosts: Mapping[str, HostResults]) -> Iterable[Sample]:
    for host, of in hosts.items():
        for check, statuses in of.findings.items():
            for status, count in statuses.items():
                yield {"host": host, "check": check, "status": status}, float(count)


def _drift(hosts: Mapping[str, HostResults]) -> Iterable[Sample]:
    for host, of in hosts.items():
        if of.drift is not None and not of.drift:
            yield {"host": host, "stage": ""}, 0.0
        for stage, count in sorted((of.drift or {}).items()):
            yield {"host": host, "stage": stage}, float(count)
