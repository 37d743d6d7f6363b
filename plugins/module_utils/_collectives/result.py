# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a run of nccl-tests, from text or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import NcclLog


@dataclass(frozen=True)
class Rank:
    """One rank in the list of devices.

    group: of NCCL_TESTS_SPLIT, None before version 2.13; device: CUDA's number of the GPU; bus_id: as printed, "0000:c1:00" (domain, bus,
    device), "0xc1" (the bus alone) before version 2.17.
    """

    rank: int
    group: int | None
    pid: int
    host: str
    device: int
    bus_id: str
    name: str


@dataclass(frozen=True)
class Settings:
    """The line of options. threads and gpus: of one process each; validation: 0 without a check. None: unknown."""

    threads: int
    gpus: int
    min_bytes: int
    max_bytes: int
    warmup: int | None
    iterations: int | None
    validation: int | None


@dataclass(frozen=True)
class Measured:
    """One half of a row. GB/s are 10^9 bytes a second, as printed. wrong: the number of wrong values, None without a check.

    deviation: before version 2.13 the output has the largest deviation of a value instead of the number of wrong ones.
    """

    time_usec: float | None
    algbw_gbytes_per_s: float | None
    busbw_gbytes_per_s: float | None
    wrong: int | None
    deviation: float | None = None


@dataclass(frozen=True)
class Row:
    """One size. redop and root: as printed ("none", -1), None if the collective has no such column; a half is None if it was not run."""

    size_bytes: int
    count: int
    type: str
    redop: str | None
    root: int | None
    out_of_place: Measured | None
    in_place: Measured | None

    @property
    def halves(self) -> tuple[Measured, ...]:
        return tuple(half for half in (self.out_of_place, self.in_place) if half is not None)


@dataclass(frozen=True)
class NcclTestsResult:
    """Unknown values are None. version, headers_version, library_version: of nccl-tests, of NCCL at build time, and at run time.

    test: the program ("all_reduce_perf"); nranks: the number of ranks, None if the list of devices is incomplete;
    average_busbw_gbytes_per_s: over all sizes, both halves; average_ok: compared with NCCL_TESTS_MIN_BW, None without it; out_of_bounds:
    the number of failed checks, with its OK; errors: lines that report a failure, without the launcher's prefix; runs: the number of
    programs in the output. More than one are separate tests, as from a build without MPI. ranks and rows are then those of all,
    out_of_bounds is their sum, and single values are None unless all are equal; truncated: an end is missing; elided: something before it
    is missing.
    """

    version: str | None
    headers_version: str | None
    library_version: str | None
    test: str | None
    settings: Settings | None
    ranks: tuple[Rank, ...]
    nranks: int | None
    rows: tuple[Row, ...]
    average_busbw_gbytes_per_s: float | None
    average_ok: bool | None
    out_of_bounds: int | None
    out_of_bounds_ok: bool | None
    errors: tuple[str, ...]
    runs: int
    truncated: bool
    elided: bool


def nccl_version(code: int) -> str | None:
    """Return NCCL_VERSION_CODE as text: 22809 → "2.28.9", and before 2.9 2804 → "2.8.4". None for an invalid code (0: unknown)."""
    if code >= 10000:
        return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
    return f"{code // 1000}.{code // 100 % 10}.{code % 100}" if code >= 1000 else None


def whole_number_of_ranks(ranks: tuple[Rank, ...]) -> int | None:
    """Return the number of ranks in a list, None if one is missing in between or there is none."""
    numbers = {rank.rank for rank in ranks}
    return len(numbers) if numbers and len(numbers) == max(numbers) + 1 else None


STAGE = "collectives"
EXIT_CHECK, RANKS_CHECK, WRONG_CHECK = "collective.exit", "collective.ranks", "collective.wrong"
BUSBW_CHECK, TRANSPORT_CHECK, HCAS_CHECK = "collective.busbw", "collective.transport", "collective.hcas"


@dataclass(frozen=True)
class Expected:
    """hosts: host of the inventory → its name as NCCL prints it, without a domain; ranks: of all hosts together.

    gbytes_per_s: the reference for busbw in 10^9 bytes a second, the sum of the payload rates of one host's NICs, or NVLink's on one host;
    None without such a figure, with the reason in no_limit. hcas: host → its planned devices; other hosts are not checked; all_hcas:
    whether each of them must be used. gdr: whether GPUDirect RDMA is planned, None if the intent does not define it; p2p: the same for GPUs
    within a host. network: the name of NCCL's network, or its prefix ("IB" is also IBext); large_bytes: busbw counts from this size on.
    """

    ranks: int
    hosts: Mapping[str, str]
    gbytes_per_s: float | None = None
    no_limit: str = ""
    hcas: Mapping[str, frozenset[str]] = field(default_factory=dict)
    all_hcas: bool = True
    gdr: bool | None = None
    p2p: bool | None = None
    network: str = "IB"
    fail_below: float = 0.80
    warn_below: float = 0.90
    large_bytes: int = 2**28


@dataclass(frozen=True)
class Outcome:
    """One run. host: where it was launched; subject: "all_reduce_perf on 4 hosts"; exit_status: None if it did not run to its end.

    test, log: None without output, or without readable output; problem: the reason. launcher: the launcher's messages of a failed run.
    """

    host: str
    subject: str
    exit_status: int | None
    test: NcclTestsResult | None
    log: NcclLog | None
    problem: str = ""
    launcher: str = ""


def short_name(host: str) -> str:
    """Return a host's name without its domain, as NCCL and nccl-tests print it."""
    return host.partition(".")[0]
