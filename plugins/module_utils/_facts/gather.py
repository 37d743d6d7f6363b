# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The observed state of a host, as far as it matters for RDMA: one tree, read from one SysRoot.

Absent is None, never 0. to_dict gives the tree that the module returns and that findings, roles and templates use;
its keys are the names of the fields here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import managed_files, shared_files
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState, enabled_instances
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import read_parameters
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack, read_stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import (
    Boot,
    Limits,
    Sysctl,
    Time,
    add_live,
    add_named,
    read_addresses,
    read_boot,
    read_limits,
    read_nccl_files,
    read_sysctl,
    read_time,
    read_units,
    variables_in,
)
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import cards_of, read_firmware
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpudirect import (
    GpuDirect,
    PeerMemory,
    possible_paths,
    read_peer_memory,
    read_rdma_core_version,
)
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import Gpu, GpuDriver, read_gpus
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.support import GpuSupport, read_gpu_support
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import Cpu, read_cpu
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load, read_load
from ansible_collections.rdma.cluster.plugins.module_utils._host.memory import Filesystem, Memory, read_filesystems, read_memory
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import TEMPLATE as PTP_TEMPLATE
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.installed import MPI_PACKAGES, NcclHost, read_nccl_host
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import PluginQuery
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.records import read_recorded
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import SeenBond, read_bonds
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import EthtoolPort
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import IoctlPort
from ansible_collections.rdma.cluster.plugins.module_utils._net.firewall import Firewall, read_firewall
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import IpAddresses
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import SeenVlan, interfaces_below, read_vlans
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import read_backend
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Interface, Netdev, read_interfaces, read_netdev, read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import Planes, read_planes
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_routes import Routing, read_routing
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session, read_session
from ansible_collections.rdma.cluster.plugins.module_utils._pci.distance import read_distances
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PCI_DEVICES, Iommu, PciFunction, PciReader, read_iommu
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import TEMPLATE, unit_of
from ansible_collections.rdma.cluster.plugins.module_utils._qos.state import read_all_qos, roce_interfaces
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, add_active_mtu, add_optics, read_devices
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import read_nics, read_nodes

SCHEMA = 1
#: The optional parts. Devices, their ports and PCI paths, interfaces, and the host's identity are always read: they start no process.
SUBSETS = {
    "counters": "the counters of ports, and of interfaces if they are asked",
    "gpus": "GPUs, their distance to each NIC, GPUDirect, IOMMU",
    "host": "limits, kernel settings, files, units, load, time, CPUs, memory, file systems, our own session, routes and name servers",
    "netdevs": "what only the running system reports of interfaces: addresses, who manages them, ethtool; the MTU of ports",
    "optics": "the modules in the cages of interfaces and InfiniBand ports",
    "qos": "RoCE quality of service of interfaces: DCBX, trust, PFC, ETS, congestion control, traffic class, RDMA-CM's defaults",
    "stack": "modules and their files, DKMS, kernels, headers, Secure Boot, packages, NCCL",
}
#: The parts that only a running system has.
LIVE = frozenset({"netdevs", "optics", "qos"})


@dataclass(frozen=True)
class Asked:
    """What to read. subset: parts of SUBSETS; sysctl: kernel settings; files: further files to report; firmware: settings;

    packages: further packages to report, in stack.distribution.asked. plugin: the network plugin of NCCL to report.
    """

    subset: frozenset[str] = frozenset(SUBSETS)
    sysctl: Sequence[str] = ()
    files: Sequence[str] = ()
    firmware: Sequence[str] = ()
    packages: Sequence[str] = ()
    plugin: PluginQuery | None = None


EVERYTHING = Asked()


@dataclass(frozen=True)
class Facts:
    """The whole tree. subset: what was read; None for parts that were not. nics: network cards without an RDMA device, by PCI address.

    interfaces: all of them, also bonds, VLANs and bridges, which are not NICs. Of these, netdevs has the bonds and VLANs of NICs, and what
    RDMA uses.
    vlans, bonds: these interfaces; None if they may not be read.
    files: those of the collection, path → sha256 and mode; for nccl.conf also our block and the variables that lines of others set.
    nccl_files: NCCL's variables in each file that has any.
    firmware: of each card, by PCI address, the requested settings.
    module_parameters: of each module of stack, as the kernel shows them.
    qos: of each interface with a RoCE port, the tree of _qos.state.QosState.
    network_backend: the manager of the host's network, "networkd", "networkmanager" or "netplan"; None for a captured tree.
    nodes: the nodes of /dev/infiniband that are open to all, path → permission bits; None for a captured tree.
    """

    schema: int
    subset: list[str]
    devices: dict[str, Device]
    netdevs: dict[str, Netdev]
    interfaces: dict[str, Interface] | None
    boot: Boot
    nics: dict[str, PciFunction]
    nodes: dict[str, int] | None = None
    qos: dict[str, dict[str, Any]] | None = None
    stack: Stack | None = None
    module_parameters: dict[str, dict[str, str]] | None = None
    nccl: NcclHost | None = None
    firmware: dict[str, dict[str, Any]] | None = None
    gpus: list[Gpu] | None = None
    gpu_driver: GpuDriver | None = None
    gpu_support: GpuSupport | None = None
    distances: dict[str, dict[str, str | None]] | None = None
    gpudirect: GpuDirect | None = None
    iommu: Iommu | None = None
    limits: Limits | None = None
    sysctl: Sysctl | None = None
    files: dict[str, dict[str, Any]] | None = None
    nccl_files: dict[str, dict[str, str]] | None = None
    units: dict[str, UnitState] | None = None
    load: Load | None = None
    time: Time | None = None
    cpu: Cpu | None = None
    filesystems: dict[str, Filesystem] | None = None
    memory: Memory | None = None
    session: Session | None = None
    planes: Planes | None = None
    network_backend: str | None = None
    routing: Routing | None = None
    firewall: Firewall | None = None
    vlans: dict[str, SeenVlan] | None = None
    bonds: dict[str, SeenBond] | None = None


def parse_subset(words: Sequence[str]) -> frozenset[str]:
    """Parse gather_subset as Ansible's own modules do: "all", "min", names, and "!name" for all but that. Raises ParseError."""
    wanted: set[str] = set()
    left_out: set[str] = set()
    for word in words:
        name = word.removeprefix("!")
        if name not in (*SUBSETS, "all", "min"):
            raise ParseError(f"gather_subset: {word!r} is none of all, min, {', '.join(sorted(SUBSETS))}, nor one of these after a !")
        names = set(SUBSETS) if name == "all" else {name} & set(SUBSETS)
        (left_out if word.startswith("!") else wanted).update(names)
    only_left_out = all(word.startswith("!") for word in words)
    return frozenset((set(SUBSETS) if only_left_out else wanted) - left_out)


def gather(sys: SysRoot, runner: Runner | None = None, asked: Asked = EVERYTHING, port: EthtoolPort | None = None) -> Facts:
    """Read the requested parts.

    runner: runs commands on the system that sys is the root of; None for a captured tree, on which no command can run.
    port: queries the drivers of interfaces; by default the kernel of the running system.
    Raises ParseError for a file of another form than the kernel's, and OSError for one that cannot be read;
    both name the path.
    """
    pci = PciReader(sys)
    netdevs = read_netdevs(sys)
    devices = read_devices(sys, netdevs, pci, counters="counters" in asked.subset)
    vlans, bonds = read_vlans(sys), read_bonds(sys)
    netdevs = add_named(sys, netdevs, devices)
    made = [name for name, bond in (bonds or {}).items() if netdevs.keys() & bond.members.keys() and name not in netdevs]
    netdevs.update({name: read_netdev(sys, name) for name in made})
    netdevs.update({name: read_netdev(sys, name) for name, vlan in (vlans or {}).items() if vlan.parent in netdevs and name not in netdevs})
    addresses = {}
    if runner is not None and asked.subset & {"netdevs", "host"}:
        addresses = read_addresses(runner)
    if runner is not None and "netdevs" in asked.subset:
        netdevs = add_live(sys, runner, port or IoctlPort(), netdevs, addresses, subset=asked.subset)
        devices = add_active_mtu(runner, devices)
    if runner is not None and "optics" in asked.subset:
        devices = add_optics(runner, devices)
    parts: dict[str, Any] = {"nodes": read_nodes(sys) if runner is not None else None, "vlans": vlans, "bonds": bonds}
    if runner is not None and "qos" in asked.subset:
        parts["qos"] = read_all_qos(sys, runner, netdevs, devices)
    if runner is not None and asked.firmware:
        parts["firmware"] = read_firmware(runner, cards_of(devices), asked.firmware)
    if "gpus" in asked.subset:
        parts.update(_gpus(sys, pci, devices, runner))
    if "stack" in asked.subset:
        parts["stack"] = read_stack(sys, runner, sorted({*MPI_PACKAGES.values(), *asked.packages}))
        parts["nccl"] = read_nccl_host(sys, parts["stack"].distribution, runner, asked.plugin)
        parts["module_parameters"] = read_parameters(sys, parts["stack"].modules)
    if "host" in asked.subset:
        planned = [unit_of(name) for name in roce_interfaces(netdevs, devices)] if "qos" in asked.subset else []
        units = sorted({*planned, *enabled_instances(sys, TEMPLATE), *enabled_instances(sys, PTP_TEMPLATE)})
        parts.update(_host(sys, runner, asked, addresses, families=families_of(devices, addresses, vlans, bonds), units=units))
    subset = asked.subset - (LIVE if runner is None else frozenset())
    nics = read_nics(sys, pci, {device.pci.address for device in devices.values() if device.pci is not None})
    return Facts(SCHEMA, sorted(subset), devices, netdevs, read_interfaces(sys, addresses), read_boot(sys), nics, **parts)


def _gpus(sys: SysRoot, pci: PciReader, devices: Mapping[str, Device], runner: Runner | None) -> dict[str, Any]:
    iommu = read_iommu(sys, running=runner is not None)
    if runner is None and not sys.exists(PCI_DEVICES):
        return {"iommu": iommu}
    gpus, driver = read_gpus(sys, pci)
    peer = read_peer_memory(sys) if gpus else PeerMemory(symbol=None, peers=[])
    gpudirect = possible_paths(
        kernel=sys.text("/proc/sys/kernel/osrelease"),
        modules=sys.list_dir("/sys/module"),
        gpu_driver=driver,
        gpus=gpus,
        rdma_core_version=read_rdma_core_version(sys),
        peer_symbol=peer.symbol,
        memory_peers=peer.peers,
    )
    distances = read_distances(sys, {gpu.address: gpu.pci for gpu in gpus}, {name: device.pci for name, device in devices.items()})
    support = read_gpu_support(sys, runner) if gpus else None
    return {
        "gpus": gpus,
        "gpu_driver": driver,
        "gpu_support": support,
        "gpudirect": gpudirect,
        "distances": distances,
        "iommu": iommu,
    }


def families_of(
    devices: Mapping[str, Device],
    addresses: Mapping[str, IpAddresses],
    vlans: Mapping[str, SeenVlan] | None = None,
    bonds: Mapping[str, SeenBond] | None = None,
) -> tuple[int, ...]:
    """Return the families whose rules and routes are read: IPv6 only where the interface of an RDMA port, or its VLAN or bond, has one."""
    netdevs = {gid.netdev for device in devices.values() for port in device.ports.values() for gid in port.gids}
    netdevs |= {port.netdev for device in devices.values() for port in device.ports.values()}
    found = [name for name, each in addresses.items() if each.ipv6 or each.dad_failed]
    return (4, 6) if any(not netdevs.isdisjoint(interfaces_below(name, vlans, bonds)) for name in found) else (4,)


def _host(
    sys: SysRoot,
    runner: Runner | None,
    asked: Asked,
    addresses: Mapping[str, IpAddresses],
    *,
    families: tuple[int, ...],
    units: Sequence[str],
) -> dict[str, Any]:
    session = read_session(sys, runner, {name: [*each.ipv4, *each.ipv6] for name, each in addresses.items()})
    ipv4 = {name: each.ipv4 for name, each in addresses.items()}
    return {
        "limits": read_limits(sys, runner),
        "sysctl": read_sysctl(sys, asked.sysctl),
        "files": managed_files(sys, asked.files, shared_files(asked.files), variables_in),
        "nccl_files": read_nccl_files(sys, asked.files),
        "units": (states := read_units(sys, runner, units)),
        "load": read_load(sys, runner),
        "time": read_time(sys, runner),
        "cpu": read_cpu(sys, running=runner is not None),
        "filesystems": read_filesystems(sys, runner),
        "memory": read_memory(sys),
        "session": session,
        "routing": read_routing(runner, families, read_recorded(sys)) if runner is not None else None,
        "firewall": read_firewall(states, sys, runner) if runner is not None else None,
        "network_backend": read_backend(sys, session.netdev) if runner is not None else None,
        "planes": read_planes(sys, running=runner is not None, addresses=ipv4),
    }


def to_dict(facts: Facts) -> dict[str, Any]:
    """Return the tree as plain dictionaries, lists, strings and numbers."""
    return asdict(facts)
