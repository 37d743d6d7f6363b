# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a driver counts for each of the eight priorities, from the statistics of an interface (`ethtool -S`, read by ioctl).

mlx5_core (en_stats.c): rx_prio3_bytes; the pause counters are those of priorities with PFC on, and no others.
bnxt_en (bnxt_ethtool.c): rx_bytes_pri3, rx_pfc_ena_frames_pri3, pfc_pri3_rx_duration_us.
ice (ice_ethtool.c): rx_priority_3_xoff.nic, which is all that it counts of a priority.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

# The drivers' words for what is counted, and the field that it becomes behind "rx_" or "tx_".
_FIELDS = {
    "bytes": "bytes",
    "packets": "packets",
    "discards": "discards",
    "buf_discard": "buffer_discards",
    "cong_discard": "congestion_discards",
    "marked": "marked",
    "pause": "pause",
    "pause_duration": "pause_usec",
    "pause_transition": "pause_transitions",
    "pfc_ena_frames": "pause",
    "duration_us": "pause_usec",
    "transitions": "pause_transitions",
    "xoff": "pause",
}
_NAMES = (
    re.compile(r"(?P<way>rx|tx)_prio(?P<priority>[0-7])_(?P<what>[a-z_]+)"),
    re.compile(r"(?P<way>rx|tx)_(?P<what>bytes|packets|pfc_ena_frames)_pri(?P<priority>[0-7])"),
    re.compile(r"pfc_pri(?P<priority>[0-7])_(?P<way>rx|tx)_(?P<what>duration_us|transitions)"),
    re.compile(r"(?P<way>rx|tx)_priority_(?P<priority>[0-7])_(?P<what>xoff)\.nic"),
)


@dataclass(frozen=True)
class PriorityCounters:
    """One priority since the driver was loaded; None for what the driver does not count, or does not now.

    rx_pause: frames that told us to stop; tx_pause: those that we sent. pause_usec: how long in all, as the driver reckons it.
    rx_discards: frames dropped at the port; buffer_discards for want of a receive buffer; congestion_discards by WRED;
    marked: frames in which this port set ECN's CE.
    """

    rx_bytes: int | None = None
    tx_bytes: int | None = None
    rx_packets: int | None = None
    tx_packets: int | None = None
    rx_pause: int | None = None
    tx_pause: int | None = None
    rx_pause_usec: int | None = None
    tx_pause_usec: int | None = None
    rx_pause_transitions: int | None = None
    tx_pause_transitions: int | None = None
    rx_discards: int | None = None
    rx_buffer_discards: int | None = None
    rx_congestion_discards: int | None = None
    rx_marked: int | None = None

    def says_pfc_is_off(self) -> bool:
        """Whether the driver counts the traffic of this priority and not its pauses, which is mlx5's way to say that PFC is off.

        bnxt_en counts pauses also where PFC is off: this says nothing there.
        """
        return self.rx_bytes is not None and self.rx_pause is None and self.tx_pause is None


def priority_counters(statistics: Mapping[str, int]) -> dict[int, PriorityCounters]:
    """Priority → its counters; nothing where the driver counts no priority (virtio_net)."""
    found: dict[int, PriorityCounters] = {}
    for name, value in statistics.items():
        match = next((match for match in (pattern.fullmatch(name) for pattern in _NAMES) if match), None)
        field = f"{match['way']}_{_FIELDS.get(match['what'])}" if match else ""
        if match and field in PriorityCounters.__dataclass_fields__:
            priority = int(match["priority"])
            found[priority] = replace(found.get(priority, PriorityCounters()), **{field: value})
    return dict(sorted(found.items()))
