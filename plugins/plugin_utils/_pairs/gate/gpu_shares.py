# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bandwidth of pairs from GPU memory against that of the same pairs from host memory: `pair.gpu` of the pairs gate."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Failure, Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.words import failure_remedy

declare(
    {
        "pair.gpu": Check(
            "pairs",
            "each rail, with `rdma_pairs.gpu_memory`: its bandwidth from the memory of its nearest GPU, at least 0.90 of that of the same "
            "pairs from host memory (`gpu_fail_below`); below a quarter, data goes through the host",
            "perftest with CUDA (`--use_cuda_bus_id`, `--use_cuda_dmabuf`), after the measurement from the host's memory",
            "check the path of the gpu stage, the distance of GPU and NIC, ACS and IOMMU; use a perftest built with CUDA",
            sources=(reads.result("sweep from GPUs"),),
        ),
    }
)

STAGE, CHECK = "pairs", "pair.gpu"
#: Host and rail.
Port = tuple[str, str]
#: Data that is copied through host memory keeps less than this share.
STAGED_BELOW = 0.25
STAGED = (
    "At this rate, data is copied through the host. On {host}, check: 1. the path in the findings of the gpu stage; 2. the distance of "
    "GPU and NIC (pcie.distance); 3. ACS and the IOMMU (pcie.acs, host.iommu)."
)
SLOW = "Check the PCIe path between GPU and NIC of {host}: pcie.distance, pcie.path, pcie.acs, host.iommu."


@dataclass(frozen=True)
class GpuShare:
    """One port: the shares of its pairs (1: as fast as from host memory), the failures, and the number of missing records."""

    shares: tuple[float, ...]
    failures: tuple[Failure, ...]
    missing: int


@dataclass(frozen=True)
class GpuShares:
    """The shares of a sweep."""

    ports: Mapping[Port, GpuShare]

    @classmethod
    def of(cls, gpu: Matrix, host: Matrix, without: Collection[Port]) -> GpuShares:
        """Return the shares. gpu, host: the same pairs' measurements from either memory. without: ports without a GPU.

        A pair without a GPU at one end, or that failed from host memory too, shows nothing about GPUs.
        """
        values = {where: value for where, value in _rows(host) if not math.isnan(value)}
        shares: dict[Port, list[float]] = {}
        failures: dict[Port, list[Failure]] = {}
        for at, (where, value) in enumerate(_rows(gpu)):
            ports = _ports(gpu, where)
            if where in values and not set(ports) & set(without):
                for port in ports:
                    if math.isnan(value):
                        failures.setdefault(port, []).append(gpu.failures.get(at, Failure("unknown")))
                    else:
                        shares.setdefault(port, []).append(value / values[where])
        lost = (_ports(gpu, where) for where in gpu.missing)
        missing = Counter(port for ports in lost if not set(ports) & set(without) for port in ports)
        return cls(
            {
                port: GpuShare(tuple(shares.get(port, ())), tuple(failures.get(port, ())), missing[port])
                for port in (*shares, *failures, *missing)
            }
        )

    def check(self, host: str, rail: str, gpu: Mapping[str, Any] | None, least: float, *, infiniband: bool = False) -> Finding:
        """Return the finding `pair.gpu`. gpu: of the endpoint. least: rdma_pairs.gpu_fail_below. infiniband: the link layer of the rail."""
        expected = f"at least {least:.2f} of the same pairs' bandwidth from host memory"
        if gpu is None:
            why = "no GPU is planned for its NIC (see the findings of the gpu stage)"
            return Finding(STAGE, CHECK, host, rail, NOT_APPLICABLE, why, expected)
        share = self.ports.get((host, rail), GpuShare((), (), 0))
        return Finding(STAGE, CHECK, host, rail, *_judged(host, share, gpu, least, expected, infiniband=infiniband))


def _rows(matrix: Matrix) -> list[tuple[tuple[int, int, int], float]]:
    ends = zip(matrix.rail, matrix.server, matrix.client, strict=True)
    return list(zip(ends, matrix.value, strict=True))


def _ports(matrix: Matrix, where: tuple[int, int, int]) -> list[Port]:
    rail, *ends = where
    return [(matrix.hosts[end], matrix.rails[rail]) for end in ends]


def _judged(
    host: str, share: GpuShare, gpu: Mapping[str, Any], least: float, expected: str, *, infiniband: bool
) -> tuple[str, str, str, str]:
    """Return (status, observed, expected, remedy). The median decides, because one partner with a slow GPU makes one pair slow."""
    path = f"GPU {gpu['bus_id']} by {'DMA-BUF' if gpu['dmabuf'] else 'peer memory'}"
    if len(share.failures) > len(share.shares):
        kind, number = Counter(each.kind for each in share.failures).most_common(1)[0]
        line = next((each.line for each in share.failures if each.kind == kind and each.line), "")
        remedy = failure_remedy(kind, line, host=host, rail="the rail", infiniband=infiniband)
        return ERROR, f"{path}: {number} measurements failed ({kind})", expected, remedy
    if not share.shares or share.missing:
        why = f"{share.missing} planned measurements left no record" if share.missing else "nothing to compare it with"
        return UNKNOWN, f"{path}: {why}", expected, "Run the pairs stage again with `-e rdma_measure=true`."
    median = statistics.median(share.shares)
    partners = f"{len(share.shares)} measurement{'s' if len(share.shares) != 1 else ''}"
    observed = f"{path}: {median:.2f} of that (median of {partners}, lowest {min(share.shares):.2f})"
    if median >= least:
        return OK, observed, expected, ""
    return ERROR, observed, expected, (STAGED if median < STAGED_BELOW else SLOW).format(host=host)
