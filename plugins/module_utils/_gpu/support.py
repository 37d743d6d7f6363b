# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Components of a host with NVIDIA GPUs that must match the kernel driver's version: libcuda, Fabric Manager.

They are read without nvidia-smi, which takes seconds, and hangs if a GPU hangs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import DPKG_STATUS, HELD, INSTALLED
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PCI_DEVICES

FABRIC_MANAGER = "/usr/bin/nv-fabricmanager"
#: The folders in which the loader finds libraries, without reading its cache.
LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
# Vendor 0x10de; class 0x06 (bridge), subclass 0x80 (other).
_NVSWITCH = re.compile(r"pci:v000010DEd[0-9A-F]{8}sv[0-9A-F]{8}sd[0-9A-F]{8}bc06sc80i[0-9A-F]{2}")
# Vendor 0x15b3 (NVIDIA's NICs); class 0x02 (network), subclass 0x07 (InfiniBand).
_INFINIBAND = re.compile(r"pci:v000015B3d[0-9A-F]{8}sv[0-9A-F]{8}sd[0-9A-F]{8}bc02sc07i[0-9A-F]{2}")
#: In the vital product data of a ConnectX-7 that manages NVSwitches, the field SMDL; nvidia-fabricmanager-start.sh looks for it too.
SWITCH_MANAGEMENT = b"SW_MNG"
_NUMBERS = r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}"
_CUDA = re.compile(rf"libcuda\.so\.({_NUMBERS})")
_PACKAGE = re.compile(r"^Package: nvidia-fabricmanager(?:-[0-9]{3})?$", re.MULTILINE)
# 550.54.15-1, 1:580.159.03-0ubuntu0.24.04.1
_PACKAGE_VERSION = re.compile(rf"(?:[0-9]+:)?({_NUMBERS})(?![0-9.])")
_ANSWER = re.compile(rf"^[ \t]*Fabric Manager version is[ \t]*:[ \t]*({_NUMBERS})[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True)
class GpuSupport:
    """cuda: the version of the libcuda that programs find ("580.159.04"), None without one. nvswitches: on the PCI bus.

    fabric_manager: the version of Fabric Manager, None if it is not installed, not reported or not read (no NVSwitch).
    nvswitch_bridges: the ConnectX-7 through which a host reaches NVSwitches that are not on its bus (HGX B200 and B300).
    """

    cuda: str | None
    nvswitches: int
    fabric_manager: str | None
    nvswitch_bridges: int = 0


def parse_fabric_manager(text: str) -> str:
    """Parse `nv-fabricmanager --version` (450 to 580): "Fabric Manager version is : 535.161.08" between empty lines. Raises ParseError."""
    match = _ANSWER.search(text)
    if match is None:
        raise ParseError(f"no version of Fabric Manager: {quoted(text)}, expected a line 'Fabric Manager version is : 535.161.08'")
    return match[1]


def parse_fabric_manager_package(text: str) -> str | None:
    """Return the version of nvidia-fabricmanager (or nvidia-fabricmanager-550) in dpkg's status file, without epoch and revision."""
    for match in _PACKAGE.finditer(text):
        stanza = text[match.start() :].split("\n\n", 1)[0]
        fields = dict(re.findall(r"^(Status|Version): (.*)$", stanza, re.MULTILINE))
        version = _PACKAGE_VERSION.match(fields.get("Version", ""))
        if fields.get("Status") in (INSTALLED, HELD) and version is not None:
            return version[1]
    return None


def read_gpu_support(sys: SysRoot, runner: Runner | None) -> GpuSupport:
    """Read a host that has GPUs. runner: runs Fabric Manager once for its version if no package database has it."""
    nvswitches = sum(_is_nvswitch(sys, name) for name in sys.list_dir(PCI_DEVICES))
    bridges = 0 if nvswitches else sum(_is_nvswitch_bridge(sys, name) for name in sys.list_dir(PCI_DEVICES))
    version = _read_fabric_manager(sys, runner) if nvswitches or bridges else None
    return GpuSupport(read_cuda_version(sys), nvswitches, version, bridges)


def read_cuda_version(sys: SysRoot) -> str | None:
    """Return the version in the name of the file that libcuda.so.1 leads to, also through Debian's alternatives."""
    files = (sys.resolve(f"{folder}/libcuda.so.1") for folder in LIBRARY_FOLDERS)
    matches = (_CUDA.fullmatch(file.rpartition("/")[2]) for file in files if file is not None)
    return next((match[1] for match in matches if match is not None), None)


def _is_nvswitch(sys: SysRoot, name: str) -> bool:
    return _NVSWITCH.fullmatch(sys.text(f"{PCI_DEVICES}/{name}/modalias") or "") is not None


def _is_nvswitch_bridge(sys: SysRoot, name: str) -> bool:
    """Return whether a NIC serves NVSwitches; False if its product data cannot be read."""
    if not _INFINIBAND.fullmatch(sys.text(f"{PCI_DEVICES}/{name}/modalias") or ""):
        return False
    try:
        return SWITCH_MANAGEMENT in (sys.read_bytes(f"{PCI_DEVICES}/{name}/vpd") or b"")
    except OSError:
        return False


def _read_fabric_manager(sys: SysRoot, runner: Runner | None) -> str | None:
    packaged = parse_fabric_manager_package(sys.read(DPKG_STATUS) or "")
    if packaged is not None or runner is None or not sys.exists(FABRIC_MANAGER):
        return packaged
    try:
        done = runner.run([FABRIC_MANAGER, "--version"])
        return parse_fabric_manager(f"{done.stdout}\n{done.stderr}")
    except (CommandError, ParseError):
        return None
