# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of error and event counters between two readings of one boot, and the list of these counters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

#: Interface → the counters of its driver (`ethtool -S`), None if it has none.
Statistics = Callable[[str], Optional[Mapping[str, int]]]

# The names are those of sysfs (ports/N/counters, drivers/infiniband/core/sysfs.c of Linux; ports/N/hw_counters of mlx5 and rxe), of
# `ethtool -S` (ending in _phy and module_*, *_pci_*: mlx5, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst;
# in .nic: ice; the others: bnxt_en), and carrier_downs, which is the facts' own.

#: The link went down, or nearly did and recovered.
FLAPS = frozenset({"link_downed", "link_error_recovery", "link_down_events_phy", "link_down_events", "carrier_downs"})
#: Data arrived damaged over this cable. Bits that error correction has fixed are not counted here.
CABLE_ERRORS = frozenset(
    {
        *("symbol_error", "port_rcv_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors"),
        *("rx_crc_errors_phy", "rx_symbol_err_phy", "rx_pcs_symbol_err_phy"),
        *("rx_pcs_symbol_err", "rx_fcs_err_frames", "rx_fec_uncorrectable_blocks", "rx_crc_errors.nic"),
    }
)
#: A packet arrived that was damaged earlier: a switch has marked it.
REMOTE_ERRORS = frozenset({"port_rcv_remote_physical_errors"})
#: Packets were dropped for lack of buffers, or a receiver has paused its sender for long.
CONGESTION = frozenset(
    {
        *("port_xmit_discards", "rx_discards_phy", "tx_discards_phy", "rx_dropped.nic"),
        *("tx_pause_storm_warning_events", "tx_pause_storm_error_events"),
        *(f"rx_prio{priority}_{what}" for priority in range(8) for what in ("discards", "cong_discard")),
    }
)
#: Frames arrived that are larger than the port accepts.
OVERSIZE = frozenset({"rx_oversize_pkts_phy", "rx_out_of_range_len_phy"})
#: Faults that the module in the cage has reported.
MODULE = frozenset({"module_bus_stuck", "module_high_temp", "module_bad_shorted"})
#: The PCIe link below the card had to be retrained.
PCIE = frozenset({"rx_pci_signal_integrity", "tx_pci_signal_integrity"})
#: The RDMA transport had to retransmit, or to wait for its peer; multipath causes some of them without any fault.
TRANSPORT = frozenset(
    {
        *("out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "roce_adp_retrans"),
        *("out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err", "retry_rnr_exceeded_err", "send_err"),
    }
)
COUNTERS = FLAPS | CABLE_ERRORS | REMOTE_ERRORS | CONGESTION | OVERSIZE | MODULE | PCIE | TRANSPORT
#: The classic counters stop at their maximum (PortCounters of the InfiniBand specification: 16, 8 and 4 bits).
FULL = {
    "symbol_error": 0xFFFF,
    "port_rcv_errors": 0xFFFF,
    "port_rcv_remote_physical_errors": 0xFFFF,
    "port_xmit_discards": 0xFFFF,
    "link_error_recovery": 0xFF,
    "link_downed": 0xFF,
    "local_link_integrity_errors": 0xF,
    "excessive_buffer_overrun_errors": 0xF,
}
#: Direction → the names of a port's RDMA packets, the first one that exists counts: sysfs, rxe, bnxt_re.
PACKETS = {
    "sent": ("port_xmit_packets", "sent_pkts", "tx_pkts"),
    "received": ("port_rcv_packets", "rcvd_pkts", "rx_pkts"),
}


def since(before: Mapping[str, Any], after: Mapping[str, Any], run: str) -> dict[str, Any] | None:
    """Return the changes of COUNTERS from one reading of a host to a later one: the facts' part `since`.

    before, after: whole trees of facts; run: the id of the run that made the earlier reading. None if they are not of one boot, not in
    order, or have no device in common. A device, port or interface that is not in both (by name and GUID or MAC) is left out. So is a
    counter that is missing in either, or that went down because it was cleared. An unchanged counter is left out of its port, whose own
    entry shows that it was compared.
    """
    seconds = _seconds(_part(before, "boot"), _part(after, "boot"))
    if seconds is None:
        return None
    earlier = _part(before, "devices")
    devices = {
        name: _ports(earlier[name], device) for name, device in _part(after, "devices").items() if _same("node_guid", earlier, name, device)
    }
    if earlier and not devices:
        return None
    netdevs = _part(before, "netdevs")
    return {
        "run": run,
        "seconds": seconds,
        "devices": devices,
        "netdevs": {
            name: _risen(_of_interface(netdevs[name]), _of_interface(netdev))
            for name, netdev in _part(after, "netdevs").items()
            if _same("mac", netdevs, name, netdev)
        },
    }


def of_port(counters: Mapping[str, Any] | None, hw_counters: Mapping[str, Any] | None) -> dict[str, int]:
    """Return those counters of a port of the facts that are in COUNTERS."""
    return {**_known(hw_counters or {}), **_known(counters or {})}


def packets_of(counters: Mapping[str, Any] | None, hw_counters: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the RDMA packets of a port since its driver was loaded: those of "sent" and "received" that it counts."""
    known = {**(hw_counters or {}), **(counters or {})}
    found = {way: next((known[name] for name in names if known.get(name) is not None), None) for way, names in PACKETS.items()}
    return {way: count for way, count in found.items() if count is not None}


def uncounted(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Return the counters of two readings that show nothing: cleared, missing in the later one, or full since the first one."""
    return sorted(name for name, value in before.items() if name not in after or after[name] < value or value == FULL.get(name))


def of_netdev(statistics: Mapping[str, Any], carrier_downs: Any) -> dict[str, int]:
    """Return the same for an interface. statistics: its driver's."""
    return _known({**statistics, "carrier_downs": carrier_downs})


def _part(tree: Any, name: str) -> Mapping[str, Any]:
    """Return a dictionary of the facts; empty if it is missing, or is not a dictionary in a damaged file."""
    found = tree.get(name) if isinstance(tree, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _known(counters: Mapping[str, Any]) -> dict[str, int]:
    return {name: value for name, value in counters.items() if name in COUNTERS and isinstance(value, int)}


def _seconds(before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    """Return the time between two readings of one boot."""
    earlier, later = before.get("uptime_seconds"), after.get("uptime_seconds")
    if not isinstance(earlier, (int, float)) or not isinstance(later, (int, float)):
        return None
    if before.get("boot_id") is None or before["boot_id"] != after.get("boot_id"):
        return None
    return float(later - earlier) if later > earlier else None


def _same(identity: str, earlier: Mapping[str, Any], name: str, item: Mapping[str, Any]) -> bool:
    known = _part(earlier, name)
    return bool(known) and isinstance(item, Mapping) and known.get(identity) == item.get(identity)


def _ports(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    ports, earlier = _part(after, "ports"), _part(before, "ports")
    return {number: _risen(_of_port(earlier, number), _of_port(ports, number)) for number in ports if number in earlier}


def _of_port(ports: Mapping[str, Any], number: str) -> dict[str, int]:
    port = _part(ports, number)
    return of_port(_part(port, "counters"), _part(port, "hw_counters"))


def _of_interface(netdev: Mapping[str, Any]) -> dict[str, int]:
    return of_netdev(_part(_part(netdev, "ethtool"), "counters"), netdev.get("carrier_downs"))


def _risen(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {name: value - before[name] for name, value in sorted(after.items()) if name in before and value > before[name]}


# The drivers' names of what is counted, and the field for it after "rx_" or "tx_".
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
    """One priority since the driver was loaded; None for what the driver does not count, or not now.

    rx_pause: received frames that pause our port; tx_pause: sent ones. pause_usec: total duration, as the driver computes it.
    rx_discards: frames dropped at the port; buffer_discards: for lack of a receive buffer; congestion_discards: by WRED;
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
        """Return whether the driver counts the traffic of this priority but not its pauses: mlx5 does this if PFC is off.

        bnxt_en counts pauses even if PFC is off, so False means nothing there.
        """
        return self.rx_bytes is not None and self.rx_pause is None and self.tx_pause is None


def priority_counters(statistics: Mapping[str, int]) -> dict[int, PriorityCounters]:
    """Return priority → its counters; empty if the driver counts no priorities (virtio_net)."""
    found: dict[int, PriorityCounters] = {}
    for name, value in statistics.items():
        match = next((match for match in (pattern.fullmatch(name) for pattern in _NAMES) if match), None)
        field = f"{match['way']}_{_FIELDS.get(match['what'])}" if match else ""
        if match and field in PriorityCounters.__dataclass_fields__:
            priority = int(match["priority"])
            found[priority] = replace(found.get(priority, PriorityCounters()), **{field: value})
    return dict(sorted(found.items()))
