# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the gpu gate: a path between GPU and NIC, NVIDIA's components in one version, and NICs near the GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
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
            "install the driver; check `dmesg | grep -iE 'nvrm|xid'`",
            sources=(
                _NVIDIA,
                reads.but(reads.GPUS, absent_means="a GPU of the driver that is not on the bus is lost, which is an error"),
                reads.file("/proc/driver/nvidia/gpus/*/information", absent_means="the driver does not use the GPU, which is an error"),
            ),
        ),
        "gpu.fabricmanager": Check(
            "gpu",
            "Fabric Manager on hosts with NVSwitches",
            "PCI class 0680 of NVIDIA, product data (VPD) of InfiniBand NICs, systemd, dpkg or `nv-fabricmanager --version`",
            "install the version of the driver; `systemctl enable --now nvidia-fabricmanager`",
            sources=(
                reads.UNITS,
                reads.any_of(reads.DPKG, reads.command("/usr/bin/nv-fabricmanager")),
                reads.file(f"{reads.GPUS.names[0]}/*/modalias", absent_means="older kernels have none; then the class is read"),
                _NVIDIA,
            ),
        ),
        "gpu.cuda": Check(
            "gpu",
            "whether libcuda has the version of the driver",
            "the target of `libcuda.so.1`",
            "reboot after an upgrade; install packages of one version",
            sources=(reads.link("/usr/lib/*/libcuda.so.1", absent_means="the library is missing, which is an error"), _NVIDIA),
        ),
        "gpu.path": Check(
            "gpu",
            "the path between GPU and NIC, and why it was chosen",
            "GPU driver, kernel, rdma-core, symbols of the RDMA stack, loaded modules",
            "apply the fix that the finding names, or set `rdma_gpudirect.path: none`",
            sources=(_NVIDIA, reads.RELEASE, reads.link("/usr/lib/*/libibverbs.so.1")),
        ),
        "gpu.nics": Check(
            "gpu",
            "whether each GPU has a NIC of a compute rail on its NUMA node, and each NIC serves equally many GPUs",
            "the paths of GPUs and NICs in the PCI tree, NUMA nodes",
            "run `nvidia-smi topo -m`; move NICs, or plan nearer ones",
            sources=(
                reads.GPUS,
                reads.DEVICES,
                reads.file(
                    f"{reads.PCI}/numa_node",
                    absent_means="devices below one host bridge are near anyway; other distances are then unknown",
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
#: The GPUs by which NICs may differ; a GPU that is equally near to several NICs counts in parts.
_UNEVEN = 0.5
_NAMED = 8
_NUMBER = re.compile(r"[0-9]{1,6}")


def check_gpu(host: str, intent: Intent, facts: Facts, plan: Mapping[str, str | None]) -> list[Finding]:
    """Findings `gpu.path`, `gpu.driver`, `gpu.fabricmanager`, `gpu.cuda` and `gpu.nics` of one host.

    plan: the result of gpudirect_path. A missing driver is one error: the other checks are then not applicable.
    """
    return [*_parts(host, intent, facts, plan), check_nics(host, intent, facts)]


def _parts(host: str, intent: Intent, facts: Facts, plan: Mapping[str, str | None]) -> list[Finding]:
    gpus = facts.gpus
    if gpus is None:
        todo = f"Read the facts of {host} with the subset gpus."
        return [Finding(STAGE, check, host, subject, UNKNOWN, "not read", "known", todo) for check, subject in SUBJECTS.items()]
    if not gpus:
        return [Finding(STAGE, check, host, subject, NOT_APPLICABLE, "no NVIDIA GPU", "") for check, subject in SUBJECTS.items()]
    least = (intent.get("gpudirect") or {}).get("driver_version")
    driver = _driver(host, gpus, facts.gpu_driver, least)
    if facts.gpu_driver is None:
        rest = [check for check in SUBJECTS if check != "gpu.driver"]
        why = "the NVIDIA driver is not loaded: see gpu.driver"
        return [driver, *(Finding(STAGE, check, host, SUBJECTS[check], NOT_APPLICABLE, why, "") for check in rest)]
    version = facts.gpu_driver.version
    return [_path(host, facts, plan), driver, _fabric_manager(host, facts, version), _cuda(host, facts.gpu_support, version)]


def check_nics(host: str, intent: Intent, facts: Facts) -> Finding:
    """Finding `gpu.nics`: each GPU has a NIC of a compute rail on its NUMA node, and each NIC serves equally many GPUs."""
    expected = "for each GPU a NIC of a compute rail on its NUMA node, and equally many GPUs for each NIC"
    gpus = facts.gpus
    if gpus is None:
        return _nics(host, UNKNOWN, "the GPUs were not read", expected, f"Read the facts of {host} with the subset gpus.")
    rails = [rail for rail in resolve(intent.get("rails") or (), facts) if rail.rail["role"] == "compute"]
    # Both ports of a device may be rails.
    found = [rail.device for rail in rails if rail.device is not None and not facts.devices[rail.device].software]
    nics = list(dict.fromkeys(found))
    distances = {gpu.address: (facts.distances or {}).get(gpu.address, {}) for gpu in gpus}
    nearest = {gpu: _nearest_nics(of_gpu, nics) for gpu, of_gpu in distances.items()}
    unlocated = [gpu for gpu, near in nearest.items() if near is None]
    reasons = {
        "no NVIDIA GPU": not gpus,
        "no compute rail has a NIC": not nics,
        NO_DISTANCE: gives_no_distance(facts),
    }
    if why_not := next((reason for reason, holds in reasons.items() if holds), None):
        return _nics(host, NOT_APPLICABLE, why_not, expected)
    if unlocated:
        remedy = f"Run `nvidia-smi topo -m` on {host}. Its BIOS may not report the NUMA nodes of PCI devices."
        return _nics(host, UNKNOWN, f"the distance of {first_of(unlocated, _NAMED)} to the NICs is not known", expected, remedy)
    near = {gpu: each for gpu, each in nearest.items() if each is not None}
    shares = {nic: sum(1 / len(names) for _far, names in near.values() if nic in names) for nic in nics}
    served = ", ".join(f"{nic} {share:.3g}" for nic, share in sorted(shares.items()))
    far = [gpu for gpu, (distance, _names) in near.items() if distance == "SYS"]
    if far:
        named = first_of(far, _NAMED)
        observed = f"{len(far)} of {len(gpus)} GPUs reach every NIC only across sockets (SYS): {named}; GPUs for each NIC: {served}"
        remedy = f"1. On {host}, run `nvidia-smi topo -m` for the distances. 2. Plan NICs at the socket of these GPUs, or move cards there."
        return _nics(host, WARNING, observed, expected, remedy)
    if max(shares.values()) - min(shares.values()) > _UNEVEN:
        observed = f"the NICs serve GPUs unevenly, by distance: {served}"
        remedy = f"1. On {host}, run `nvidia-smi topo -m` to see which NIC is near which GPU. 2. Plan the nearest NICs as rails."
        return _nics(host, WARNING, observed, expected, remedy)
    worst = max((distance for distance, _names in near.values()), key=DISTANCES.index)
    return _nics(host, OK, f"{worst} at most from each GPU to its nearest NIC; GPUs for each NIC: {served}", expected)


def _nics(host: str, status: str, observed: str, expected: str, remedy: str = "") -> Finding:
    return Finding(STAGE, "gpu.nics", host, "GPUs and their NICs", status, observed, expected, remedy)


def _nearest_nics(distances: Mapping[str, str | None], nics: Sequence[str]) -> tuple[str, list[str]] | None:
    """The distance of the nearest NICs to a GPU, and their names; None if an unknown distance could be nearer."""
    known = {nic: distance for nic in nics if (distance := distances.get(nic)) in DISTANCES}
    if not known:
        return None
    least = min(known.values(), key=lambda each: DISTANCES.index(str(each)))
    if len(known) < len(nics) and least == DISTANCES[-1]:
        return None
    return str(least), [nic for nic, distance in known.items() if distance == least]


def _finding(check: str, host: str, *status_and_words: str) -> Finding:
    """Return a finding. status_and_words: status, observed, expected, and the remedy if there is one."""
    status, observed, expected, remedy = (*status_and_words, "")[:4]
    return Finding(STAGE, check, host, SUBJECTS[check], status, observed, expected, remedy)


def _path(host: str, facts: Facts, plan: Mapping[str, str | None]) -> Finding:
    expected = "a path between GPU and NIC that registers memory"
    path, why, refused = plan["path"], str(plan["why"]), plan["refused"]
    if refused is not None:
        remedy = f"1. Apply that fix on {host}. 2. Or set `rdma_gpudirect.path: none` for it: NCCL then copies through host memory."
        status = UNKNOWN if " is not known to work: " in refused and " cannot work: " not in refused else ERROR
        return _finding("gpu.path", host, status, refused, expected, remedy)
    if path is None:
        return _finding("gpu.path", host, NOT_APPLICABLE, why, expected)
    if path == "peermem" and not set(PEERMEM_MODULES) & set(stack_of(facts).modules):
        observed = f"{path}, but nvidia_peermem is not loaded"
        remedy = f"1. Run the gpu stage for {host}. 2. If it fails, run `modprobe nvidia_peermem` there and check `dmesg`."
        return _finding("gpu.path", host, ERROR, observed, expected, remedy)
    return _finding("gpu.path", host, OK, f"{path}: {why}", expected)


def _driver(host: str, gpus: Sequence[Gpu], driver: GpuDriver | None, least: str | None) -> Finding:
    expected = f"loaded, {least} or newer, for every GPU" if least else "loaded, for every GPU"
    if driver is None:
        remedy = (
            f"1. On {host}, install NVIDIA's driver, which this collection does not install. 2. If it is installed, run `modprobe nvidia` "
            "and check `dmesg | grep -i nvrm`."
        )
        return _finding("gpu.driver", host, ERROR, f"not loaded; {len(gpus)} GPUs are on the bus", expected, remedy)
    version = driver.version
    lost = [gpu.address for gpu in gpus if gpu.pci is None]
    unknown = [gpu.address for gpu in gpus if gpu.pci is not None and gpu.model is None]
    if lost or unknown:
        fell = f"{', '.join(lost)} fell off the bus" if lost else ""
        idle = f"it does not use {', '.join(unknown)}" if unknown else ""
        observed = f"{version or 'unknown version'}; {'; '.join(filter(None, (fell, idle)))}"
        return _finding("gpu.driver", host, ERROR, observed, expected, f"1. On {host}, check `dmesg | grep -iE 'nvrm|xid'`. 2. Reboot it.")
    if version is None:
        return _finding("gpu.driver", host, UNKNOWN, "of unknown version", expected, f"Run `cat /proc/driver/nvidia/version` on {host}.")
    if least is not None and _numbers(version) < _numbers(least):
        return _finding("gpu.driver", host, ERROR, version, expected, f"Install NVIDIA driver {least} or newer on {host}, and reboot it.")
    return _finding("gpu.driver", host, OK, version, expected)


def switch_words(support: GpuSupport | None) -> str | None:
    """The NVSwitches of a host in words: "4 NVSwitches"; "" if it has none; None if that was not read. support: gpu_support."""
    if support is None:
        return None
    counts = {"NVSwitches": support.nvswitches, "bridges to NVSwitches": support.nvswitch_bridges}
    return next((f"{count} {what}" for what, count in counts.items() if count), "")


def _fabric_manager(host: str, facts: Facts, version: str | None) -> Finding:
    """Finding `gpu.fabricmanager`. version: the driver's version."""
    check, support, switches = "gpu.fabricmanager", facts.gpu_support, switch_words(facts.gpu_support)
    expected = f"active, enabled, and the driver's version {version}"
    if support is None or switches is None:
        return _finding(check, host, UNKNOWN, "NVSwitches were not read", expected, f"Read the facts of {host} with the subset gpus.")
    if not switches:
        return _finding(check, host, NOT_APPLICABLE, "no NVSwitch on the PCI bus, and no NIC that leads to one", expected)
    unit = (facts.units or {}).get(FABRIC_MANAGER)
    if unit is None:
        return _finding(
            check, host, UNKNOWN, f"{FABRIC_MANAGER} was not read", expected, f"Run `systemctl status {FABRIC_MANAGER}` on {host}."
        )
    status, observed, remedy = _of_switches(host, switches, unit, support.fabric_manager, version)
    return _finding(check, host, status, observed, expected, remedy)


def _of_switches(host: str, switches: str, unit: UnitState, installed: str | None, version: str | None) -> tuple[str, str, str]:
    """Status, observed and remedy on a host with NVSwitches. installed: Fabric Manager's version; version: the driver's."""
    if installed is not None and version is not None and installed != version:
        remedy = (
            f"1. On {host}, install Fabric Manager {version}, the version of the driver: it refuses any other. "
            f"2. Run `systemctl restart {FABRIC_MANAGER}`."
        )
        return ERROR, f"version {installed} with driver {version}", remedy
    if not unit.active:
        remedy = (
            f"1. On {host}, run `systemctl enable --now {FABRIC_MANAGER}`: without it no program can use a GPU. "
            f"2. If it fails, check `journalctl -u {FABRIC_MANAGER}`."
        )
        return ERROR, f"not active, with {switches}", remedy
    if installed is None or version is None:
        remedy = f"On {host}, compare `nv-fabricmanager --version` with `cat /proc/driver/nvidia/version`."
        return UNKNOWN, "active, of unknown version", remedy
    if not unit.enabled:
        return WARNING, f"{installed}, active, but not started at boot", f"Run `systemctl enable {FABRIC_MANAGER}` on {host}."
    return OK, f"{installed}, active", ""


def _cuda(host: str, support: GpuSupport | None, version: str | None) -> Finding:
    """Finding `gpu.cuda`. version: the driver's version."""
    expected = f"the driver's version {version}"
    if support is None:
        return _finding("gpu.cuda", host, UNKNOWN, "not read", expected, f"Read the facts of {host} with the subset gpus.")
    cuda = support.cuda
    if cuda is None:
        remedy = f"Install the user space of NVIDIA driver {version} on {host} (Ubuntu: libnvidia-compute; RHEL: nvidia-driver-cuda-libs)."
        return _finding("gpu.cuda", host, ERROR, "no libcuda.so.1 in the usual folders", expected, remedy)
    if version is None:
        return _finding("gpu.cuda", host, UNKNOWN, f"{cuda}; the driver's version is not known", expected, "See gpu.driver.")
    if cuda != version:
        remedy = f"1. If the driver was upgraded, reboot {host}. 2. Else install driver and libcuda packages of the same version there."
        return _finding("gpu.cuda", host, ERROR, f"{cuda} with driver {version}", expected, remedy)
    dmabuf = "" if _numbers(version) >= DMABUF_GPU_DRIVER else "; too old for DMA-BUF, which needs CUDA 11.7, driver 515"
    return _finding("gpu.cuda", host, OK, f"{cuda}{dmabuf}", expected)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(version))
