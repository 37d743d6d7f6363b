# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.gpu.gpu import SUBJECTS, check_gpu, check_nics
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict

VERSION = "580.159.04"
CHOSEN = {"path": "dmabuf", "why": "DMA-BUF can work, and needs no additional module", "refused": None}
FABRIC_MANAGER = "nvidia-fabricmanager.service"
#: HGX B200 reaches its NVSwitches by ConnectX-7.
BRIDGED = {"nvswitches": 0, "nvswitch_bridges": 4}
GPU = {"address": "0000:1b:00.0", "model": "NVIDIA H200", "pci": {"address": "0000:1b:00.0"}}


def facts(**changes: Any) -> dict[str, Any]:
    """Of an HGX host on which everything is of one version, or with what is changed."""
    return {
        "gpus": [GPU],
        "gpu_driver": {"version": VERSION, "open": True},
        "gpu_support": {"cuda": VERSION, "nvswitches": 4, "fabric_manager": VERSION, **changes.pop("support", {})},
        "units": {FABRIC_MANAGER: {"active": True, "enabled": True, **changes.pop("unit", {})}},
        "stack": {"modules": {}},
        **changes,
    }


def check(plan: Any = None, driver_version: str | None = None, **changes: Any) -> dict[str, Finding]:
    intent = {"gpudirect": {"path": "auto", "driver_version": driver_version}}
    found = check_gpu("gpu1", intent, from_dict(facts(**changes)), plan or CHOSEN)
    assert {(finding.stage, finding.host) for finding in found} == {("gpu", "gpu1")}
    assert all(bool(finding.remedy) is (finding.status in {"error", "unknown", "warning"}) for finding in found), found
    assert all(finding.observed for finding in found)
    assert [finding.check for finding in found].count("gpu.nics") == 1
    found = [finding for finding in found if finding.check != "gpu.nics"]
    assert len(found) == len(SUBJECTS)
    return {finding.check: finding for finding in found}


def statuses(**asked: Any) -> dict[str, str]:
    return {name: finding.status for name, finding in check(**asked).items()}


def test_all_of_one_version() -> None:
    assert set(statuses().values()) == {"ok"}
    assert check()["gpu.path"].observed == "dmabuf: DMA-BUF can work, and needs no additional module"


def test_no_gpu_is_no_error_and_not_read_is_no_answer() -> None:
    plan = {"path": None, "why": "no NVIDIA GPU", "refused": None}
    assert set(statuses(plan=plan, gpus=[]).values()) == {"not_applicable"}
    assert set(statuses(gpus=None).values()) == {"unknown"}


def test_gpus_without_a_driver_are_one_error() -> None:
    found = check(gpu_driver=None, plan={"path": None, "why": "none", "refused": "refused"})
    assert {name: finding.status for name, finding in found.items()} == {
        "gpu.path": "not_applicable", "gpu.driver": "error", "gpu.fabricmanager": "not_applicable", "gpu.cuda": "not_applicable"
    }  # fmt: skip
    assert found["gpu.driver"].observed == "not loaded; 1 GPUs are on the bus"


def test_a_refused_path() -> None:
    finding = check(plan={"path": None, "why": "none can work", "refused": "the whole sentence"})["gpu.path"]
    assert (finding.status, finding.observed) == ("error", "the whole sentence")


def test_peermem_must_be_loaded_and_not_only_possible() -> None:
    plan = {"path": "peermem", "why": "it can work", "refused": None}
    assert statuses(plan=plan)["gpu.path"] == "error"
    assert statuses(plan=plan, stack={"modules": {"nvidia_peermem": {}}})["gpu.path"] == "ok"


@pytest.mark.parametrize(
    ("least", "status"), [(None, "ok"), ("550", "ok"), ("580.159.04", "ok"), ("580.159.05", "error"), ("590.1", "error"), ("580.159", "ok")]
)
def test_the_oldest_driver_that_is_good_enough(least: str | None, status: str) -> None:
    assert statuses(driver_version=least)["gpu.driver"] == status


@pytest.mark.parametrize(
    ("gpus", "observed"),
    [
        ([GPU, {**GPU, "address": "0000:5d:00.0", "model": None}], f"{VERSION}; it does not use 0000:5d:00.0"),
        ([GPU, {**GPU, "address": "0000:5d:00.0", "pci": None}], f"{VERSION}; 0000:5d:00.0 fell off the bus"),
    ],
)
def test_a_gpu_that_is_lost(gpus: Any, observed: str) -> None:
    finding = check(gpus=gpus)["gpu.driver"]
    assert (finding.status, finding.observed) == ("error", observed)


def test_a_driver_that_does_not_report() -> None:
    found = statuses(gpu_driver={"version": None, "open": None})
    assert (found["gpu.driver"], found["gpu.fabricmanager"], found["gpu.cuda"]) == ("unknown", "unknown", "unknown")


@pytest.mark.parametrize(
    ("changes", "status", "observed"),
    [
        (
            {"support": {"nvswitches": 0, "fabric_manager": None}, "units": {}},
            "not_applicable",
            "no NVSwitch on the PCI bus, and no NIC that leads to one",
        ),
        ({"support": BRIDGED}, "ok", f"{VERSION}, active"),
        ({"support": BRIDGED, "unit": {"active": False}}, "error", "not active, with 4 bridges to NVSwitches"),
        ({"support": {"fabric_manager": "580.95.05"}}, "error", f"version 580.95.05 with driver {VERSION}"),
        ({"support": {"fabric_manager": "580.95.05"}, "unit": {"active": False}}, "error", f"version 580.95.05 with driver {VERSION}"),
        ({"unit": {"active": False}}, "error", "not active, with 4 NVSwitches"),
        ({"support": {"fabric_manager": None}, "unit": {"active": False}}, "error", "not active, with 4 NVSwitches"),
        ({"support": {"fabric_manager": None}}, "unknown", "active, of unknown version"),
        ({"unit": {"enabled": False}}, "warning", f"{VERSION}, active, but not started at boot"),
        ({"units": None}, "unknown", f"{FABRIC_MANAGER} was not read"),
        ({"gpu_support": None}, "unknown", "NVSwitches were not read"),
    ],
)
def test_fabric_manager(changes: dict[str, Any], status: str, observed: str) -> None:
    finding = check(**changes)["gpu.fabricmanager"]
    assert (finding.status, finding.observed) == (status, observed)


@pytest.mark.parametrize(
    ("changes", "status", "observed"),
    [
        ({"support": {"cuda": None}}, "error", "no libcuda.so.1 in the usual folders"),
        ({"support": {"cuda": "575.57.08"}}, "error", f"575.57.08 with driver {VERSION}"),
        ({"gpu_support": None}, "unknown", "not read"),
        (
            {"support": {"cuda": "510.47.03"}, "gpu_driver": {"version": "510.47.03", "open": False}},
            "ok",
            "510.47.03; too old for DMA-BUF, which needs CUDA 11.7, driver 515",
        ),
    ],
)
def test_libcuda(changes: dict[str, Any], status: str, observed: str) -> None:
    finding = check(**changes)["gpu.cuda"]
    assert (finding.status, finding.observed) == (status, observed)


GPUS = [f"0000:{number:02x}:00.0" for number in range(8)]
NICS = [f"mlx5_{number}" for number in range(4)]


def nics_of(distances: dict[str, dict[str, str | None]], nics: list[str] = NICS, **changes: Any) -> Finding:
    """The finding of a host with these distances between its 8 GPUs and the NICs of its compute rails."""
    rails, devices = [], {}
    for number, name in enumerate([*nics, "mlx5_storage"]):
        pci = f"0000:a{number}:00.0"
        devices[name] = {"software": False, "pci": {"address": pci}, "ports": {"1": {"netdev": None}}}
        role = "storage" if name == "mlx5_storage" else "compute"
        rails.append({"name": f"rail{number}", "nic": {"pci": pci}, "role": role, "soft": False, "link_layer": "infiniband"})
    seen = {"gpus": [{"address": gpu} for gpu in GPUS], "devices": devices, "netdevs": {}, "distances": distances, **changes}
    return check_nics("gpu1", {"rails": rails}, from_dict(seen))


def each_gpu(*rows: list[str | None]) -> dict[str, dict[str, str | None]]:
    """Distances of 8 GPUs to the NICs; the storage NIC is near every GPU."""
    return {gpu: {**dict(zip(NICS, rows[index * len(rows) // 8], strict=False)), "mlx5_storage": "PIX"} for index, gpu in enumerate(GPUS)}


def test_gpus_that_reach_nics_across_sockets_only() -> None:
    """8 GPUs, 4 NICs, all on one socket: each NIC has a GPU near it."""
    found = nics_of(each_gpu(["NODE"] * 4, ["SYS"] * 4))
    assert (found.check, found.status) == ("gpu.nics", "warning")
    assert found.observed.startswith(f"4 of 8 GPUs reach every NIC only across sockets (SYS): {', '.join(GPUS[4:])}; ")
    assert found.observed.endswith("GPUs for each NIC: mlx5_0 2, mlx5_1 2, mlx5_2 2, mlx5_3 2")


def test_each_nic_serves_two_gpus() -> None:
    far = ["SYS", "SYS"]
    rows = [["PIX", "NODE", *far], ["NODE", "PXB", *far], [*far, "PIX", "NODE"], [*far, "NODE", "PIX"]]
    found = nics_of(each_gpu(*rows))
    assert (found.status, found.observed) == (
        "ok",
        "PXB at most from each GPU to its nearest NIC; GPUs for each NIC: mlx5_0 2, mlx5_1 2, mlx5_2 2, mlx5_3 2",
    )


def test_both_ports_of_a_nic_are_rails() -> None:
    """The device counts once."""
    found = nics_of(each_gpu(["SYS"] * 4), [*NICS, NICS[0]])
    assert (found.status, found.observed[:25]) == ("warning", "8 of 8 GPUs reach every N")


def test_a_nic_that_serves_more_gpus_than_another() -> None:
    found = nics_of(each_gpu(["PIX", "NODE", "NODE", "NODE"]))
    assert (found.status, found.observed) == (
        "warning",
        "the NICs serve GPUs unevenly, by distance: mlx5_0 8, mlx5_1 0, mlx5_2 0, mlx5_3 0",
    )


@pytest.mark.parametrize(
    ("distances", "changes", "status", "observed"),
    [
        ({}, {}, "unknown", f"the distance of {', '.join(GPUS)} to the NICs is not known"),
        (each_gpu(["SYS", "SYS", "SYS", None]), {}, "unknown", "the distance of"),
        ({gpu: dict.fromkeys(NICS) for gpu in GPUS}, {}, "not_applicable", "the firmware reports no distance between any GPU and any NIC"),
        (each_gpu(["PIX"] * 4), {"gpus": None}, "unknown", "the GPUs were not read"),
        (each_gpu(["PIX"] * 4), {"gpus": []}, "not_applicable", "no NVIDIA GPU"),
        (each_gpu(["PIX"] * 4), {"devices": {}}, "not_applicable", "no compute rail has a NIC"),
    ],
    ids=["no distances", "one is not known", "none is known", "no GPUs", "none", "no NIC"],
)
def test_what_is_not_known_of_distances_is_not_ok(
    distances: dict[str, dict[str, str | None]], changes: dict[str, Any], status: str, observed: str
) -> None:
    found = nics_of(distances, **changes)
    assert (found.status, found.observed[: len(observed)]) == (status, observed)
