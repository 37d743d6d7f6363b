# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the causes of a failed job on a host: its GPUs, their driver, and the paths between GPUs and NICs."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import PEERMEM_MODULES
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import FABRIC_MANAGER
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.gpu.gpu import switch_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Answer, Scene, confirmed, excluded, unknown
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed

_CUDA_OF_NCCL = re.compile(r"\+cuda([0-9]{1,2})")
#: Major version of CUDA → the oldest NVIDIA driver for it (CUDA's release notes, minor version compatibility).
_DRIVER_OF_CUDA = {11: 450, 12: 525, 13: 580}


def _loaded_peermem(scene: Scene) -> list[str] | None:
    """The loaded modules for peer memory; None if that was not read."""
    stack = scene.facts.stack
    return None if stack is None else sorted(set(PEERMEM_MODULES) & set(stack.modules))


def no_gpu_path(scene: Scene) -> Answer:
    """Whether GPU memory cannot be registered at all."""
    ways, gpus = scene.facts.gpudirect, scene.facts.gpus
    if ways is None or gpus is None:
        return unknown("the GPUs were not read")
    if not gpus:
        return unknown("the host has no NVIDIA GPU now")
    loaded = _loaded_peermem(scene)
    if loaded or ways.dmabuf.possible:
        return excluded(f"{loaded[0]} is loaded" if loaded else "DMA-BUF is possible")
    why = "; ".join([*ways.dmabuf.why_not, *ways.peermem.why_not])
    if ways.dmabuf.possible is None:
        return unknown(why)
    return confirmed(f"neither nvidia_peermem nor DMA-BUF: {why or 'nvidia_peermem is not loaded'}")


def peermem_alone(scene: Scene) -> Answer:
    """Whether NCCL may not use DMA-BUF while nvidia_peermem is not loaded."""
    off = [where for value, where in scene.variable("NCCL_DMABUF_ENABLE") if value == "0"]
    if not off:
        return excluded("NCCL_DMABUF_ENABLE is not 0")
    loaded = _loaded_peermem(scene)
    if loaded is None:
        return unknown(f"NCCL_DMABUF_ENABLE=0 by {off[0]}; whether nvidia_peermem is loaded was not read")
    observed = f"NCCL_DMABUF_ENABLE=0 by {off[0]}, and nvidia_peermem is {'loaded' if loaded else 'not loaded'}"
    return excluded(observed) if loaded else confirmed(observed)


def gpu_driver(scene: Scene) -> Answer:
    """Whether NVIDIA's driver is missing, differs from libcuda, or is too old for the CUDA that NCCL was built with."""
    facts = scene.facts
    if facts.gpus is None:
        return unknown("the GPUs were not read")
    if facts.gpu_driver is None:
        return confirmed("the NVIDIA driver is not loaded" if facts.gpus else "the host has no NVIDIA GPU")
    version, cuda = facts.gpu_driver.version, facts.gpu_support.cuda if facts.gpu_support else None
    if cuda is not None and version is not None and cuda != version:
        return confirmed(f"driver {version} is loaded, but libcuda is {cuda}")
    wanted = max((int(found[1]) for each in scene.log.context.versions for found in [_CUDA_OF_NCCL.search(each)] if found), default=None)
    if version is None or wanted not in _DRIVER_OF_CUDA:
        return unknown(f"driver {version or 'of unknown version'}; the log does not contain the job's CUDA version")
    least = _DRIVER_OF_CUDA[wanted]
    observed = f"driver {version}; NCCL is built for CUDA {wanted}, which needs {least}"
    return confirmed(observed) if int(version.split(".")[0]) < least else excluded(observed)


def fabric_manager(scene: Scene) -> Answer:
    support, driver, unit = scene.facts.gpu_support, scene.facts.gpu_driver, (scene.facts.units or {}).get(FABRIC_MANAGER)
    switches = switch_words(support)
    if switches == "":
        return excluded("no NVSwitch is on the PCI bus, and no NIC leads to one")
    if support is None or unit is None:
        return unknown("NVSwitches and Fabric Manager were not read")
    if not unit.active:
        return confirmed(f"{FABRIC_MANAGER} is not active, with {switches}")
    versions = support.fabric_manager, driver.version if driver else None
    if None not in versions and versions[0] != versions[1]:
        return confirmed(f"Fabric Manager {versions[0]} with driver {versions[1]}")
    return excluded(f"{FABRIC_MANAGER} is active")


def gpu_lost(scene: Scene) -> Answer:
    gpus = scene.facts.gpus
    if gpus is None:
        return unknown("the GPUs were not read")
    lost = [gpu.address for gpu in gpus if gpu.pci is None]
    return confirmed(f"{listed(lost)} fell off the bus") if lost else excluded(f"{len(gpus)} GPUs are on the bus")


def gpu_load(scene: Scene) -> Answer:
    """The other processes that hold GPU memory now, which may not be those at the time of the job."""
    processes = scene.facts.load.gpu_processes if scene.facts.load else None
    if processes is None:
        return unknown("the processes on the GPUs were not read")
    return unknown(f"{len(processes)} processes hold GPUs now, which may be this job" if processes else "no process holds a GPU now")
