# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is observed to be, as far as RDMA is concerned: one tree, read from one SysRoot.

Absent is None, never 0. to_dict gives the tree that the module returns and that findings, roles and templates use;
its keys are the names of the fields here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._distribution import (
    Distribution,
    read_distribution,
)
from ansible_collections.rdma.cluster.plugins.module_utils._files import managed_files
from ansible_collections.rdma.cluster.plugins.module_utils._host_state import Limits, Sysctl, read_limits, read_sysctl, read_units
from ansible_collections.rdma.cluster.plugins.module_utils._infiniband import (
    parse_counter,
    parse_gid,
    parse_guid,
    parse_lid,
    parse_node_type,
    parse_physical_state,
    parse_rate,
    parse_state,
)
from ansible_collections.rdma.cluster.plugins.module_utils._ip_address import read_ip_addresses
from ansible_collections.rdma.cluster.plugins.module_utils._load import Load, read_load
from ansible_collections.rdma.cluster.plugins.module_utils._netdev import (
    Netdev,
    read_netdev,
    read_netdevs,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pci import (
    PciFunction,
    find_function,
    parse_numa_node,
    read_function,
)
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import UnitState

SCHEMA = 1
ROCE_V2 = "RoCE v2"
LINK_LOCAL = "fe80:"
CLASS = "/sys/class/infiniband"
ARPHRD_ETHERNET, ARPHRD_INFINIBAND = 1, 32
# A setting in the directory of the hardware counters: how long, in ms, the kernel answers from its cache.
NOT_COUNTERS = ("lifespan",)
#: What roles, templates and checks do not ask for.
NOT_IN_DIGEST = {
    "devices": ("hca_type", "node_type", "sys_image_guid"),
    "gids": ("gid", "netdev"),
    "modules": ("holders",),
    "netdevs": ("driver", "operstate", "type"),
    "pci": ("device_id", "max_speed_gtps", "max_width", "vendor_id"),
}
SIW_DESCRIPTION = "Software iWARP stack"
# mlx_compat is the layer below every module of MLNX_OFED and DOCA-OFED; no kernel has it.
OFED_MODULE = "mlx_compat"
# Besides these, every module that holds ib_core counts as one for RDMA.
MODULES = (
    *("bnxt_en", "gdrdrv", "ib_core", "ib_ipoib", "ib_umad", "ib_uverbs", "ice", "irdma", "bnxt_re", "mlx4_core"),
    *("mlx5_core", "mlx5_ib", OFED_MODULE, "nv_peer_mem", "nvidia_peermem", "rdma_cm", "rdma_rxe", "rdma_ucm", "siw"),
)


@dataclass(frozen=True)
class Gid:
    """One used entry of a port's GID table. type is the kernel's word: "RoCE v2" or "IB/RoCE v1"."""

    index: int
    gid: str
    type: str | None
    netdev: str | None
    ipv4: str | None


@dataclass(frozen=True)
class Port:
    """One port. rate_gbps and width are as negotiated; netdev is the interface that carries its IP addresses."""

    state: str | None
    physical_state: str | None
    link_layer: str | None
    rate_gbps: float | None
    width: int | None
    lid: int | None
    sm_lid: int | None
    netdev: str | None
    gids: list[Gid]
    counters: dict[str, int | None]
    hw_counters: dict[str, int | None]


@dataclass(frozen=True)
class Device:
    """One RDMA device. software is None where the tree does not tell; ports are named by their number, from "1"."""

    driver: str | None
    software: bool | None
    firmware: str | None
    board_id: str | None
    hca_type: str | None
    node_guid: str | None
    sys_image_guid: str | None
    node_type: str | None
    numa_node: int | None
    pci: PciFunction | None
    ports: dict[str, Port]


@dataclass(frozen=True)
class Module:
    """A loaded kernel module; version is what it declares of itself, which modules of the kernel often do not."""

    version: str | None
    srcversion: str | None
    holders: list[str]


@dataclass(frozen=True)
class Stack:
    """The driver stack: kind is "ofed" where its compatibility layer is loaded, and not guessed otherwise."""

    kind: str | None
    kernel: str | None
    modules: dict[str, Module]
    distribution: Distribution


@dataclass(frozen=True)
class Boot:
    """Which boot of which machine was read, and what it calls itself."""

    boot_id: str | None
    machine_id: str | None
    hostname: str | None


@dataclass(frozen=True)
class Facts:
    """The whole tree. files: those of the collection, path → sha256 and mode; limits and units: None unless a system was asked."""

    schema: int
    devices: dict[str, Device]
    netdevs: dict[str, Netdev]
    stack: Stack
    boot: Boot
    limits: Limits
    sysctl: Sysctl
    files: dict[str, dict[str, Any]]
    units: dict[str, UnitState] | None
    load: Load


def gather(sys: SysRoot, runner: Runner | None = None, sysctl_keys: Sequence[str] = (), files: Sequence[str] = ()) -> Facts:
    """Read everything. sysctl_keys, files: the kernel settings and further files to tell of.

    runner: that of the system that sys is the root of; None for a tree that was captured, of which no command can be asked.
    Raises ParseError for a file of another form than the kernel's, and OSError for one that cannot be read;
    both name the path.
    """
    netdevs = read_netdevs(sys)
    devices = {name: _read_device(sys, name, netdevs) for name in sys.list_dir(CLASS)}
    ports = [port for device in devices.values() for port in device.ports.values()]
    used = {name for port in ports for name in (port.netdev, *(gid.netdev for gid in port.gids)) if name is not None}
    netdevs.update({name: read_netdev(sys, name) for name in sorted(used - netdevs.keys())})
    return Facts(
        schema=SCHEMA,
        devices=devices,
        netdevs=_with_addresses(netdevs, runner) if runner is not None else netdevs,
        stack=_read_stack(sys),
        boot=Boot(
            boot_id=sys.text("/proc/sys/kernel/random/boot_id"),
            machine_id=sys.text("/etc/machine-id"),
            hostname=sys.text("/proc/sys/kernel/hostname"),
        ),
        limits=read_limits(sys, runner),
        sysctl=read_sysctl(sys, sysctl_keys),
        files=managed_files(sys, files),
        units=read_units(runner),
        load=read_load(sys),
    )


def to_dict(facts: Facts) -> dict[str, Any]:
    """The tree as plain dictionaries, lists, strings and numbers."""
    return asdict(facts)


def digest(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What roles and templates use of the tree of to_dict: at most 10 KB of JSON for a host with 8 NICs.

    Left out are the counters, on Ethernet the LIDs and the GIDs that no traffic between hosts uses (RoCE v1 and link-local), and what
    describes but decides nothing (NOT_IN_DIGEST).
    """
    parts = {part: {name: _digest_item(part, item) for name, item in facts[part].items()} for part in ("devices", "netdevs")}
    modules = {name: _digest_item("modules", module) for name, module in facts["stack"]["modules"].items()}
    return {**facts, **parts, "stack": {**facts["stack"], "modules": modules}}


def _digest_item(part: str, item: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in item.items() if key not in NOT_IN_DIGEST[part]}
    if part == "devices":
        kept["ports"] = {number: _digest_port(port) for number, port in item["ports"].items()}
        kept["pci"] = item["pci"] and {key: value for key, value in item["pci"].items() if key not in NOT_IN_DIGEST["pci"]}
    return kept


def rocev2_gid_index(port: Mapping[str, Any], ipv4: str) -> int | None:
    """The GID index for RoCE v2 on an IPv4 address of a port of to_dict, or None.

    Never a constant: the index depends on the order in which addresses came and went.
    """
    indexes = [gid["index"] for gid in port["gids"] if gid["type"] == ROCE_V2 and gid["ipv4"] == ipv4]
    return min(indexes, default=None)


def _digest_port(port: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in port.items() if key not in ("counters", "hw_counters")}
    if port["link_layer"] == "Ethernet":
        del kept["lid"], kept["sm_lid"]
        used = [gid for gid in port["gids"] if gid["type"] == ROCE_V2 and not gid["gid"].startswith(LINK_LOCAL)]
        kept["gids"] = [{key: value for key, value in gid.items() if key not in NOT_IN_DIGEST["gids"]} for gid in used]
    return kept


def _with_addresses(netdevs: Mapping[str, Netdev], runner: Runner) -> dict[str, Netdev]:
    said = read_ip_addresses(runner) or {}
    return {
        name: replace(netdev, max_mtu_bytes=said[name].max_mtu_bytes, ipv4=said[name].ipv4) if name in said else netdev
        for name, netdev in netdevs.items()
    }


def _read_device(sys: SysRoot, name: str, netdevs: Mapping[str, Netdev]) -> Device:
    base = f"{CLASS}/{name}"
    node_type = sys.value(f"{base}/node_type", parse_node_type)
    driver, software = _read_driver(sys, base, node_type)
    function = find_function(sys, f"{base}/device") if not software else None
    pci = read_function(sys, function) if function is not None else None
    numbers = sorted((entry for entry in sys.list_dir(f"{base}/ports") if entry.isdecimal()), key=int)
    siblings = {netdev: seen for netdev, seen in netdevs.items() if pci is not None and seen.pci == pci.address}
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
        pci=pci,
        ports={number: _read_port(sys, base, number, siblings, len(numbers)) for number in numbers},
    )


def _read_driver(sys: SysRoot, base: str, node_type: str | None) -> tuple[str | None, bool | None]:
    """The name of the driver, and whether the device is one of software.

    A software device has no device below it and stands in /sys/devices/virtual (before Linux 5.11 it borrowed its
    interface's). rdma_rxe alone has the attribute parent; siw is the only RNIC among the rest. node_desc is
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


def _read_port(sys: SysRoot, device: str, number: str, siblings: Mapping[str, Netdev], port_count: int) -> Port:
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
        lid=sys.value(f"{base}/lid", parse_lid),
        sm_lid=sys.value(f"{base}/sm_lid", parse_lid),
        netdev=netdev or _match_netdev(sys, link_layer, int(number), siblings, port_count),
        gids=gids,
        counters=_read_counters(sys, f"{base}/counters"),
        hw_counters=_read_counters(sys, f"{base}/hw_counters"),
    )


def _match_netdev(
    sys: SysRoot,
    link_layer: str | None,
    number: int,
    siblings: Mapping[str, Netdev],
    port_count: int,
) -> str | None:
    """The interface of a port whose GIDs name none: the one of the right kind on the same PCI function.

    A function with two ports, or with representors, has several: dev_port counts ports from 0. If that leaves
    more than one, none is named. A child of an IPoIB interface ("ib0.8001") has an attribute parent.
    """
    wanted = ARPHRD_INFINIBAND if link_layer == "InfiniBand" else ARPHRD_ETHERNET
    children = [name for name in siblings if sys.exists(f"/sys/class/net/{name}/parent")]
    names = [name for name, netdev in siblings.items() if netdev.type == wanted and name not in children]
    if len(names) > 1 or port_count > 1:
        names = [name for name in names if siblings[name].dev_port == number - 1]
    return names[0] if len(names) == 1 else None


def _read_gids(sys: SysRoot, base: str, link_layer: str | None) -> list[Gid]:
    """The used entries of the GID table, in order.

    Reading the attributes of an unused entry fails with EINVAL, and its GID is zero, or nothing but the subnet
    prefix on InfiniBand.
    """
    gids = []
    for index in sorted((entry for entry in sys.list_dir(f"{base}/gids") if entry.isdecimal()), key=int):
        address = sys.value(f"{base}/gids/{index}", parse_gid)
        if address is None or address.is_zero or (link_layer == "InfiniBand" and not address.has_interface_id):
            continue
        attributes = f"{base}/gid_attrs"
        gids.append(
            Gid(
                index=int(index),
                gid=address.gid,
                type=sys.text(f"{attributes}/types/{index}"),
                netdev=sys.text(f"{attributes}/ndevs/{index}"),
                ipv4=address.ipv4,
            )
        )
    return gids


def _read_counters(sys: SysRoot, base: str) -> dict[str, int | None]:
    names = [name for name in sys.list_dir(base) if name not in NOT_COUNTERS]
    return {name: sys.value(f"{base}/{name}", parse_counter) for name in names}


def _read_stack(sys: SysRoot) -> Stack:
    wanted = {*MODULES, *sys.list_dir("/sys/module/ib_core/holders")}
    modules = {name: _read_module(sys, name) for name in sorted(wanted) if sys.exists(f"/sys/module/{name}")}
    kind = "ofed" if OFED_MODULE in modules else None
    kernel = sys.text("/proc/sys/kernel/osrelease")
    return Stack(kind=kind, kernel=kernel, modules=modules, distribution=read_distribution(sys))


def _read_module(sys: SysRoot, name: str) -> Module:
    base = f"/sys/module/{name}"
    return Module(
        version=sys.text(f"{base}/version"),
        srcversion=sys.text(f"{base}/srcversion"),
        holders=sys.list_dir(f"{base}/holders"),
    )
