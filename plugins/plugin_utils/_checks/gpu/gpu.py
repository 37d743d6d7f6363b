# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the gpu stage asks of a host: a path between GPU and NIC, and NVIDIA's parts of one version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import PEERMEM_MODULES
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import FABRIC_MANAGER
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpudirect import DMABUF_GPU_DRIVER
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import Gpu, GpuDriver
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.support import GpuSupport
from ansible_collections.rdma.cluster.plugins.module_utils._pci.distance import DISTANCES
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.pcie_settings import NO_DISTANCE, gives_no_distance
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

_NVIDIA = reads.file("/proc/driver/nvidia/version", absent_means="the driver is not loaded, which is an error")
declare(
    {
        "gpu.driver": Check(
            "gpu",
            "the NVIDIA driver, for every GPU on the bus",
            "`/proc/driver/nvidia`, PCI",
            "install the driver; `dmesg | grep -iE 'nvrm|xid'`",
            sources=(
                _NVIDIA,
                reads.but(reads.GPUS, absent_means="a GPU that the driver has and the bus has not is lost, which is an error"),
                reads.file("/proc/driver/nvidia/gpus/*/information", absent_means="the driver does not drive the GPU, which is an error"),
            ),
        ),
        "gpu.fabricmanager": Check(
            "gpu",
            "Fabric Manager where there are NVSwitches",
            "PCI class 0680 of NVIDIA, product data (VPD) of InfiniBand NICs, systemd, dpkg or `nv-fabricmanager --version`",
            "install the driver's version; `systemctl enable --now nvidia-fabricmanager`",
            sources=(
                reads.UNITS,
                reads.any_of(reads.DPKG, reads.command("/usr/bin/nv-fabricmanager")),
                reads.file(f"{reads.GPUS.names[0]}/*/modalias", absent_means="older kernels have none; then the class is read"),
                _NVIDIA,
            ),
        ),
        "gpu.cuda": Check(
            "gpu",
            "libcuda is the driver's",
            "what `libcuda.so.1` leads to",
            "reboot after an upgrade; packages of one version",
            sources=(reads.link("/usr/lib/*/libcuda.so.1", absent_means="the library is not there, which is an error"), _NVIDIA),
        ),
        "gpu.path": Check(
            "gpu",
            "the path between GPU and NIC, and why it is that one",
            "GPU driver, kernel, rdma-core, symbols of the RDMA stack, loaded modules",
            "do what the finding says would help, or `rdma_gpudirect.path: none`",
            sources=(_NVIDIA, reads.RELEASE, reads.link("/usr/lib/*/libibverbs.so.1")),
        ),
        "gpu.nics": Check(
            "gpu",
            "each GPU: a NIC of a compute rail on its NUMA node; NICs that serve as many GPUs each",
            "the paths of GPUs and NICs on the PCI tree, NUMA nodes",
            "`nvidia-smi topo -m`; move NICs, or plan those that are nearer",
            sources=(
                reads.GPUS,
                reads.DEVICES,
                reads.file(
                    f"{reads.PCI}/numa_node",
                    absent_means="what is below one host bridge is near without it; else how far it is, is unknown",
                ),
            ),
        ),
    }
)

STAGE = "gpu"
SUBJECTS = {
    "gpu.path": "path between GPU and NIC",
    "gpu.driver": "NVIDIA driver",
    "gpu.fabricmanager": "Fabric Manager",
    "gpu.cuda": "libcuda",
}
#: NICs may differ by so many GPUs; a GPU that is as near to several NICs counts as a part for each.
_UNEVEN = 0.5
_NAMED = 8
_NUMBER = re.compile(r"[0-9]{1,6}")


def check_gpu(host: str, intent: Intent, facts: Facts, plan: Mapping[str, str | None]) -> list[Finding]:
    """Findings `gpu.path`, `gpu.driver`, `gpu.fabricmanager`, `gpu.cuda` and `gpu.nics` of one host.

    plan: what gpudirect_path makes of intent and facts. Of one cause there is one error: without the driver, the rest is not looked at.
    """
    return [*_parts(host, intent, facts, plan), check_nics(host, intent, facts)]


def _parts(host: str, intent: Intent, facts: Facts, plan: Mapping[str, str | None]) -> list[Finding]:
    gpus = facts.gpus
    if gpus is None:
        todo = f"Read {host} with the subset gpus."
        return [Finding(STAGE, check, host, subject, UNKNOWN, "not read", "known", todo) for check, subject in SUBJECTS.items()]
    if not gpus:
        return [Finding(STAGE, check, host, subject, NOT_APPLICABLE, "no NVIDIA GPU", "") for check, subject in SUBJECTS.items()]
    least = (intent.get("gpudirect") or {}).get("driver_version")
    driver = _driver(host, gpus, facts.gpu_driver, least)
    if facts.gpu_driver is None:
        rest = [check for check in SUBJECTS if check != "gpu.driver"]
        why = "the NVIDIA driver is not loaded: gpu.driver says so"
        return [driver, *(Finding(STAGE, check, host, SUBJECTS[check], NOT_APPLICABLE, why, "") for check in rest)]
    version = facts.gpu_driver.version
    return [_path(host, facts, plan), driver, _fabric_manager(host, facts, version), _cuda(host, facts.gpu_support, version)]


def check_nics(host: str, intent: Intent, facts: Facts) -> Finding:
    """Finding `gpu.nics`: each GPU reaches a NIC of a compute rail within its NUMA node, and the NICs serve as many GPUs each."""
    expected = "for each GPU a NIC of a compute rail on its NUMA node, and as many GPUs for each NIC"
    gpus = facts.gpus
    if gpus is None:
        return _nics(host, UNKNOWN, "the GPUs were not read", expected, f"Read {host} with the subset gpus.")
    rails = [rail for rail in resolve(intent.get("rails") or (), facts) if rail.rail["role"] == "compute"]
    # Both ports of a device may be rails.
    found = [rail.device for rail in rails if rail.device is not None and not facts.devices[rail.device].software]
    nics = list(dict.fromkeys(found))
    distances = {gpu.address: (facts.distances or {}).get(gpu.address, {}) for gpu in gpus}
    nearest = {gpu: _nearest_nics(of_gpu, nics) for gpu, of_gpu in distances.items()}
    untold = [gpu for gpu, near in nearest.items() if near is None]
    reasons = {
        "no NVIDIA GPU": not gpus,
        "no compute rail has a NIC": not nics,
        NO_DISTANCE: gives_no_distance(facts),
    }
    if why_not := next((reason for reason, holds in reasons.items() if holds), None):
        return _nics(host, NOT_APPLICABLE, why_not, expected)
    if untold:
        remedy = f"Run `nvidia-smi topo -m` on {host}; the BIOS may not tell the NUMA nodes of PCI devices."
        return _nics(host, UNKNOWN, f"how far {_some(untold)} is from the NICs is not known", expected, remedy)
    near = {gpu: each for gpu, each in nearest.items() if each is not None}
    shares = {nic: sum(1 / len(names) for _far, names in near.values() if nic in names) for nic in nics}
    served = ", ".join(f"{nic} {share:.3g}" for nic, share in sorted(shares.items()))
    far = [gpu for gpu, (distance, _names) in near.items() if distance == "SYS"]
    if far:
        observed = f"{len(far)} of {len(gpus)} GPUs reach all NICs across sockets only (SYS): {_some(far)}; GPUs for each NIC: {served}"
        remedy = f"1. See the distances: `nvidia-smi topo -m` on {host}. 2. Plan NICs at the socket of these GPUs, or move cards there."
        return _nics(host, WARNING, observed, expected, remedy)
    if max(shares.values()) - min(shares.values()) > _UNEVEN:
        observed = f"the NICs serve GPUs unevenly, by distance: {served}"
        remedy = f"1. See which NIC is near which GPU: `nvidia-smi topo -m` on {host}. 2. Plan the nearest NICs as rails."
        return _nics(host, WARNING, observed, expected, remedy)
    worst = max((distance for distance, _names in near.values()), key=DISTANCES.index)
    return _nics(host, OK, f"{worst} at most from each GPU to its nearest NIC; GPUs for each NIC: {served}", expected)


def _nics(host: str, *status_and_words: str) -> Finding:
    return Finding(STAGE, "gpu.nics", host, "GPUs and their NICs", *status_and_words)


def _nearest_nics(distances: Mapping[str, str | None], nics: Sequence[str]) -> tuple[str, list[str]] | None:
    """How far the nearest NICs are from a GPU, and which; None where a distance is not known and could be nearer."""
    known = {nic: distance for nic in nics if (distance := distances.get(nic)) in DISTANCES}
    if not known:
        return None
    least = min(known.values(), key=lambda each: DISTANCES.index(str(each)))
    if len(known) < len(nics) and least == DISTANCES[-1]:
        return None
    return str(least), [nic for nic, distance in known.items() if distance == least]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _finding(check: str, host: str, *status_and_words: str) -> Finding:
    """The words: observed, expected, and the remedy if there is one."""
    return Finding(STAGE, check, host, SUBJECTS[check], *status_and_words)


def _path(host: str, facts: Facts, plan: Mapping[str, str | None]) -> Finding:
    expected = "a path between GPU and NIC that registers memory"
    path, why, refused = plan["path"], str(plan["why"]), plan["refused"]
    if refused is not None:
        remedy = f"Do on {host} what would help, or set rdma_gpudirect.path: none for it, which makes NCCL copy through the host's memory."
        status = UNKNOWN if " is not known to work: " in refused and " cannot work: " not in refused else ERROR
        return _finding("gpu.path", host, status, refused, expected, remedy)
    if path is None:
        return _finding("gpu.path", host, NOT_APPLICABLE, why, expected)
    if path == "peermem" and not set(PEERMEM_MODULES) & set(stack_of(facts).modules):
        observed = f"{path}, and nvidia_peermem is not loaded"
        return _finding("gpu.path", host, ERROR, observed, expected, f"Run the gpu stage for {host}; see `modprobe nvidia_peermem` there.")
    return _finding("gpu.path", host, OK, f"{path}: {why}", expected)


def _driver(host: str, gpus: Sequence[Gpu], driver: GpuDriver | None, least: str | None) -> Finding:
    expected = f"loaded, {least} or newer, for every GPU" if least else "loaded, for every GPU"
    if driver is None:
        remedy = f"Install NVIDIA's driver on {host}, or see `modprobe nvidia` and `dmesg | grep -i nvrm` there: this collection does not."
        return _finding("gpu.driver", host, ERROR, f"not loaded; {len(gpus)} GPUs are on the bus", expected, remedy)
    version = driver.version
    lost = [gpu.address for gpu in gpus if gpu.pci is None]
    unknown = [gpu.address for gpu in gpus if gpu.pci is not None and gpu.model is None]
    if lost or unknown:
        fell = f"{', '.join(lost)} fell off the bus" if lost else ""
        idle = f"it does not drive {', '.join(unknown)}" if unknown else ""
        observed = f"{version or 'unknown version'}; {'; '.join(filter(None, (fell, idle)))}"
        return _finding("gpu.driver", host, ERROR, observed, expected, f"See `dmesg | grep -iE 'nvrm|xid'` on {host}, and reboot it.")
    if version is None:
        return _finding("gpu.driver", host, UNKNOWN, "of unknown version", expected, f"Look at /proc/driver/nvidia/version on {host}.")
    if least is not None and _numbers(version) < _numbers(least):
        return _finding("gpu.driver", host, ERROR, version, expected, f"Install NVIDIA driver {least} or newer on {host}, and reboot it.")
    return _finding("gpu.driver", host, OK, version, expected)


def switch_words(support: GpuSupport | None) -> str | None:
    """What of NVSwitches a host has: "4 NVSwitches"; "" where it has none; None where that was not read. support: gpu_support."""
    if support is None:
        return None
    counts = {"NVSwitches": support.nvswitches, "bridges to NVSwitches": support.nvswitch_bridges}
    return next((f"{count} {what}" for what, count in counts.items() if count), "")


def _fabric_manager(host: str, facts: Facts, version: str | None) -> Finding:
    """version: of the driver."""
    check, support, switches = "gpu.fabricmanager", facts.gpu_support, switch_words(facts.gpu_support)
    expected = f"active, enabled, and of the driver's version, {version}"
    if support is None or switches is None:
        return _finding(check, host, UNKNOWN, "whether there are NVSwitches was not read", expected, f"Read {host} with the subset gpus.")
    if not switches:
        return _finding(check, host, NOT_APPLICABLE, "no NVSwitch on the PCI bus, and no NIC that leads to one", expected)
    unit = (facts.units or {}).get(FABRIC_MANAGER)
    if unit is None:
        return _finding(
            check, host, UNKNOWN, f"{FABRIC_MANAGER} was not read", expected, f"See `systemctl status {FABRIC_MANAGER}` on {host}."
        )
    status, observed, remedy = _of_switches(host, switches, unit, support.fabric_manager, version)
    return _finding(check, host, status, observed, expected, remedy)


def _of_switches(host: str, switches: str, unit: UnitState, installed: str | None, version: str | None) -> tuple[str, str, str]:
    """Status, what was observed, and the remedy, on a host with NVSwitches. installed, version: of Fabric Manager and the driver."""
    if installed is not None and version is not None and installed != version:
        remedy = f"Install Fabric Manager {version} on {host}: it refuses every other driver; then `systemctl restart {FABRIC_MANAGER}`."
        return ERROR, f"version {installed} beside driver {version}", remedy
    if not unit.active:
        remedy = (
            f"Without it no program gets a GPU. Read `journalctl -u {FABRIC_MANAGER}` on {host}; `systemctl enable --now {FABRIC_MANAGER}`."
        )
        return ERROR, f"not active, with {switches}", remedy
    if installed is None or version is None:
        remedy = f"Compare `nv-fabricmanager --version` and /proc/driver/nvidia/version on {host}."
        return UNKNOWN, "active, of unknown version", remedy
    if not unit.enabled:
        return WARNING, f"{installed}, active, and not started at boot", f"Run `systemctl enable {FABRIC_MANAGER}` on {host}."
    return OK, f"{installed}, active", ""


def _cuda(host: str, support: GpuSupport | None, version: str | None) -> Finding:
    """version: of the driver."""
    expected = f"of the driver's version, {version}"
    if support is None:
        return _finding("gpu.cuda", host, UNKNOWN, "not read", expected, f"Read {host} with the subset gpus.")
    cuda = support.cuda
    if cuda is None:
        remedy = f"Install the user space of NVIDIA driver {version} on {host} (Ubuntu: libnvidia-compute; RHEL: nvidia-driver-cuda-libs)."
        return _finding("gpu.cuda", host, ERROR, "no libcuda.so.1 in the usual folders", expected, remedy)
    if version is None:
        return _finding("gpu.cuda", host, UNKNOWN, f"{cuda}; that of the driver is not known", expected, "See gpu.driver.")
    if cuda != version:
        remedy = f"Reboot {host} if the driver was upgraded; else install the driver's and libcuda's packages of one version."
        return _finding("gpu.cuda", host, ERROR, f"{cuda} beside driver {version}", expected, remedy)
    dmabuf = "" if _numbers(version) >= DMABUF_GPU_DRIVER else "; too old for DMA-BUF, which needs CUDA 11.7, driver 515"
    return _finding("gpu.cuda", host, OK, f"{cuda}{dmabuf}", expected)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(version))
