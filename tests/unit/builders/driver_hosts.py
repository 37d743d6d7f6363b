# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Intent and facts of a host with a ConnectX, as the driver stage sees it: stock modules, nothing in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import Distribution
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import DkmsModule
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import Module
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._driver.storage_uses import StorageUse

Part = TypeVar("Part")
KERNEL, NEWER = "6.1.0-10-amd64", "6.1.0-11-amd64"
STOCK, DKMS = f"/lib/modules/{KERNEL}/kernel/drivers", f"/lib/modules/{KERNEL}/updates/dkms"
HOLDERS = {
    "mlx_compat": ["ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "rdma_cm"],
    "ib_core": ["ib_uverbs", "mlx5_ib", "rdma_cm"],
    "ib_uverbs": ["mlx5_ib"],
    "mlx5_core": ["mlx5_ib"],
    "mlx5_ib": [],
    "rdma_cm": [],
}
OFED_VERSION = "MLNX_OFED_LINUX-24.10-1.1.4.0"


def driver(stack: str = "mlnx_ofed", version: str | None = "24.10-1.1.4.0", **changes: Any) -> dict[str, Any]:
    """A normalized intent, as far as the driver stage reads it."""
    defaults = {
        "stack": stack, "version": version, "source": None, "checksum": None, "add_kernel_support": True, "with_nvmf": False,
        "without_fw_update": True, "force": True, "flags": [], "profile": "doca-ofed", "hold_kernel": False, "build_minutes": 60,
        "repository": {"url": None, "key": None, "key_checksum": None},
    }  # fmt: skip
    return {"driver": {**defaults, **changes}, "rails": []}


def module(name: str, provenance: str = "kernel", *, holders: list[str] | None = None, **changes: Any) -> dict[str, Any]:
    """A module that is loaded as it is on disk, and used by those that stand on it alone."""
    above = HOLDERS.get(name, []) if holders is None else holders
    version = None if provenance == "kernel" else "24.10-1.1.4"
    mark = {"version": version, "srcversion": f"{provenance}{name}", "file_version": version, "file_srcversion": f"{provenance}{name}"}
    file = f"{STOCK if provenance == 'kernel' else DKMS}/{name}.ko"
    return {"holders": above, "refcount": len(above), "provenance": provenance, "signer": None, "file": file, **mark, **changes}


def stock(**changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {**{name: module(name) for name in HOLDERS if name != "mlx_compat"}, **changes}


def add_on(**changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {**{name: module(name, "dkms") for name in HOLDERS}, **changes}


def built(kernel: str | None = KERNEL, state: str = "installed") -> dict[str, Any]:
    return {"name": "mlnx-ofed-kernel", "version": "24.10.1.1.4.1", "kernel": kernel, "arch": "x86_64", "state": state}


def host(
    *, vendor: dict[str, str] | None = None, held: list[str] | None = None, system: dict[str, Any] | None = None, **stack: Any
) -> dict[str, Any]:
    """The whole tree of facts, as far as the driver stage reads it. stack: what differs in it."""
    distribution = {
        "id": "debian", "version_id": "12", "like": [], "family": "debian", "vendor": vendor or {}, "held": held or [],
        "packages": {"perftest": "4.5", "rdma-core": "44"}, **(system or {}),
    }  # fmt: skip
    seen = {
        "kernel": KERNEL, "kernels": [KERNEL], "newest": KERNEL, "headers": {KERNEL: True}, "modules": stock(), "dkms": [],
        "secure_boot": None, "mok": None, "uses": [], "ofed_version": None, "kind": None, "distribution": distribution,
    }  # fmt: skip
    return {
        "boot": {"hostname": "node1"},
        "stack": {**seen, **stack},
        "netdevs": {"eno1": {"driver": "igb", "master": None, "ipv4": []}, "ens1": {"driver": "mlx5_core", "master": None, "ipv4": []}},
        "session": {"address": "192.0.2.1", "netdev": "eno1"},
        "load": {"gpu_processes": [], "jobs": []},
        "devices": {},
    }


def installed(**changes: Any) -> dict[str, Any]:
    """A host with MLNX_OFED 24.10-1.1.4.0, built and loaded."""
    vendor = {"mlnx-ofed-kernel-dkms": "24.10"}
    return host(**{"ofed_version": OFED_VERSION, "modules": add_on(), "dkms": [built()], "vendor": vendor, **changes})


def part(cls: type[Part], reported: Mapping[str, Any]) -> Part:
    """A dataclass of the facts of its dictionary; what that lacks is None."""
    return cls(**{field.name: reported.get(field.name) for field in fields(cls)})


def stack_of(reported: Mapping[str, Any]) -> Stack:
    """The stack of the facts of a part of its tree, also where hosts' oldest Python runs."""
    parts = {
        "modules": {name: part(Module, {"holders": [], **each}) for name, each in reported.get("modules", {}).items()},
        "distribution": part(Distribution, {"like": [], **(reported.get("distribution") or {})}),
        "dkms": [part(DkmsModule, each) for each in reported.get("dkms", ())],
        "uses": reported.get("uses") and [part(StorageUse, each) for each in reported["uses"]],
    }
    return part(Stack, {**reported, **parts})
