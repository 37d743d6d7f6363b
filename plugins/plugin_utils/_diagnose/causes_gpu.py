# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a cause of a failed job holds on a host: its GPUs, their driver, and the ways between them and NICs."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import PEERMEM_MODULES
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import FABRIC_MANAGER
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.gpu.gpu import switch_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Answer, Scene, confirmed, excluded, unknown
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import at, elements, listed, part

_CUDA_OF_NCCL = re.compile(r"\+cuda([0-9]{1,2})")
#: From this NVIDIA driver on a CUDA of so many runs (CUDA's release notes, minor version compatibility).
_DRIVER_OF_CUDA = {11: 450, 12: 525, 13: 580}


def no_gpu_path(scene: Scene) -> Answer:
    """Whether GPU memory can be registered at all."""
    ways = part(scene.facts, "gpudirect")
    if not ways or at(scene.facts, "gpus") is None:
        return unknown("the GPUs were not read")
    if not elements(scene.facts, "gpus"):
        return unknown("the host has no NVIDIA GPU now")
    loaded = sorted(set(PEERMEM_MODULES) & set(part(scene.facts, "stack", "modules")))
    dmabuf = part(ways, "dmabuf")
    if loaded or dmabuf.get("possible"):
        return excluded(f"{loaded[0]} is loaded" if loaded else "DMA-BUF is possible")
    why = "; ".join([*elements(dmabuf, "why_not"), *elements(ways, "peermem", "why_not")])
    if dmabuf.get("possible") is None:
        return unknown(why)
    return confirmed(f"neither nvidia_peermem nor DMA-BUF: {why or 'nvidia_peermem is not loaded'}")


def peermem_alone(scene: Scene) -> Answer:
    """Whether NCCL is kept off DMA-BUF while nvidia_peermem is not there."""
    off = [where for value, where in scene.variable("NCCL_DMABUF_ENABLE") if value == "0"]
    if not off:
        return excluded("NCCL_DMABUF_ENABLE is not 0")
    loaded = sorted(set(PEERMEM_MODULES) & set(part(scene.facts, "stack", "modules")))
    if at(scene.facts, "stack", "modules") is None:
        return unknown(f"NCCL_DMABUF_ENABLE=0 by {off[0]}; whether nvidia_peermem is loaded was not read")
    said = f"NCCL_DMABUF_ENABLE=0 by {off[0]}, and nvidia_peermem is {'loaded' if loaded else 'not loaded'}"
    return excluded(said) if loaded else confirmed(said)


def gpu_driver(scene: Scene) -> Answer:
    """Whether NVIDIA's driver is there, of one version with libcuda, and new enough for the CUDA that NCCL was built with."""
    if at(scene.facts, "gpus") is None:
        return unknown("the GPUs were not read")
    version, cuda = at(scene.facts, "gpu_driver", "version"), at(scene.facts, "gpu_support", "cuda")
    if at(scene.facts, "gpu_driver") is None:
        return confirmed("the NVIDIA driver is not loaded") if elements(scene.facts, "gpus") else confirmed("the host has no NVIDIA GPU")
    if cuda is not None and version is not None and cuda != version:
        return confirmed(f"driver {version} is loaded, and libcuda is of {cuda}")
    wanted = max((int(found[1]) for each in scene.log.context.versions for found in [_CUDA_OF_NCCL.search(each)] if found), default=None)
    if version is None or wanted not in _DRIVER_OF_CUDA:
        return unknown(f"driver {version or 'of unknown version'}; which CUDA the job has, the log does not say")
    least = _DRIVER_OF_CUDA[wanted]
    said = f"driver {version}; NCCL is built for CUDA {wanted}, which needs {least}"
    return confirmed(said) if int(version.split(".")[0]) < least else excluded(said)


def fabric_manager(scene: Scene) -> Answer:
    switches, unit = switch_words(at(scene.facts, "gpu_support")), at(scene.facts, "units", FABRIC_MANAGER)
    if switches is None or (switches and unit is None):
        return unknown("NVSwitches and Fabric Manager were not read")
    if not switches:
        return excluded("no NVSwitch is on the PCI bus, and no NIC leads to one")
    versions = at(scene.facts, "gpu_support", "fabric_manager"), at(scene.facts, "gpu_driver", "version")
    if not unit["active"]:
        return confirmed(f"{FABRIC_MANAGER} is not active, with {switches}")
    if None not in versions and versions[0] != versions[1]:
        return confirmed(f"Fabric Manager {versions[0]} beside driver {versions[1]}")
    return excluded(f"{FABRIC_MANAGER} is active")


def gpu_lost(scene: Scene) -> Answer:
    if at(scene.facts, "gpus") is None:
        return unknown("the GPUs were not read")
    lost = [str(at(gpu, "address")) for gpu in elements(scene.facts, "gpus") if at(gpu, "pci") is None]
    return confirmed(f"{listed(lost)} fell off the bus") if lost else excluded(f"{len(elements(scene.facts, 'gpus'))} GPUs are on the bus")


def gpu_load(scene: Scene) -> Answer:
    """Who else holds memory of the GPUs; now, which is not then."""
    processes = elements(scene.facts, "load", "gpu_processes")
    if at(scene.facts, "load", "gpu_processes") is None:
        return unknown("the processes on the GPUs were not read")
    return unknown(f"{len(processes)} processes hold GPUs now, which may be this job" if processes else "no process holds a GPU now")
