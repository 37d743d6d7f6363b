# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA devices and their ports in /sys/class/infiniband, as drivers/infiniband/core/sysfs.c of Linux shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot, named
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._net.optics import Optic, parse_mlxlink_module
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import (
    PciFunction,
    PciReader,
    find_function,
    parse_numa_node,
    read_function_kind,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.ibv_devinfo import Devinfo, parse_ibv_devinfo
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import (
    CLASS,
    global_ipv6,
    parse_counter,
    parse_gid,
    parse_guid,
    parse_lid,
    parse_node_type,
    parse_physical_state,
    parse_pkey,
    parse_rate,
    parse_state,
)

VERBS = "/sys/class/infiniband_verbs"
ROCE_V2 = "RoCE v2"
ARPHRD_ETHERNET, ARPHRD_INFINIBAND = 1, 32
# A setting in the folder of the hardware counters: how long, in ms, the kernel answers from its cache.
NOT_COUNTERS = ("lifespan",)
BLANK = " \t\r\n\0"
#: The content of an unused entry of a GID table.
UNUSED = f"0:{BLANK}"
SIW_DESCRIPTION = "Software iWARP stack"
_PORT_GUID = re.compile(r"0x[0-9a-f]{16}")
_DEVICE_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,63}")


@dataclass(frozen=True)
class Gid:
    """One used entry of a port's GID table. type as the kernel names it: "RoCE v2" or "IB/RoCE v1"."""

    index: int
    gid: str
    type: str | None
    netdev: str | None
    ipv4: str | None


@dataclass(frozen=True)
class Port:
    """One port. rate_gbps, width and speed ("NDR") are as negotiated; netdev is the interface that carries its IP addresses.

    active_mtu_bytes is not in sysfs: None unless read from the running system; active_mtu_error has the reason.
    rocev2: IPv4 address, or IPv6 address that is not link-local, in compressed text → the GID index for RoCE v2 on it.
    counters, hw_counters: None if not read. optic: the module of an InfiniBand port; for Ethernet, the interface has it.
    optic_unread: why it could not be read.
    pkeys: the used entries of an InfiniBand port's table, index → key with the bit for full membership; None on Ethernet, which has none.
    """

    state: str | None
    physical_state: str | None
    link_layer: str | None
    rate_gbps: float | None
    width: int | None
    speed: str | None
    lid: int | None
    sm_lid: int | None
    netdev: str | None
    gids: list[Gid]
    rocev2: dict[str, int]
    counters: dict[str, int | None] | None
    hw_counters: dict[str, int | None] | None
    active_mtu_bytes: int | None = None
    optic: Optic | None = None
    optic_unread: str | None = None
    pkeys: dict[str, int] | None = None
    active_mtu_error: str | None = None


@dataclass(frozen=True)
class Device:
    """One RDMA device. software is None if the tree does not show it; ports are named by their number, from "1".

    function: "pf", "vf" or "sf"; parent_pci: the physical function of a "vf". uverbs: the node that programs open, None if it is missing.
    """

    driver: str | None
    software: bool | None
    firmware: str | None
    board_id: str | None
    hca_type: str | None
    node_guid: str | None
    sys_image_guid: str | None
    node_type: str | None
    numa_node: int | None
    function: str | None
    parent_pci: str | None
    uverbs: str | None
    pci: PciFunction | None
    ports: dict[str, Port]


@dataclass(frozen=True)
class Around:
    """Data read once for all devices. nodes: device → its node for programs; counters: whether to read them."""

    netdevs: Mapping[str, Netdev]
    nodes: Mapping[str, str]
    pci: PciReader
    counters: bool


def read_devices(sys: SysRoot, netdevs: Mapping[str, Netdev], pci: PciReader, *, counters: bool = True) -> dict[str, Device]:
    """Return every device by its name."""
    around = Around(netdevs, read_verbs_nodes(sys), pci, counters)
    return {name: _read_device(sys, name, around) for name in sys.list_dir(CLASS)}


def add_active_mtu(runner: Runner, devices: Mapping[str, Device]) -> dict[str, Device]:
    """Return the devices with the MTU that their ports use, which sysfs lacks; None, and why, if `ibv_devinfo` does not report it."""
    found, why = _read_devinfo(runner) if devices else ({}, None)
    return {name: replace(device, ports=_with_mtu(device, name, found.get(name), why)) for name, device in devices.items()}


def _read_devinfo(runner: Runner) -> tuple[dict[str, Devinfo], str | None]:
    """Return the output of `ibv_devinfo` by device; empty, and why, if it fails or prints anything else."""
    try:
        done = runner.run(("ibv_devinfo",))
        if done.rc:
            return {}, f"`ibv_devinfo` failed: {(done.stderr or done.stdout).strip()[:200] or f'exit status {done.rc}'}"
        return parse_ibv_devinfo(done.stdout), None
    except (CommandError, ParseError) as error:
        return {}, str(error)[:300]


def add_optics(runner: Runner, devices: Mapping[str, Device]) -> dict[str, Device]:
    """Return the devices with mstlink's report on the module of each InfiniBand card, or why there is no valid report.

    A virtual function has no cage: the cage belongs to its card.
    """
    return {name: _with_optic(runner, device) for name, device in devices.items()}


def _with_optic(runner: Runner, device: Device) -> Device:
    if device.pci is None or device.software or not any(port.link_layer == "InfiniBand" for port in device.ports.values()):
        return device
    if device.function == "vf":
        return device
    optic, unread = _read_optic(runner, device.pci.address)
    return replace(device, ports={number: replace(port, optic=optic, optic_unread=unread) for number, port in device.ports.items()})


def _read_optic(runner: Runner, address: str) -> tuple[Optic | None, str | None]:
    """Return the module, or why it could not be read."""
    try:
        done = runner.run(("mstlink", "-d", address, "-m"))
        if done.rc == 0:
            return parse_mlxlink_module(done.stdout), None
    except (CommandError, ParseError) as error:
        return None, str(error)
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return None, f"`mstlink -d {address} -m` fails: {lines[-1].strip()[:200] if lines else f'exit status {done.rc}'}"


def _with_mtu(device: Device, name: str, found: Devinfo | None, why: str | None) -> dict[str, Port]:
    mtus = {number: port.active_mtu_bytes for number, port in found.ports.items()} if found is not None else {}
    missing = why or f"`ibv_devinfo` prints no active_mtu for {name}"
    return {
        number: replace(port, active_mtu_bytes=mtus.get(number), active_mtu_error=missing if mtus.get(number) is None else None)
        for number, port in device.ports.items()
    }


def parse_device_name(text: str) -> str:
    """Parse ibdev: the name of an RDMA device. Raises ParseError."""
    if _DEVICE_NAME.fullmatch(text) is None:
        raise ParseError(f"not the name of an RDMA device: {quoted(text)}, expected the form 'mlx5_0'")
    return text


def parse_gid_type(text: str) -> str:
    """Parse gid_attrs/types: "RoCE v2" or "IB/RoCE v1". Raises ParseError."""
    if text not in (ROCE_V2, "IB/RoCE v1"):
        raise ParseError(f"not a type of GID: {quoted(text)}, expected {ROCE_V2!r} or 'IB/RoCE v1'")
    return text


def read_verbs_nodes(sys: SysRoot) -> dict[str, str]:
    """Return device → "/dev/infiniband/uverbs0", for those whose node exists (drivers/infiniband/core/uverbs_main.c)."""
    nodes = {}
    for entry in sys.list_dir(VERBS):
        device, node = sys.value(f"{VERBS}/{entry}/ibdev", parse_device_name), f"/dev/infiniband/{entry}"
        if device is not None and sys.exists(node):
            nodes[device] = node
    return nodes


def _read_device(sys: SysRoot, name: str, around: Around) -> Device:
    base = f"{CLASS}/{name}"
    node_type = sys.value(f"{base}/node_type", parse_node_type)
    driver, software = _read_driver(sys, base, node_type)
    function = find_function(sys, f"{base}/device") if not software else None
    pci = around.pci.function(function) if function is not None else None
    kind, parent = read_function_kind(sys, f"{base}/device") if pci is not None else (None, None)
    numbers = sorted((entry for entry in sys.list_dir(f"{base}/ports") if entry.isdecimal()), key=int)
    siblings = {netdev: seen for netdev, seen in around.netdevs.items() if pci is not None and seen.pci == pci.address}
    return Device(
        driver=driver,
        software=software,
        firmware=sys.text(f"{base}/fw_ver"),
        board_id=sys.text(f"{base}/board_id"),
        hca_type=sys.text(f"{base}/hca_type"),
        node_guid=sys.value(f"{base}/node_guid", parse_guid),
        sys_image_guid=sys.value(f"{base}/sys_image_guid", parse_guid),
        node_type=node_type,
        numa_node=sys.value(f"{base}/device/numa_node", parse_numa_node) if not software else None,
        function=kind,
        parent_pci=parent,
        uverbs=around.nodes.get(name),
        pci=pci,
        ports={number: _read_port(sys, base, number, siblings, len(numbers), counters=around.counters) for number in numbers},
    )


def _read_driver(sys: SysRoot, base: str, node_type: str | None) -> tuple[str | None, bool | None]:
    """Return the name of the driver, and whether it is a software device.

    A software device has no device below it and is in /sys/devices/virtual (before Linux 5.11 it borrowed its
    interface's). Only rdma_rxe has the attribute parent; siw is the only RNIC among the rest. node_desc is
    no proof for rxe: rdma-ndd of rdma-core overwrites it.
    """
    if sys.exists(f"{base}/parent"):
        return "rdma_rxe", True
    virtual = (sys.resolve(base) or "").startswith("/sys/devices/virtual/")
    if (sys.text(f"{base}/node_desc") or "").startswith(SIW_DESCRIPTION) or (virtual and node_type == "RNIC"):
        return "siw", True
    driver = sys.link_target(f"{base}/device/driver")
    if driver is not None:
        return PurePosixPath(driver).name, False
    if virtual:
        return None, True
    return None, False if sys.link_target(f"{base}/device") is not None else None


def _read_port(sys: SysRoot, device: str, number: str, siblings: Mapping[str, Netdev], port_count: int, *, counters: bool) -> Port:
    base = f"{device}/ports/{number}"
    rate = sys.value(f"{base}/rate", parse_rate)
    link_layer = sys.text(f"{base}/link_layer")
    gids = _read_gids(sys, base, link_layer)
    named = [gid.netdev for gid in gids if gid.netdev is not None]
    netdev = named[0] if named else sys.text(f"{device}/parent")
    return Port(
        state=sys.value(f"{base}/state", parse_state),
        physical_state=sys.value(f"{base}/phys_state", parse_physical_state),
        link_layer=link_layer,
        rate_gbps=rate.gbps if rate is not None else None,
        width=rate.width if rate is not None else None,
        speed=rate.speed if rate is not None else None,
        lid=sys.value(f"{base}/lid", parse_lid),
        sm_lid=sys.value(f"{base}/sm_lid", parse_lid),
        netdev=netdev or _match_netdev(sys, link_layer, int(number), siblings, port_count),
        gids=gids,
        rocev2=_rocev2(gids),
        counters=_read_counters(sys, f"{base}/counters") if counters else None,
        hw_counters=_read_counters(sys, f"{base}/hw_counters") if counters else None,
        pkeys=_read_pkeys(sys, base) if link_layer == "InfiniBand" else None,
    )


def _match_netdev(
    sys: SysRoot,
    link_layer: str | None,
    number: int,
    siblings: Mapping[str, Netdev],
    port_count: int,
) -> str | None:
    """Return the interface of a port whose GIDs name none: the one of the right kind on the same PCI function.

    A function with two ports, or with representors, has several: dev_port counts ports from 0. If that leaves
    more than one, the result is None. A child of an IPoIB interface ("ib0.8001") has an attribute parent.
    """
    wanted = ARPHRD_INFINIBAND if link_layer == "InfiniBand" else ARPHRD_ETHERNET
    children = [name for name in siblings if sys.exists(f"/sys/class/net/{name}/parent")]
    names = [name for name, netdev in siblings.items() if netdev.type == wanted and name not in children]
    if len(names) > 1 or port_count > 1:
        names = [name for name in names if siblings[name].dev_port == number - 1]
    return names[0] if len(names) == 1 else None


def _read_gids(sys: SysRoot, base: str, link_layer: str | None) -> list[Gid]:
    """Return the used entries of the GID table, in order.

    Reading the attributes of an unused entry fails with EINVAL, and its GID is zero, or only the subnet
    prefix on InfiniBand. Of a table of 256 entries a few are used, so the others are skipped by their text.
    """
    gids = []
    texts = {int(name): text for name, text in sys.read_files(f"{base}/gids").items() if name.isdecimal() and text.strip(UNUSED)}
    for index, text in sorted(texts.items()):
        address = named(f"{base}/gids/{index}", parse_gid, text)
        if link_layer == "InfiniBand" and not address.has_interface_id:
            continue
        attributes = f"{base}/gid_attrs"
        gids.append(
            Gid(
                index=index,
                gid=address.gid,
                type=sys.value(f"{attributes}/types/{index}", parse_gid_type),
                netdev=sys.text(f"{attributes}/ndevs/{index}"),
                ipv4=address.ipv4,
            )
        )
    return gids


def _read_pkeys(sys: SysRoot, base: str) -> dict[str, int] | None:
    """Return the table of P_Keys; None if the tree has none, as in many captures."""
    texts = {name: text for name, text in sys.read_files(f"{base}/pkeys").items() if name.isdecimal() and text.strip(BLANK)}
    found = {name: named(f"{base}/pkeys/{name}", parse_pkey, texts[name]) for name in sorted(texts, key=int)}
    return {name: key for name, key in found.items() if key} if found else None


def port_guid(port: Port | None) -> str | None:
    """Return the GUID of an InfiniBand port as tools print it, "0x0002c9030002fb05": the lower half of its first GID.

    None if there is no such GID, or if it is invalid: this text goes into opensm's partitions.conf.
    """
    first = next((each.gid for each in (port.gids if port else ()) if each.index == 0), None)
    guid = "0x" + "".join(str(first).split(":")[4:]).lower()
    return guid if _PORT_GUID.fullmatch(guid) and int(guid, 16) else None


def _rocev2(gids: list[Gid]) -> dict[str, int]:
    """Return IP address → first index for RoCE v2 on it. It is never a constant: it depends on when addresses were added and removed."""
    found = ((gid.ipv4 or global_ipv6(gid.gid), gid.index) for gid in reversed(gids) if gid.type == ROCE_V2)
    return {address: index for address, index in found if address is not None}


def _read_counters(sys: SysRoot, base: str) -> dict[str, int | None]:
    texts = {name: text.strip(BLANK) for name, text in sys.read_files(base).items() if name not in NOT_COUNTERS}
    return {name: named(f"{base}/{name}", parse_counter, text) if text else None for name, text in sorted(texts.items())}
