# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of a host's PCIe settings: payload size, MRRS, ACS and IOMMU on the path to GPUs, and the distance to the nearest GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import (
    IN_A_VIRTUAL_MACHINE,
    NO_GPU,
    THIS_PLATFORM,
    is_data_direct,
    redirecting,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.pcie_tuning import BEST_MRRS_BYTES, FAST_GBPS, rate_gbps
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import NO_FUNCTION, RailPort, way_of

declare(
    {
        "pcie.payload": Check(
            "preflight",
            "the maximum payload size of the card and of every bridge above it",
            "PCI configuration space",
            "`pci=pcie_bus_safe` on the kernel command line, or the BIOS setting",
            sources=(reads.CONFIG,),
        ),
        "pcie.mrrs": Check(
            "preflight",
            "MRRS (maximum read request size) of each mlx5 card of 100 Gb/s or more, where `rdma_host.pcie.mrrs_bytes` is `leave`",
            "PCI configuration space",
            "`rdma_host.pcie.mrrs_bytes: auto` and `pcie_mrrs_allowed: true`",
            sources=(reads.CONFIG,),
        ),
        "pcie.acs": Check(
            "preflight",
            "ACS controls on the bridges above each rail's card, on physical hosts with GPUs",
            "PCI configuration space",
            "disable ACS in the BIOS, or by `setpci` at every boot; on ConnectX-8 and boards with Grace, see `rdma_topo check`",
            sources=(reads.CONFIG,),
        ),
        "pcie.distance": Check(
            "preflight",
            "the distance of each compute rail to the nearest GPU",
            "`/sys/devices`, `numa_node`",
            "move the card to a slot near a GPU, or plan a nearer NIC",
            sources=(reads.GPUS,),
        ),
        "host.iommu": Check(
            "preflight",
            "the IOMMU of a physical host with GPUs",
            "`/sys/class/iommu`, `/sys/kernel/iommu_groups`",
            "`iommu.passthrough=1` (on x86 also `iommu=pt`) on the kernel command line, or disable it in the BIOS",
            sources=(
                reads.folder("/sys/kernel/iommu_groups", absent_means="a kernel without an active IOMMU has no groups"),
                reads.file("/sys/kernel/iommu_groups/*/type"),
            ),
        ),
    }
)

STAGE = "preflight"
#: Distances from near to far: one PCIe switch, several, one host bridge, one NUMA node, between NUMA nodes (`nvidia-smi topo -m`).
DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")
NOT_READ = "the facts do not contain it"
NO_RDMA_DEVICE = "no RDMA device, so no distance is known: see driver.device"
NO_DISTANCE = "the firmware reports no distance between any GPU and any NIC, as in many virtual machines"


def check_pcie_settings(host: str, ports: Sequence[RailPort], facts: Facts, *, mrrs_planned: bool = False) -> list[Finding]:
    """Findings `pcie.payload`, `pcie.mrrs`, `pcie.acs` and `pcie.distance` for each rail, and `host.iommu`: warnings at most.

    mrrs_planned: whether the host stage sets MRRS; its gate then checks it.
    """
    return [*(finding for port in ports for finding in _rail(port, facts, mrrs_planned=mrrs_planned)), _iommu(host, facts)]


def _rail(port: RailPort, facts: Facts, *, mrrs_planned: bool) -> Iterator[Finding]:
    yield _payload(port)
    yield _mrrs(port, facts, mrrs_planned=mrrs_planned)
    yield _acs(port, facts)
    yield _distance(port, facts)


def _payload(port: RailPort) -> Finding:
    check, expected = "pcie.payload", "one maximum payload size on the whole path to the root, supported by every bridge"
    pci = port.pci
    if pci is None or port.no_pci:
        return port.skip(check, port.no_pci or NO_FUNCTION, expected)
    if pci.mps_bytes is None:
        return port.unread(check, _unread_words(pci), expected)
    if not pci.hops:
        return port.skip(check, f"no bridge above {pci.address}", expected)
    sizes = [(hop.address, hop.mps_bytes, hop.mps_max_bytes) for hop in way_of(pci) if hop.mps_bytes is not None]
    words = ", ".join(f"{address} {mps_bytes} bytes" for address, mps_bytes, _most in sizes)
    above = [address for address, mps_bytes, most in sizes if most is not None and mps_bytes > most]
    if len({mps_bytes for _address, mps_bytes, _most in sizes}) == 1 and not above:
        return port.finding(check, OK, f"{pci.mps_bytes} bytes", expected)
    if above:
        words += f"; {', '.join(above)} supports less"
    remedy = f"Boot {port.host} with `pci=pcie_bus_safe` on the kernel command line, or change it in the BIOS. Do not use setpci."
    return port.finding(check, WARNING, words, expected, remedy)


def _unread_words(pci: PciFunction) -> str:
    return f"the configuration space of {pci.address} could not be read"


def _mrrs(port: RailPort, facts: Facts, *, mrrs_planned: bool) -> Finding:
    check, expected, pci = "pcie.mrrs", f"{BEST_MRRS_BYTES} bytes", port.pci
    why_not, parent = port.no_pci, port.device.parent_pci if port.device else None
    if why_not is None and mrrs_planned:
        why_not = "rdma_host.pcie.mrrs_bytes requests a value: host.pcie checks it in the host stage"
    if why_not is None and port.driver != "mlx5_core":
        why_not = f"checked for mlx5 only; the driver here is {port.driver}"
    if why_not is None and port.virtual and not parent:
        why_not = "the physical function, which is not on this host, sets it"
    if pci is None or why_not is not None:
        return port.skip(check, why_not or NO_FUNCTION, expected)
    mrrs_bytes = pci.mrrs_bytes
    if mrrs_bytes is None:
        return port.unread(check, _unread_words(pci), expected)
    if mrrs_bytes >= BEST_MRRS_BYTES:
        return port.finding(check, OK, f"{mrrs_bytes} bytes", expected)
    address, known = parent or pci.address, rate_gbps(port.rail, facts)
    if known is not None and known < FAST_GBPS:
        return port.finding(check, OK, f"{mrrs_bytes} bytes, enough for {known:g} Gb/s", expected)
    remedy = (
        f"1. On {port.host}, run `lspci -vvv -s {address}` (MaxReadReq). 2. In the inventory, set `rdma_host.pcie.mrrs_bytes: auto` and "
        f"`pcie_mrrs_allowed: true`. 3. Run the host stage while {port.host} is idle."
    )
    return port.finding(check, WARNING, f"{mrrs_bytes} bytes", expected, remedy)


def _no_gpu_traffic(facts: Facts) -> str | None:
    """Why the path between GPUs and NICs is not checked on this host; None if it is checked."""
    if not facts.gpus:
        return NO_GPU
    return IN_A_VIRTUAL_MACHINE if facts.iommu and facts.iommu.virtual_machine else None


def _acs(port: RailPort, facts: Facts) -> Finding:
    check, expected = "pcie.acs", "no bridge redirects traffic between GPU and NIC"
    why_not, pci = _no_gpu_traffic(facts) or port.no_pci, port.pci
    if pci is None or why_not:
        return port.skip(check, why_not or NO_FUNCTION, expected)
    # The direct path of ConnectX-8 and of boards with Grace needs ACS.
    if is_data_direct([gpu.model for gpu in facts.gpus or ()], [pci.device_id]):
        return port.skip(check, THIS_PLATFORM, expected)
    hops = pci.hops
    if not hops:
        return port.skip(check, f"no bridge above {pci.address}", expected)
    if all(hop.acs is None and hop.mps_bytes is None for hop in hops):
        remedy = f"1. On {port.host}, run `lspci -vvv` as root (ACSCtl). 2. Read its facts as root, then run the stage again."
        return port.finding(check, UNKNOWN, "no configuration space could be read", expected, remedy)
    found = {hop.address: names for hop in hops if (names := redirecting(hop.acs))}
    if not found:
        return port.finding(check, OK, "none on its path to the root", expected)
    commands = ", ".join(f"`setpci -s {address} ECAP_ACS+0x6.w=0000`" for address in found)
    return port.finding(
        check, WARNING, "; ".join(f"{address} has {', '.join(names)}" for address, names in found.items()), expected,
        f"Disable ACS in the BIOS of {port.host}, or at every boot: {commands}. Keep it if virtual machines use devices of this host.",
    )  # fmt: skip


def _iommu(host: str, facts: Facts) -> Finding:
    expected, iommu = "off or passthrough", facts.iommu
    why_not = _no_gpu_traffic(facts)
    if why_not is not None:
        return Finding(STAGE, "host.iommu", host, "IOMMU", NOT_APPLICABLE, why_not, expected)
    if iommu is None:
        remedy = f"Read the facts of {host} with the subset gpus."
        return Finding(STAGE, "host.iommu", host, "IOMMU", UNKNOWN, NOT_READ, expected, remedy)
    mode = iommu.mode
    if mode is None:
        remedy = f"On {host}, run `cat /sys/kernel/iommu_groups/*/type` and `dmesg | grep -i iommu`."
        return Finding(STAGE, "host.iommu", host, "IOMMU", UNKNOWN, "its mode could not be read", expected, remedy)
    good = mode in ("off", "passthrough")
    observed = {"translated": "translates addresses of all devices", "mixed": "translates the addresses of some devices"}.get(mode, mode)
    remedy = f"Boot {host} with `iommu.passthrough=1` on the kernel command line (x86: `iommu=pt`), or disable it in the BIOS."
    return Finding(STAGE, "host.iommu", host, "IOMMU", OK if good else WARNING, observed, expected, "" if good else remedy)


def gives_no_distance(facts: Facts) -> bool:
    """Whether distances between GPUs and NICs were read and the firmware reports none of them."""
    distances = facts.distances or {}
    return bool(distances) and not any(each for of_gpu in distances.values() for each in of_gpu.values())


def _distance(port: RailPort, facts: Facts) -> Finding:
    check, expected = "pcie.distance", "a GPU on the same NUMA node or nearer"
    distances, pci = facts.distances or {}, port.pci
    why_not = NO_GPU if not facts.gpus else port.no_pci
    if why_not is None and port.rail.rail.get("role") != "compute":
        why_not = f"a {port.rail.rail.get('role')} rail carries no GPU traffic"
    if why_not is None and port.device is None:
        why_not = NO_RDMA_DEVICE
    nearest = _nearest(distances, port.rail.device)
    if why_not is None and gives_no_distance(facts):
        why_not = NO_DISTANCE
    if pci is None or why_not is not None:
        return port.skip(check, why_not or NO_FUNCTION, expected)
    if nearest is None:
        return port.unread(check, "the distance to a GPU is not known", expected)
    if nearest != "SYS":
        return port.finding(check, OK, f"{nearest} to the nearest GPU", expected)
    devices = sorted({name for of_gpu in distances.values() for name in of_gpu})
    near = [name for name in devices if _nearest(distances, name) not in (None, "SYS")]
    remedy = f"On {port.host}, move card {pci.address} to a slot at a GPU's socket: traffic of {port.rail.device} crosses sockets" + (
        f". Or plan a nearer NIC ({', '.join(near)})." if near else "."
    )
    return port.finding(check, WARNING, "every GPU is on another NUMA node (SYS)", expected, remedy)


def _nearest(distances: Mapping[str, Mapping[str, str | None]], device: str | None) -> str | None:
    """The distance of the nearest GPU to a device; None if it is not known."""
    known = [distance for of_gpu in distances.values() if (distance := of_gpu.get(device or "")) in DISTANCES]
    return min(known, key=DISTANCES.index, default=None)
