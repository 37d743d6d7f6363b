# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules between NCCL's variables: those that disable another one, and those that contradict each other.

Sources: NCCL's guide on environment variables (docs/userguide/source/env.rst of v2.30.7-1), and its source if a rule names it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import INFO, Case, Violation, take_out
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import parse_selections
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import is_older
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.table import VARIABLES

GID = "NCCL_IB_GID_INDEX"
GID_CHOICE = ("NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE", "NCCL_IB_ROCE_VERSION_NUM")
#: From these versions on NCCL finds the GID itself, an algorithm that a collective does not have is an error, and a P_Key may be set.
FINDS_GID_SINCE, STRICT_SINCE, PKEY_VALUE_SINCE = "2.21.5", "2.24.3", "2.31.2"
#: src/transport/net_socket.cc, MAX_SOCKETS.
MOST_SOCKETS = 64
#: No table of P_Keys is that long; all except the smallest keys are larger.
LEAST_KEY = 0x1000


@dataclass(frozen=True)
class Rule:
    """A named rule over the variables of one job."""

    name: str
    severity: str
    judge: Callable[[Case], Iterator[Violation]]


def gid_index_dead(case: Case) -> Iterator[Violation]:
    dead = case.some(*GID_CHOICE)
    if (case.number(GID) or 0) >= 0 and case.value(GID) and dead:
        observed = f"{case.words(GID)} disables {case.words(*dead)}"
        yield Violation((GID, *dead), observed, "a single method to select the GID", take_out(case, [GID]))


def gid_index_fixed(case: Case) -> Iterator[Violation]:
    number = case.number(GID)
    if number is not None and number >= 0 and not is_older(case.version, FINDS_GID_SINCE):
        expected = "not set: NCCL 2.21 and newer finds each port's GID"
        yield Violation((GID,), f"{case.words(GID)}, for every port", expected, take_out(case, [GID]))


def ib_disabled_dead(case: Case) -> Iterator[Violation]:
    others = (name for name in case.job.settings if name.startswith("NCCL_IB_") and name in VARIABLES)
    dead = [name for name in others if name != "NCCL_IB_DISABLE" and case.value(name)]
    if case.number("NCCL_IB_DISABLE") and dead:
        observed = f"NCCL_IB_DISABLE={case.value('NCCL_IB_DISABLE')} disables {case.words(*dead)}"
        yield Violation(("NCCL_IB_DISABLE", *dead), observed, "NCCL uses RDMA", take_out(case, ["NCCL_IB_DISABLE"]))


def p2p_level_dead(case: Case) -> Iterator[Violation]:
    if case.number("NCCL_P2P_DISABLE") == 1 and case.value("NCCL_P2P_LEVEL"):
        names = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")
        yield Violation(names, f"{case.words(*names)}: the level has no effect", "neither, outside of tests", take_out(case, names))


def nrings_dead(case: Case) -> Iterator[Violation]:
    for end in ("MAX", "MIN"):
        newer = case.some(f"NCCL_{end}_NCHANNELS", f"NCCL_{end}_CTAS")
        if case.value(f"NCCL_{end}_NRINGS") and newer:
            old = f"NCCL_{end}_NRINGS"
            observed = f"{case.words(old, *newer)}: {old} has no effect or is superseded"
            yield Violation((old, *newer), observed, newer[-1], take_out(case, [old]))


def min_over_max(case: Case) -> Iterator[Violation]:
    for kind in ("CTAS", "NCHANNELS", "NRINGS", "P2P_NCHANNELS"):
        names = (f"NCCL_MIN_{kind}", f"NCCL_MAX_{kind}")
        low, high = (case.number(name) for name in names)
        if low is not None and high is not None and low > high > 0:
            remedy = f"Set {names[0]} to {high} or less, or neither."
            yield Violation(names, case.words(*names), f"{names[0]} is not above {names[1]}", remedy)


def split_without_qps(case: Case) -> Iterator[Violation]:
    names = ("NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_IB_QPS_PER_CONNECTION")
    qps = case.number(names[1])
    if case.number(names[0]) and (1 if qps is None else qps) <= 1:
        observed = f"{names[0]}={case.value(names[0])} with one queue pair per connection"
        yield Violation(names, observed, f"{names[1]} of 2 or more, or no {names[0]}", take_out(case, names[:1]))


def ar_threshold_dead(case: Case) -> Iterator[Violation]:
    names = ("NCCL_IB_AR_THRESHOLD", "NCCL_IB_OOO_RQ")
    if case.value(names[0]) and case.number(names[1]):
        yield Violation(names, f"{case.words(*names)}: the threshold has no effect", "one of them", take_out(case, names[:1]))


def too_many_sockets(case: Case) -> Iterator[Violation]:
    names = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    threads, sockets = (case.number(name) for name in names)
    if threads is not None and sockets is not None and threads * sockets > MOST_SOCKETS:
        observed = f"{case.words(*names)}: {threads * sockets} connections"
        remedy = f"Set {names[1]} to {max(1, MOST_SOCKETS // threads)} or less."
        yield Violation(names, observed, f"at most {MOST_SOCKETS} connections", remedy)


def algo_without_ring(case: Case) -> Iterator[Violation]:
    value = case.value("NCCL_ALGO")
    if value is None or is_older(case.version, STRICT_SINCE):
        return
    without = [part for part in parse_selections(value) if not part.collective and ("ring" in part.names) == part.excluded]
    if without:
        observed = f"{case.words('NCCL_ALGO')}: a collective without these algorithms fails"
        expected = "a list with ring, or a collective before the colon, such as allreduce:tree"
        yield Violation(("NCCL_ALGO",), observed, expected, take_out(case, ["NCCL_ALGO"]))


def nvls_with_shared_gpus(case: Case) -> Iterator[Violation]:
    """Yield an error for ranks that share a GPU (src/transport/nvls.cc, ncclNvlsInit)."""
    names = ("NCCL_NVLS_ENABLE", "NCCL_MULTI_RANK_GPU_ENABLE")
    if case.number(names[0]) == 1 and case.number(names[1]):
        yield Violation(names, f"{case.words(*names)}: ranks that share a GPU fail", f"{names[0]} of 0 or 2", take_out(case, names[:1]))


def range_of_other_family(case: Case) -> Iterator[Violation]:
    names = ("NCCL_IB_ADDR_RANGE", "NCCL_IB_ADDR_FAMILY")
    family = "AF_INET6" if case.value(names[1]) == "AF_INET6" else "AF_INET"
    try:
        subnet = ipaddress.ip_network(case.value(names[0]) or "", strict=False)
    except ValueError:
        return
    wanted = "AF_INET6" if subnet.version == 6 else "AF_INET"
    if family != wanted:
        yield Violation(names, f"{case.words(*names)}: the family is {family}", f"{names[1]}={wanted}", f"Set {names[1]}={wanted}.")


def prefix_length_dead(case: Case) -> Iterator[Violation]:
    names = ("NCCL_IB_SUBNET_PREFIX_LEN", "NCCL_IB_SUBNET_AWARE_ROUTING")
    if case.value(names[0]) and not case.number(names[1]):
        observed = f"{case.words(*names)}: the length has no effect without {names[1]}=1"
        yield Violation(names, observed, f"{names[1]}=1 for a mesh", take_out(case, names[:1]))


def debug_dead(case: Case) -> Iterator[Violation]:
    if (case.value("NCCL_DEBUG") or "").upper() in ("INFO", "TRACE"):
        return
    if case.value("NCCL_DEBUG_SUBSYS"):
        names = ("NCCL_DEBUG_SUBSYS", "NCCL_DEBUG")
        observed = f"{case.words(*names)}: subsystems apply to the level INFO only"
        yield Violation(names, observed, "NCCL_DEBUG=INFO for a check, or no NCCL_DEBUG_SUBSYS", take_out(case, names[:1]))


def pkey_is_no_index(case: Case) -> Iterator[Violation]:
    number = case.number("NCCL_IB_PKEY")
    if number is not None and number >= LEAST_KEY:
        observed = f"{case.words('NCCL_IB_PKEY')} looks like a P_Key"
        expected = "the index of the key in the port's table"
        remedy = "Find the key in /sys/class/infiniband/DEVICE/ports/1/pkeys, and set its index."
        yield Violation(("NCCL_IB_PKEY",), observed, expected, remedy)


def pkey_index_dead(case: Case) -> Iterator[Violation]:
    names = ("NCCL_IB_PKEY_VALUE", "NCCL_IB_PKEY")
    if (case.number(names[0]) or -1) >= 0 and case.value(names[1]) and not is_older(case.version, PKEY_VALUE_SINCE):
        yield Violation(names, f"{case.words(*names)}: the index has no effect", "one of them", take_out(case, names[1:]))


RULES = (
    Rule("gid_index_dead", WARNING, gid_index_dead),
    Rule("gid_index_fixed", WARNING, gid_index_fixed),
    Rule("ib_disabled_dead", WARNING, ib_disabled_dead),
    Rule("p2p_level_dead", WARNING, p2p_level_dead),
    Rule("nrings_dead", WARNING, nrings_dead),
    Rule("min_over_max", ERROR, min_over_max),
    Rule("split_without_qps", WARNING, split_without_qps),
    Rule("ar_threshold_dead", WARNING, ar_threshold_dead),
    Rule("too_many_sockets", ERROR, too_many_sockets),
    Rule("algo_without_ring", ERROR, algo_without_ring),
    Rule("nvls_with_shared_gpus", ERROR, nvls_with_shared_gpus),
    Rule("range_of_other_family", ERROR, range_of_other_family),
    Rule("prefix_length_dead", WARNING, prefix_length_dead),
    Rule("debug_dead", INFO, debug_dead),
    Rule("pkey_is_no_index", ERROR, pkey_is_no_index),
    Rule("pkey_index_dead", WARNING, pkey_index_dead),
)
