# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The traffic counters of a host's RDMA ports and interfaces, in sysfs.

The counters of a RoCE port count RDMA only, those of its interface count TCP. The interface of a Soft-RoCE device counts both, because RDMA
is UDP there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import parse_counter

_DEVICES, _NETDEVS = "/sys/class/infiniband", "/sys/class/net"
#: Direction → the paths below a port; of several, the first existing one is read. ports/N/counters has words of four bytes
#: (drivers/infiniband/core/sysfs.c). hw_counters has those of bnxt_re and efa, and rxe's, which counts packets only.
_WORDS = {"sent": "counters/port_xmit_data", "received": "counters/port_rcv_data"}
_BYTES = {"sent": "hw_counters/tx_bytes", "received": "hw_counters/rx_bytes"}
_PACKETS = {
    "sent": ("hw_counters/sent_pkts", "hw_counters/tx_pkts", "counters/port_xmit_packets"),
    "received": ("hw_counters/rcvd_pkts", "hw_counters/rx_pkts", "counters/port_rcv_packets"),
}
_WORD_BYTES = 4


@dataclass(frozen=True)
class Traffic:
    """A reading of one direction: bytes and packets of a port; None if it has no such counter."""

    bytes: int | None = None
    packets: int | None = None

    def since(self, before: Traffic) -> Traffic:
        """Return the increase. A counter that went down was reset, and is unknown."""
        return Traffic(_risen(before.bytes, self.bytes), _risen(before.packets, self.packets))


@dataclass(frozen=True)
class Counters:
    """A reading of one direction, "sent" or "received". ports: "mlx5_0/1" → traffic; netdevs: interface → bytes."""

    ports: Mapping[str, Traffic]
    netdevs: Mapping[str, int]

    def since(self, before: Counters) -> Counters:
        """Return the increase of everything that is in both readings."""
        return Counters(
            {name: each.since(before.ports[name]) for name, each in self.ports.items() if name in before.ports},
            {name: value - before.netdevs[name] for name, value in self.netdevs.items() if before.netdevs.get(name, value + 1) <= value},
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_counters(sys: SysRoot, direction: str) -> Counters:
    """Read all ports and interfaces. direction: "sent" or "received"."""
    ports = {
        f"{device}/{port}": _of_port(sys, f"{_DEVICES}/{device}/ports/{port}", direction)
        for device in sorted(sys.list_dir(_DEVICES))
        for port in sorted(sys.list_dir(f"{_DEVICES}/{device}/ports"))
    }
    name = "tx_bytes" if direction == "sent" else "rx_bytes"
    netdevs = {netdev: sys.value(f"{_NETDEVS}/{netdev}/statistics/{name}", parse_counter) for netdev in sorted(sys.list_dir(_NETDEVS))}
    return Counters(ports, {netdev: value for netdev, value in netdevs.items() if value is not None})


def _of_port(sys: SysRoot, path: str, direction: str) -> Traffic:
    words = sys.value(f"{path}/{_WORDS[direction]}", parse_counter)
    size = words * _WORD_BYTES if words is not None else sys.value(f"{path}/{_BYTES[direction]}", parse_counter)
    counted = (sys.value(f"{path}/{name}", parse_counter) for name in _PACKETS[direction])
    return Traffic(size, next((value for value in counted if value is not None), None))


def _risen(before: int | None, after: int | None) -> int | None:
    return after - before if before is not None and after is not None and after >= before else None
