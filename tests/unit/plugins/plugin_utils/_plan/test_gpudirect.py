# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The path between GPU and NIC, decided from what the facts themselves make of a host."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import described
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpudirect import possible_paths
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import Gpu, GpuDriver
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.peermem import BOOT_FILE, BOOT_TEXT
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.gpudirect import gpudirect_differs, gpudirect_path

GPU = Gpu("0000:1b:00.0", "NVIDIA H200", None, 0, None)
OPEN, CLOSED = GpuDriver("580.159.04", open=True), GpuDriver("535.129.03", open=False)


def facts(**host: Any) -> dict[str, Any]:
    """Of a host with the open driver and a stock RDMA stack, or with what is changed."""
    usual: dict[str, Any] = {"kernel": "6.8.0-51-generic", "modules": (), "gpu_driver": OPEN, "gpus": [GPU], "rdma_core_version": "50.0"}
    asked = {**usual, "peer_symbol": False, "memory_peers": (), **host}
    judged = asdict(possible_paths(**asked))
    modules = {name: {} for name in asked["modules"]}
    return {"gpus": [asdict(gpu) for gpu in asked["gpus"]], "gpudirect": judged, "stack": {"modules": modules}, "files": {}}


def plan(path: str = "auto", **host: Any) -> dict[str, str | None]:
    return gpudirect_path({"gpudirect": {"path": path}}, from_dict(facts(**host)))


def test_dma_buf_is_preferred() -> None:
    both = {"path": "dmabuf", "why": "DMA-BUF can work, and needs no additional module", "refused": None}
    assert plan() == both
    assert plan(peer_symbol=True) == both
    assert gpudirect_path({}, from_dict(facts())) == both


def test_peermem_where_dma_buf_cannot_work_and_why() -> None:
    found = plan(gpu_driver=CLOSED, peer_symbol=True)
    assert (found["path"], found["refused"]) == ("peermem", None)
    assert found["why"] == (
        "nvidia_peermem can work, DMA-BUF cannot: NVIDIA driver 535.129.03 is not the open one, which alone exports DMA-BUFs"
    )
    assert plan("peermem", peer_symbol=True)["path"] == "peermem"


@pytest.mark.parametrize(
    ("path", "host", "words"),
    [
        ("dmabuf", {"gpu_driver": CLOSED}, ["DMA-BUF cannot work", "is not the open one", "install the open kernel modules of NVIDIA's"]),
        ("dmabuf", {"gpu_driver": GpuDriver("510.47", open=True)}, ["510.47: DMA-BUF needs 515", "install NVIDIA's driver 515 or newer"]),
        ("dmabuf", {"kernel": "5.4.0-99-generic"}, ["kernel 5.4.0-99-generic", "run a kernel of 5.12 or newer"]),
        ("dmabuf", {"rdma_core_version": "28.0"}, ["rdma-core 28.0", "install rdma-core 34 or newer"]),
        ("dmabuf", {"rdma_core_version": None}, ["DMA-BUF is not known to work", "the version of rdma-core is not known"]),
        ("dmabuf", {"gpu_driver": CLOSED, "peer_symbol": True}, ["rdma_gpudirect.path: peermem would work."]),
        ("peermem", {}, ["nvidia_peermem cannot work", "rdma_gpudirect.path: dmabuf would work.", "install MLNX_OFED or DOCA-OFED"]),
        ("peermem", {"peer_symbol": None}, ["nvidia_peermem is not known to work", "is not known"]),
        ("peermem", {"gpu_driver": None}, ["the NVIDIA driver is not loaded", "install NVIDIA's driver, and load it"]),
        ("auto", {"gpu_driver": CLOSED}, ["DMA-BUF cannot work", "nvidia_peermem cannot work", "install the open", "DOCA-OFED"]),
        ("auto", {"rdma_core_version": None, "peer_symbol": None}, ["DMA-BUF is not known", "nvidia_peermem is not known"]),
    ],
)
def test_what_cannot_work_is_refused_with_every_reason_and_what_would_help(path: str, host: dict[str, Any], words: list[str]) -> None:
    found = plan(path, **host)
    assert found["path"] is None
    assert str(found["refused"]).startswith(f"rdma_gpudirect.path {path} is refused. ")
    assert [word for word in words if word not in str(found["refused"])] == []


def test_a_host_of_storage_rails_alone_needs_no_path_unless_one_is_asked_for() -> None:
    """A login node with a graphics card, NVIDIA's closed driver and the distribution's RDMA stack."""

    def storage(path: str, *roles: str, **host: Any) -> dict[str, str | None]:
        rails = [{"role": role} for role in ("storage", *roles)]
        return gpudirect_path({"gpudirect": {"path": path}, "rails": rails}, from_dict(facts(**host)))

    closed = {"gpu_driver": CLOSED}
    assert storage("auto", **closed) == {"path": None, "why": "no path can work, and no compute rail needs one", "refused": None}
    assert storage("auto")["path"] == "dmabuf"
    assert storage("dmabuf", **closed)["refused"] is not None
    assert storage("auto", "compute", **closed)["refused"] is not None


def test_every_reason_that_is_certain_has_something_that_helps() -> None:
    """The words of _gpudirect and those looked for here belong together."""
    worst = plan("auto", kernel="5.4.0", rdma_core_version="28.0", gpu_driver=CLOSED)
    assert str(worst["refused"]).partition("To fix it: ")[2].count("; or ") == 3


@pytest.mark.parametrize("path", ["auto", "dmabuf", "peermem", "none"])
def test_a_host_without_gpu_has_no_path_and_no_error(path: str) -> None:
    assert plan(path, gpus=[]) == {"path": None, "why": "no NVIDIA GPU", "refused": None}


def test_none_leaves_what_is_loaded_and_says_so() -> None:
    assert plan("none")["why"] == "rdma_gpudirect.path is none"
    assert plan("none", modules=("nvidia_peermem",)) == {
        "path": None, "why": "rdma_gpudirect.path is none; nvidia_peermem stays loaded", "refused": None
    }  # fmt: skip


def test_facts_that_do_not_report_are_no_answer() -> None:
    found = gpudirect_path({}, from_dict({"gpus": [], "gpudirect": None, "stack": {"modules": {}}}))
    assert found["path"] is None
    assert found["refused"] == "The facts do not contain GPUs: read the facts with the subset gpus."


BOOT = {BOOT_FILE: described(BOOT_TEXT, 0o644)}
PEERMEM = {"gpu_driver": CLOSED, "peer_symbol": True}


@pytest.mark.parametrize(
    ("host", "files", "differs"),
    [
        ({}, {}, False),
        ({}, BOOT, True),
        (PEERMEM, {}, True),
        (PEERMEM, BOOT, True),
        ({**PEERMEM, "modules": ["nvidia_peermem"]}, BOOT, False),
        ({**PEERMEM, "modules": ["nvidia_peermem"]}, {}, True),
        ({**PEERMEM, "modules": ["nv_peer_mem"]}, {}, False),
        ({}, None, True),
    ],
)
def test_whether_the_role_has_something_to_do(host: dict[str, Any], files: Any, differs: bool) -> None:
    assert gpudirect_differs({}, from_dict({**facts(**host), "files": files})) is differs
