# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that compares the clocks of all hosts; each was read between two readings of the control node's clock."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import Found, some, undecided
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET

declare(
    {
        "host.clock": Check(
            "host",
            "each host's clock against the median of all hosts and the control node; if no more than half agree, a warning of the fleet",
            "the time of day, read with the facts between two readings of the control node's clock",
            "use the same time servers; `chronyc makestep` while no job runs; `hwclock --systohc`",
            threshold="seconds that a clock may differ beyond the uncertainty of its reading, instead of 1",
            sources=(reads.kernel("clock_gettime"),),
        ),
    }
)

STAGE, CHECK, SUBJECT = "host", "host.clock", "clock against the other hosts"
#: The difference that a clock may have beyond the uncertainty of its reading. It keeps log lines of a job in order, and leases,
#: tickets and certificates valid.
LIMIT_SECONDS = 1.0


@dataclass(frozen=True)
class Offset:
    """The offset of a clock to the control node's in seconds, as a range, because reading it takes time. Above 0: ahead."""

    low: float
    high: float

    def beyond(self, other: Offset) -> float:
        """The certain difference to another offset: above 0 if ahead, below 0 if behind, 0 if they may be equal."""
        return max(self.low - other.high, 0.0) - max(other.low - self.high, 0.0)


def check_clocks(hosts: Mapping[str, Known]) -> Found:
    """Finding `host.clock` of every host: its clock against the median of all hosts and the control node.

    If more than half of them agree, a clock that differs is an error. Without a majority FLEET gets a warning, and the hosts are
    `not_applicable`. A host without known intent or facts has no finding here; another check reports it.
    """
    offsets = {host: _offset(each.facts) for host, each in hosts.items() if each.intent and each.facts}
    known = {host: offset for host, offset in offsets.items() if offset is not None}
    # The control node votes too, which decides between two hosts.
    votes = [*known.values(), Offset(0.0, 0.0)]
    usual = Offset(statistics.median(vote.low for vote in votes), statistics.median(vote.high for vote in votes))
    has_majority = 2 * sum(abs(vote.beyond(usual)) <= LIMIT_SECONDS for vote in votes) > len(votes)
    found: Found = {host: [] for host in hosts}
    limits = {host: _limit_seconds(hosts[host].intent) for host in offsets}
    differ = not has_majority and any(abs(known[host].beyond(usual)) > limits[host] for host in known)
    for host, limit in limits.items():
        if host not in known:
            found[host].append(_unknown(host))
        elif differ:
            found[host].append(undecided(STAGE, CHECK, host, SUBJECT, _expected(limit)))
        else:
            found[host].append(_finding(host, known[host], usual, limit, has_majority=has_majority))
    if differ:
        found[FLEET] = [_tied(known)]
    return found


def _tied(known: Mapping[str, Offset]) -> Finding:
    """The finding on clocks of which no more than half agree."""
    beyond = {host: offset.beyond(Offset(0.0, 0.0)) for host, offset in known.items()}
    words = some([f"{host} {_words(seconds)} it" if seconds else f"{host} agrees with it" for host, seconds in beyond.items()])
    remedy = (
        "1. On each of them, and on the control node, run `date` and `chronyc tracking` (or `timedatectl timesync-status`). "
        "2. Use the same time servers on all (`rdma_host.time`), and run `chronyc makestep` where the clock is wrong while no job runs."
    )
    observed = f"no more than half of the clocks agree; against the control node: {words}"
    return Finding(STAGE, CHECK, FLEET, "clocks", WARNING, observed, _expected(LIMIT_SECONDS), remedy)


def _offset(facts: RunFacts) -> Offset | None:
    time = facts.time
    if time is None or time.clock_seconds is None or time.between_seconds is None:
        return None
    before, after = time.between_seconds
    return Offset(time.clock_seconds - after, time.clock_seconds - before)


def _limit_seconds(intent: Intent | None) -> float:
    rule = intent["checks"].get(CHECK) if intent else None
    return LIMIT_SECONDS if rule is None or rule["threshold"] is None else rule["threshold"]


def _expected(limit: float) -> str:
    return f"within {limit:g} s of the other hosts"


def _unknown(host: str) -> Finding:
    why = "the host's clock was not read"
    return Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, why, _expected(LIMIT_SECONDS), f"Run `date` on {host}, then the stage again.")


def _finding(host: str, offset: Offset, usual: Offset, limit: float, *, has_majority: bool) -> Finding:
    beyond = offset.beyond(usual)
    if abs(beyond) <= limit:
        aside = Offset(0.0, 0.0).beyond(usual)
        note = f"; the control node is {_words(aside)} them" if has_majority and abs(aside) > limit else ""
        return Finding(STAGE, CHECK, host, SUBJECT, OK, f"agrees with the other hosts{note}", _expected(limit))
    observed = f"{_words(beyond)} the other hosts"
    remedy = (
        f"1. On {host}, run `date` and `chronyc tracking` (or `timedatectl timesync-status`) to see its time server. "
        f"2. Use the same servers as on the other hosts (`rdma_host.time`), and run `chronyc makestep` while no job runs. "
        "3. If it is wrong again after a boot, set the hardware clock: `hwclock --systohc`."
    )
    return Finding(STAGE, CHECK, host, SUBJECT, ERROR, observed, _expected(limit), remedy)


def _words(seconds: float) -> str:
    """A difference in words: "10800.2 s (3.0 h) ahead of", "2.1 s behind"."""
    size = abs(seconds)
    long = f" ({size / 3600:.1f} h)" if size >= 3600 else f" ({size / 60:.0f} min)" if size >= 120 else ""
    return f"{size:.1f} s{long} {'ahead of' if seconds > 0 else 'behind'}"
