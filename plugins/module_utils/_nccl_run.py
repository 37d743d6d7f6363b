# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of nccl-tests should have been, and what has come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._nccl_log_model import NcclLog
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_tests_result import NcclTestsResult

STAGE = "collectives"
EXIT_CHECK, RANKS_CHECK, WRONG_CHECK = "collective.exit", "collective.ranks", "collective.wrong"
BUSBW_CHECK, TRANSPORT_CHECK, HCAS_CHECK = "collective.busbw", "collective.transport", "collective.hcas"


@dataclass(frozen=True)
class Expected:
    """hosts: host of the inventory → its name as NCCL prints it, without a domain; ranks: of all hosts together.

    gbytes_per_s: what busbw is held against in 10^9 bytes a second, the sum of the payload rates of one host's NICs, or NVLink's on
    one host (B95); None where there is no such figure, and no_limit says why. hcas: host → its planned devices; a host that is not in it
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
