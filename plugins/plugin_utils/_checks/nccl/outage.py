# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the nccl gate on outages: NCCL must retry for longer than the fabric needs to find another path."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import is_older
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare

CHECK, STAGE = "nccl.outage", "nccl"
declare(
    {
        CHECK: Check(
            "nccl",
            "the time for which NCCL retries, against the longest outage after which the fabric carries traffic again: "
            "`rdma_fabric.max_outage_ms`, or a longer one that [the drill](drill.md) has measured; no finding without both",
            "`NCCL_IB_TIMEOUT`, `NCCL_IB_RETRY_CNT`",
            "raise `NCCL_IB_TIMEOUT` in `rdma_nccl.variables`, or shorten the outage (BFD)",
            sources=(reads.INTENT,),
        ),
    }
)

INTENT = "rdma_fabric.max_outage_ms"
TIMEOUT, RETRIES = "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"
#: InfiniBand specification, 9.7.6.1.3 (Local ACK Timeout).
UNIT_SECONDS = 4.096e-6
MOST_TIMEOUT, MOST_RETRIES, DEFAULT_RETRIES = 31, 7, 7
#: From this version on, the default; the first one applies to older versions too (NCCL's guide, env.rst, and its source, IbTimeout).
DEFAULT_TIMEOUTS = (("0", 14), ("2.14", 18), ("2.23", 20))
#: Carrier lost: FRR 8.4.4 in network namespaces removed the route after 0.43 s. BFD's defaults in FRR (bfdd): 300 ms × 3. The hold time of
#: BGP in FRR's profile datacenter.
CARRIER_SECONDS, BFD_INTERVAL_MS, BFD_MULTIPLIER, HOLD_SECONDS = 0.43, 300, 3, 9.0


def give_up_seconds(timeout: int, retries: int) -> float | None:
    """Return after how many seconds without an answer a queue pair fails at the earliest; None for never (timeout 0).

    timeout: NCCL_IB_TIMEOUT, 0 to 31. retries: NCCL_IB_RETRY_CNT, 0 to 7. It is 4.096 µs × 2^timeout × retries; a NIC may wait up to four
    times as long for each (InfiniBand specification, 9.7.6.1.3), and some have a minimum. Raises ValueError for other numbers.
    """
    if not 0 <= timeout <= MOST_TIMEOUT or not 0 <= retries <= MOST_RETRIES:
        raise ValueError(f"timeout {timeout} and {retries} retries: expected 0 to {MOST_TIMEOUT} and 0 to {MOST_RETRIES}")
    return None if timeout == 0 else UNIT_SECONDS * 2**timeout * retries


def detection_seconds(
    *,
    carrier_lost: bool,
    bfd: bool,
    interval_ms: float = BFD_INTERVAL_MS,
    multiplier: int = BFD_MULTIPLIER,
    hold_seconds: float = HOLD_SECONDS,
) -> float:
    """Return how long a routed fabric needs at least to notice a cut cable, in seconds.

    carrier_lost: whether the interface goes down; a silent cut keeps it up. bfd: whether BFD watches the session, with interval_ms and
    multiplier (RFC 5880, 6.8.4); without it BGP's hold time counts (RFC 4271, 6.5). The new routes come after that.
    """
    if carrier_lost:
        return CARRIER_SECONDS
    return interval_ms * multiplier / 1000 if bfd else hold_seconds


def check_outage(host: str, intent: Intent, variables: Mapping[str, str]) -> list[Finding]:
    """Return the finding nccl.outage, none without rdma_fabric.max_outage_ms and a measured outage. variables: NCCL's on the host.

    The longer of the two counts. A shorter measured one does not replace the intent's: a drill does not make every fault.
    """
    known = _outage(intent)
    if known is None:
        return []
    needed, source = known
    expected = f"NCCL retries for more than {_words(needed)} ({source})"

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, CHECK, host, "NCCL's retries", status, observed, expected, remedy)

    if not any(rail["role"] == "compute" for rail in intent["rails"]):
        return [finding(NOT_APPLICABLE, "no compute rail is planned")]
    try:
        timeouts = [int(variables[TIMEOUT])] if TIMEOUT in variables else _default_timeouts(intent["nccl"]["version"])
        retries = int(variables.get(RETRIES, DEFAULT_RETRIES))
        outcomes = [(timeout, give_up_seconds(timeout, retries)) for timeout in timeouts]
    except ValueError:
        values = ", ".join(f"{name}={variables[name]}" for name in (TIMEOUT, RETRIES) if name in variables)
        return [finding(UNKNOWN, f"{values} is not valid", f"Correct rdma_nccl.variables of {host}: nccl.lint names the error.")]
    enough = [seconds is None or seconds > needed for _timeout, seconds in outcomes]
    if any(enough) and not all(enough):
        observed = f"{TIMEOUT} is not set, and its default depends on NCCL's version: {', '.join(map(str, timeouts))}"
        return [finding(UNKNOWN, observed, f"Set {TIMEOUT} in rdma_nccl.variables of all hosts, or rdma_nccl.version.")]
    # If all defaults have one result, the least favorable one is shown.
    timeout, seconds = outcomes[0] if all(enough) else outcomes[-1]
    settings = f"{TIMEOUT}={timeout}, {RETRIES}={retries}"
    if seconds is None or seconds > needed:
        when = "never gives up" if seconds is None else f"gives up after {_words(seconds)}"
        return [finding(OK, f"the fabric needs {_words(needed)}; NCCL {when} ({settings})")]
    observed = f"the fabric needs {_words(needed)}; NCCL gives up after {_words(seconds)} ({settings}; NICs may take longer)"
    return [finding(ERROR, observed, _remedy(needed, source))]


def _outage(intent: Intent) -> tuple[float, str] | None:
    """Return the outage that counts, in seconds, and where it is from."""
    most_ms, measured = intent["fabric"]["max_outage_ms"], intent.get("outage")
    planned = (most_ms / 1000, INTENT) if most_ms is not None else None
    if measured is None or (planned is not None and planned[0] >= measured["seconds"]):
        return planned
    return measured["seconds"], f"measured on {measured['day']}: {measured['fault']}"


def _default_timeouts(version: str | None) -> list[int]:
    """Return NCCL's default of NCCL_IB_TIMEOUT; without a version, those of all versions, the newest last."""
    known = [timeout for since, timeout in DEFAULT_TIMEOUTS if not is_older(version, since)]
    return known if version is None else known[-1:]


def _words(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2g} s"


def _remedy(needed: float, source: str) -> str:
    enough = next((each for each in range(1, MOST_TIMEOUT + 1) if (give_up_seconds(each, MOST_RETRIES) or 0) > needed), MOST_TIMEOUT)
    seconds = give_up_seconds(enough, MOST_RETRIES) or 0
    then = "lower rdma_fabric.max_outage_ms" if source == INTENT else "repeat the drill"
    watched, unwatched = (detection_seconds(carrier_lost=False, bfd=bfd) for bfd in (True, False))
    return (
        f"1. Set {TIMEOUT}: {enough} and {RETRIES}: {MOST_RETRIES} in rdma_nccl.variables of all hosts: NCCL then gives up after "
        f"{_words(seconds)}. 2. Or shorten the outage: with BFD ({BFD_INTERVAL_MS} ms × {BFD_MULTIPLIER}) a routed fabric notices a silent "
        f"cut after {watched:g} s, without it after BGP's hold time ({unwatched:g} s). Then {then}."
    )
