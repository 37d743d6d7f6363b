# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The counters of a fabric's ports: what each one means, and from which rate on it is a finding.

Names and widths are those of perfquery and ibqueryerrors (rdma-core, libibmad/fields.c; PortCounters of the InfiniBand specification).
rdma-core's own example of thresholds (infiniband-diags/etc/error_thresholds) is in counts since somebody has cleared them, 10 for errors
of a cable and 100 for what is dropped; ibqueryerrors without such a file takes 0. A count without a time tells nothing, so that here they
are the fewest that make a rate, and the rates are those of the link stage (_checks_counters.py): NVIDIA tests cables to a bit error rate
of 10^-15, about one error an hour at 400 Gb/s, and InfiniBand itself allows 10^-12.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._checks_counters import (
    ERRORS_PER_HOUR,
    FEWEST_ERRORS,
    FEWEST_FLAPS,
    FLAPS_PER_HOUR,
)

CABLE, FLAP, REMOTE, CONGESTION, REFUSED = "cable", "flap", "remote", "congestion", "refused"
DROPS_PER_HOUR = 1000.0
FEWEST_DROPS = 100


@dataclass(frozen=True)
class Limit:
    """kind: what it means; per_hour, fewest: both are reached where it is a finding; full: where the classic counter stops."""

    kind: str
    per_hour: float
    fewest: int
    full: int

    def passed(self, count: int, hours: float) -> bool:
        return count >= self.fewest and count >= self.per_hour * hours


LIMITS: dict[str, Limit] = {
    "SymbolErrorCounter": Limit(CABLE, ERRORS_PER_HOUR, FEWEST_ERRORS, 0xFFFF),
    "PortRcvErrors": Limit(CABLE, ERRORS_PER_HOUR, FEWEST_ERRORS, 0xFFFF),
    # Of four bits: a hundred cannot be counted.
    "LocalLinkIntegrityErrors": Limit(CABLE, float(FEWEST_ERRORS), FEWEST_ERRORS, 0xF),
    "ExcessiveBufferOverrunErrors": Limit(CABLE, float(FEWEST_ERRORS), FEWEST_ERRORS, 0xF),
    "LinkErrorRecoveryCounter": Limit(FLAP, FLAPS_PER_HOUR, FEWEST_FLAPS, 0xFF),
    "LinkDownedCounter": Limit(FLAP, FLAPS_PER_HOUR, FEWEST_FLAPS, 0xFF),
    "PortRcvRemotePhysicalErrors": Limit(REMOTE, ERRORS_PER_HOUR, FEWEST_ERRORS, 0xFFFF),
    "PortXmitDiscards": Limit(CONGESTION, DROPS_PER_HOUR, FEWEST_DROPS, 0xFFFF),
    "VL15Dropped": Limit(CONGESTION, DROPS_PER_HOUR, FEWEST_DROPS, 0xFFFF),
    "PortRcvSwitchRelayErrors": Limit(REFUSED, DROPS_PER_HOUR, FEWEST_DROPS, 0xFFFF),
    "PortXmitConstraintErrors": Limit(REFUSED, DROPS_PER_HOUR, FEWEST_DROPS, 0xFF),
    "PortRcvConstraintErrors": Limit(REFUSED, DROPS_PER_HOUR, FEWEST_DROPS, 0xFF),
}
#: Ticks that a port had to wait with something to send; what a tick is, is the vendor's. Compared with the words sent in the same time.
WAIT, SENT = "PortXmitWait", "PortXmitData"
#: Greatest values of classic counters that are no errors.
FULL_WAIT = 0xFFFFFFFF
REMEDIES = {
    CABLE: "Clean and reseat both ends, then exchange the cable.",
    FLAP: "If nobody set it down and no switch or host booted: clean and reseat both ends, then exchange the cable.",
    REMOTE: "The packets were damaged on another link, which has errors of its own.",
    CONGESTION: "It is congestion, not the cable: see which receiver is slow, and the balance over the spines.",
    REFUSED: "Packets of a partition that the port is not in, or that had nowhere to go: see the P_Keys of both ends and multicast.",
}
#: A worse one is named first.
ORDER = (CABLE, FLAP, REMOTE, REFUSED, CONGESTION)
