# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The planned path between GPUs and NICs of a host: the request of rdma_gpudirect.path, and the paths that the facts allow."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import PEERMEM_MODULES
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpudirect import PEER_SYMBOL, GpuDirect, Possibility
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.peermem import MODULE, boot_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import stack_of

AUTO, DMABUF, PEERMEM, NONE = "auto", "dmabuf", "peermem", "none"
#: In order of preference: DMA-BUF is the kernel's own, and needs no module that must match both drivers.
PATHS = (DMABUF, PEERMEM)
NAMES = {DMABUF: "DMA-BUF", PEERMEM: "nvidia_peermem"}
#: Part of a reason of possible_paths → the fix.
_HELP = {
    "the NVIDIA driver is not loaded": "install NVIDIA's driver, and load it",
    "is not the open one": "install the open kernel modules of NVIDIA's driver, 515 or newer",
    "NVIDIA driver ": "install NVIDIA's driver 515 or newer",
    "kernel ": "run a kernel of 5.12 or newer",
    "rdma-core": "install rdma-core 34 or newer",
    PEER_SYMBOL: "install MLNX_OFED or DOCA-OFED (rdma_driver.stack), which have it",
}


def gpudirect_path(intent: Intent, facts: Facts) -> dict[str, str | None]:
    """The path of a host: {"path": "dmabuf", "peermem" or None, "why": a sentence, "refused": None, or a sentence with the reason}.

    A path that is not known to work is refused like one that cannot work. A host without GPUs has no path and no error. The same holds
    for a host with only storage rails if no path can work and none is requested explicitly: such rails carry no GPU traffic.
    """
    requested = str((intent.get("gpudirect") or {}).get("path") or AUTO)
    judged = facts.gpudirect
    if judged is not None and not facts.gpus:
        return _plan(None, "no NVIDIA GPU")
    if requested == NONE:
        return _plan(None, f"rdma_gpudirect.path is none{_left(facts)}")
    if judged is None:
        return _plan(None, "not known", refused="The facts do not contain GPUs: read the facts with the subset gpus.")
    candidates = PATHS if requested == AUTO else (requested,)
    chosen = next((path for path in candidates if _of(judged, path).possible), None)
    if chosen is None and requested == AUTO and not _computes(intent):
        return _plan(None, "no path can work, and no compute rail needs one")
    if chosen is None:
        return _plan(None, "no path can work", refused=_refusal(requested, candidates, judged))
    return _plan(chosen, _why(chosen, requested, judged))


def gpudirect_differs(intent: Intent, facts: Facts) -> bool:
    """True unless the facts prove that the path's module is loaded, and is loaded at boot only if it is needed."""
    loaded = stack_of(facts).modules
    needed = gpudirect_path(intent, facts)["path"] == PEERMEM
    others = any(name in loaded for name in PEERMEM_MODULES if name != MODULE)
    present = MODULE in loaded or others
    return (needed and not present) or files_differ(boot_files(at_boot=needed and not others), facts.files)


def _computes(intent: Intent) -> bool:
    """Whether a host has compute rails; True if its rails are not known."""
    rails = intent.get("rails") or ()
    return not rails or any(rail["role"] == "compute" for rail in rails)


def _plan(path: str | None, why: str, refused: str | None = None) -> dict[str, str | None]:
    return {"path": path, "why": why, "refused": refused}


def _left(facts: Facts) -> str:
    loaded = [name for name in PEERMEM_MODULES if facts.stack and name in facts.stack.modules]
    return f"; {' and '.join(loaded)} stays loaded" if loaded else ""


def _why(chosen: str, requested: str, judged: GpuDirect) -> str:
    if requested != AUTO:
        return f"rdma_gpudirect.path is {requested}, and it can work"
    if chosen == DMABUF:
        return "DMA-BUF can work, and needs no additional module"
    return f"nvidia_peermem can work, DMA-BUF cannot: {'; '.join(judged.dmabuf.why_not)}"


def _refusal(requested: str, candidates: Sequence[str], judged: GpuDirect) -> str:
    verdicts = [f"{NAMES[path]} {_verdict(_of(judged, path))}: {'; '.join(_of(judged, path).why_not)}" for path in candidates]
    reasons = [reason for path in candidates for reason in _of(judged, path).why_not]
    helps = dict.fromkeys(help_ for reason in reasons if (help_ := _help(reason)) is not None)
    todo = f" To fix it: {'; or '.join(helps)}." if helps else ""
    other = next((path for path in PATHS if path not in candidates and _of(judged, path).possible), None)
    instead = f" rdma_gpudirect.path: {other} would work." if other is not None else ""
    return f"rdma_gpudirect.path {requested} is refused. {'. '.join(verdicts)}.{todo}{instead}"


def _of(judged: GpuDirect, path: str) -> Possibility:
    return judged.dmabuf if path == DMABUF else judged.peermem


def _verdict(possibility: Possibility) -> str:
    return "cannot work" if possibility.possible is False else "is not known to work"


def _help(reason: str) -> str | None:
    return next((help_ for piece, help_ in _HELP.items() if piece in reason), None)
