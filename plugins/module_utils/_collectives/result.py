# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of nccl-tests has said, be it in text or in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import NcclLog


@dataclass(frozen=True)
class Rank:
    """One rank as the list of devices has it. group: of NCCL_TESTS_SPLIT, None before version 2.13; device: CUDA's number of the GPU;
    bus_id: as printed, "0000:c1:00" (domain, bus, device), "0xc1" (the bus alone) before version 2.17."""

    rank: int
    group: int | None
    pid: int
    host: str
    device: int
    bus_id: str
    name: str


@dataclass(frozen=True)
class Settings:
    """The line of options. threads and gpus: of one process each; validation: 0 where nothing was checked. None: not told."""

    threads: int
    gpus: int
    min_bytes: int
    max_bytes: int
    warmup: int | None
    iterations: int | None
    validation: int | None


@dataclass(frozen=True)
class Measured:
    """One half of a row. GB/s are 10^9 bytes a second, as printed. wrong: values that are wrong, None where nothing was checked.

    deviation: before version 2.13 the greatest deviation of a value stands where later versions count the wrong ones.
    """

    time_usec: float | None
    algbw_gbytes_per_s: float | None
    busbw_gbytes_per_s: float | None
    wrong: int | None
    deviation: float | None = None


@dataclass(frozen=True)
class Row:
    """One size. redop and root: as printed ("none", -1), None where the collective has no such column; a half is None if it was not run."""

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
    """What is not told is None. version, headers_version, library_version: of nccl-tests, of NCCL when it was built, and when it ran.

    test: the program ("all_reduce_perf"); nranks: how many ranks took part, None if the list of devices is not whole;
    average_busbw_gbytes_per_s: over all sizes, both halves; average_ok: held against NCCL_TESTS_MIN_BW, None without it;
    out_of_bounds: how many checks failed, with its OK; errors: lines that tell of a failure, without what the launcher puts before them;
    runs: how many programs have printed: more than one are as many tests of their own, as a build without MPI makes them. ranks and rows
    are those of all then, out_of_bounds is their sum, and what only one can have is None unless all say the same;
    truncated: an end is not there; elided: something before it is not.
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
    """NCCL_VERSION_CODE as text: 22809 → "2.28.9", and before 2.9 2804 → "2.8.4". None for what is no such code (0: not told)."""
    if code >= 10000:
        return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
    return f"{code // 1000}.{code // 100 % 10}.{code % 100}" if code >= 1000 else None


def whole_number_of_ranks(ranks: tuple[Rank, ...]) -> int | None:
    """How many ranks a list names, None if one is missing in between or there is none."""
    numbers = {rank.rank for rank in ranks}
    return len(numbers) if numbers and len(numbers) == max(numbers) + 1 else None


STAGE = "collectives"
EXIT_CHECK, RANKS_CHECK, WRONG_CHECK = "collective.exit", "collective.ranks", "collective.wrong"
BUSBW_CHECK, TRANSPORT_CHECK, HCAS_CHECK = "collective.busbw", "collective.transport", "collective.hcas"


@dataclass(frozen=True)
class Expected:
    """hosts: host of the inventory → its name as NCCL prints it, without a domain; ranks: of all hosts together.

    gbytes_per_s: what busbw is held against in 10^9 bytes a second, the sum of the payload rates of one host's NICs, or NVLink's on
    one host; None where there is no such figure, and no_limit says why. hcas: host → its planned devices; a host that is not in it
    is not asked; all_hcas: whether each of them must be used. gdr: whether GPUDirect RDMA is planned, None where the intent leaves it
    open; p2p: the same of GPUs within a host. network: what NCCL's network is called, or how its name begins ("IB" is also IBext);
    large_bytes: from this size on busbw counts.
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
    """One run. host: where it was launched; subject: "all_reduce_perf on 4 hosts"; exit_status: None if it was not run to its end.

    test, log: None where there is no output, or none that can be read; problem: why. launcher: what that has said, of a run that did not
    end well.
    """

    host: str
    subject: str
    exit_status: int | None
    test: NcclTestsResult | None
    log: NcclLog | None
    problem: str = ""
    launcher: str = ""


def short_name(host: str) -> str:
    """A host's name without its domain, as NCCL and nccl-tests print it."""
    return host.partition(".")[0]
