# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade of MLNX_OFED on a host of the bed "roce": the new packages and the new plan, and after a reboot the new modules."""

from __future__ import annotations

from typing import Any

from tests.unit.builders.blind_trees import MODULES

_OLD, _NEW = "24.10-1.1.4", "25.01-0.6.0"
_DKMS = "/var/lib/dkms/mlnx-ofed-kernel"
_KERNEL = "6.1.0-28-amd64"
_MODULES = (*MODULES, "mlx_compat", "nvidia_peermem")

#: The packages are installed and planned; the running kernel still has the old modules.
INSTALLED: dict[str, Any] = {
    "intent": {"rdma_driver.version": f"{_NEW}.0"},
    "replace": {
        "/usr/bin/ofed_info": {f"{_OLD}.0": f"{_NEW}.0"},
        "/var/lib/dpkg/status": {"24.10.OFED.24.10.1.1.4.1-1": "25.01.OFED.25.01.0.6.0.1-1"},
    },
    "output": {"modinfo": {_OLD: _NEW, "0123\nname:": "2501\nname:"}},
    "remove": {f"{_DKMS}/24.10": None, f"{_DKMS}/kernel-{_KERNEL}-x86_64": None},
    "write": {
        "/usr/src/mlnx-ofed-kernel-25.01/dkms.conf": "x",
        f"{_DKMS}/25.01/{_KERNEL}/x86_64/module/mlx5_core.ko": "x",
    },
    "link": {f"{_DKMS}/25.01/source": "/usr/src/mlnx-ofed-kernel-25.01"},
}
#: What the reboot adds.
LOADED: dict[str, Any] = {
    "write": {
        **{f"/sys/module/{name}/version": _NEW for name in _MODULES},
        **{f"/sys/module/{name}/srcversion": f"{name.upper()}2501" for name in _MODULES},
    }
}
