# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a driver reports about an Ethernet port: settings, rings, pause, counters and the plugged module.

Everything but the module comes from ioctls (_net/ethtool_ioctl.py) and starts no process. Decoding a module's data requires
three standards, which the program ethtool implements: it runs once for each port with a module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._net.optics import Lane, Optic, Reading, parse_ethtool_module

__all__ = [
    "DriverInfo",
    "Ethtool",
    "EthtoolPort",
    "Lane",
    "LinkSettings",
    "Optic",
    "Pause",
    "Reading",
    "Rings",
    "is_per_queue",
    "read_ethtool",
]

#: bnxt_en answers EOPNOTSUPP not only without a module, but also for a CMIS module, which `ethtool -m` can read.
MODULE_NOT_REPORTED = ("bnxt_en",)
#: Kinds of connectors (LinkSettings.port) that are cages with a module or cable in them.
PLUGGED = ("FIBRE", "Direct Attach Copper")
#: How the output of `ethtool -m` ends if the driver does not support modules, or the cage is empty.
NO_MODULE = ("Operation not supported", "No such device", "No such device or address")
# A number up to 64, as rx_64_bytes_phy counts frames of 64 bytes, and so do rx_65_to_127_bytes_phy and rx_64_or_less.
_INDEX = r"(?!64_)[0-9]{1,3}_(?!to_|or_|[0-9])"
_PER_QUEUE = re.compile(
    r"(?:ptp_|qos_)?(?:rx|tx|ch|cq)[0-9]+_"  # mlx5, mlx4, virtio: rx0_packets, tx12_xmit_more, ch3_poll, ptp_tx0_cqe
    rf"|(?:rx|tx)_{_INDEX}"  # mana, ionic: rx_0_packets
    r"|(?:rx|tx)-[0-9]+\."  # i40e, sfc: rx-0.packets
    r"|(?:rx|tx)?_?queue_?[0-9]+_"  # igb, ixgbe, ice, netvsc: rx_queue_0_packets; ena: queue_0_tx_cnt
    r"|(?:rx_?|tx_?)?q[-_#]?[0-9]+[ _:]"  # be2net: rxq0: rx_bytes; hns3: txq0_csum, txq#0_pktnum; idpf: rx_q-0_pkts
    r"|.*\[[0-9]+\]"  # bnxt: [3]: rx_ucast_packets; gve: rx_bytes[0]
    r"|[0-9]+: "  # qede
    r"|cpu[0-9]+_"  # netvsc: cpu0_rx_packets
    r"|rvec_[0-9]+_",  # nfp
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True)
class DriverInfo:
    """The driver of the port. version is the kernel's if the driver has none of its own; supports: {"statistics": True}."""

    driver: str | None
    version: str | None
    firmware: str | None
    bus_info: str | None
    expansion_rom: str | None
    supports: dict[str, bool]


@dataclass(frozen=True)
class LinkSettings:
    """duplex: "full" or "half"; port as ethtool names it ("FIBRE", "Direct Attach Copper", "None" for no connector)."""

    speed_mbps: int | None
    duplex: str | None
    autoneg: bool | None
    port: str | None
    supported_speeds_mbps: list[int]


@dataclass(frozen=True)
class Rings:
    """Descriptors per ring in each direction, current and maximum; None if the driver has no such ring."""

    rx: int | None
    tx: int | None
    rx_max: int | None
    tx_max: int | None


@dataclass(frozen=True)
class Pause:
    """Global pause of IEEE 802.3x; autoneg: whether it is negotiated instead of set."""

    autoneg: bool | None
    rx: bool | None
    tx: bool | None


@dataclass(frozen=True)
class Timestamping:
    """The time stamps of packets that an interface supports, for PTP (`ethtool -T`). hardware, software: both of sent and received ones.

    clock: the number of the NIC's clock (/dev/ptpN), None without one.
    """

    hardware: bool
    software: bool
    clock: int | None


@dataclass(frozen=True)
class Ethtool:
    """One port. counters: without those of single queues and CPUs, none if the driver has none.

    optic: None if there is no module, or if it could not be read: then unread has the reason under "module". unread: failed requests
    ("statistics", "rings", "pause", "link", "module", "timestamping") with the message of the kernel or the tool.
    """

    driver: str | None
    version: str | None
    firmware: str | None
    bus_info: str | None
    speed_mbps: int | None
    duplex: str | None
    autoneg: bool | None
    port: str | None
    supported_speeds_mbps: list[int]
    rings: Rings | None
    pause: Pause | None
    counters: dict[str, int]
    optic: Optic | None
    unread: dict[str, str] = field(default_factory=dict)
    timestamping: Timestamping | None = None


class EthtoolPort(Protocol):
    """Queries the driver of an interface; None if the interface does not exist, or its driver does not answer."""

    def drvinfo(self, name: str) -> DriverInfo | None:
        """Return the driver."""

    def link(self, name: str) -> LinkSettings | None:
        """Return the current link and what it supports."""

    def rings(self, name: str) -> Rings | None:
        """Return the lengths of its rings."""

    def pause(self, name: str) -> Pause | None:
        """Return whether it sends and obeys global pause."""

    def statistics(self, name: str) -> dict[str, int] | None:
        """Return all of its counters, including those of single queues."""

    def timestamping(self, name: str) -> Timestamping | None:
        """Return the time stamps that it supports."""

    def has_module(self, name: str) -> bool:
        """Return whether the driver reports a module in its cage; False also if it does not answer."""

    def failed(self, name: str) -> dict[str, str]:
        """Return the failed requests and the reasons: request ("statistics", "module") → reason."""


def is_per_queue(name: str) -> bool:
    """Return whether a counter belongs to one queue, ring, channel or CPU; those of priorities and lanes do not count."""
    return _PER_QUEUE.match(name) is not None


def read_ethtool(port: EthtoolPort, runner: Runner | None, name: str) -> Ethtool | None:
    """Return everything about one interface; None if it does not exist. Without a runner its module is not read."""
    driver, link, counters = port.drvinfo(name), port.link(name), port.statistics(name)
    rings, pause, timestamping = port.rings(name), port.pause(name), port.timestamping(name)
    optic, why_not = _read_optic(port, runner, name, driver, link)
    failed = {request: reason for request, reason in port.failed(name).items() if request != "module"}
    unread = {**failed, **({"module": why_not} if why_not else {})}
    if not unread and all(answer is None for answer in (driver, link, counters, rings, pause)):
        return None
    return Ethtool(
        driver=driver.driver if driver else None,
        version=driver.version if driver else None,
        firmware=driver.firmware if driver else None,
        bus_info=driver.bus_info if driver else None,
        speed_mbps=link.speed_mbps if link else None,
        duplex=link.duplex if link else None,
        autoneg=link.autoneg if link else None,
        port=link.port if link else None,
        supported_speeds_mbps=link.supported_speeds_mbps if link else [],
        rings=rings,
        pause=pause,
        counters={key: value for key, value in (counters or {}).items() if not is_per_queue(key)},
        optic=optic,
        unread=unread,
        timestamping=timestamping,
    )


def _read_optic(
    port: EthtoolPort, runner: Runner | None, name: str, driver: DriverInfo | None, link: LinkSettings | None
) -> tuple[Optic | None, str | None]:
    """Return the module, and why it could not be read; both are None if there is no module.

    mlx5 answers EIO for an empty cage (mlx5_query_mcia of Linux), and other drivers for a module that does not answer. If the port's
    link reports a connector, it is the latter. A bad EEPROM must not hide the rest of the host.
    """
    if runner is None:
        return None, None
    asked = port.has_module(name) or (driver is not None and driver.driver in MODULE_NOT_REPORTED)
    failed = port.failed(name).get("module")
    if not asked:
        return None, failed if failed and link is not None and link.port in PLUGGED else None
    try:
        done = runner.run(("ethtool", "-m", name))
        if done.rc == 0:
            return parse_ethtool_module(done.stdout), None
    except (CommandError, ParseError) as error:
        return None, str(error)
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    last = lines[-1].strip() if lines else f"exit status {done.rc}"
    return (None, None) if last.endswith(NO_MODULE) else (None, f"`ethtool -m {name}` fails: {last[:200]}")
