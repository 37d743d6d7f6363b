# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever a role writes, facts find again: the places of module_utils/_base/files.py and the roles agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import (
    ManagedFile,
    ensure_files,
    files_differ,
    managed_files,
    shared_files,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import module_files
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import variables_in
from ansible_collections.rdma.cluster.plugins.module_utils._gpu import peermem
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import time_files
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import Tuned
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import CpuRequest, cpu_files
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import sysctl_files
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, Running
from ansible_collections.rdma.cluster.plugins.module_utils._net.rings import RailRings, rules_file
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import service
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import PcieRequest
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.soft_links import service_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import nccl_files
from tests.unit.builders.hosts import lab_facts, lab_intent, on_host

RAIL = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ens1", "192.168.100.1/24", 9000, mac="02:00:00:00:00:01")
BOTH = Running(networkd=True, networkmanager=True)


def _is_there(file: ManagedFile) -> bool:
    return file.content is not None


def test_every_file_that_a_role_writes_is_found_again(tmp_path: Path) -> None:
    wanted = [
        *module_files(["rdma_rxe"], {"mlx5_core": "prof_sel=2"}),
        *peermem.boot_files(at_boot=True),
        *service_files([{"name": "rxe_rail0", "type": "rxe", "nic": {"pci": "0000:21:00.0"}}]),
        *service.service_files(PcieRequest(("0000:21:00.0",), 4096, "leave")),
        *(file for manager in ("networkd", "netplan") for file in choice.files(manager, [RAIL], [], [], BOTH)),
        *(file for file in choice.files("networkmanager", [RAIL], [], [], BOTH) if file.path.endswith(".nmconnection")),
        *limits.files(limits.LimitsRequest(memlock_unlimited=True, open_files=131072, keep_ipc=True)),
        *rules_file([RailRings("rail0", {"pci": "0000:21:00.0"}, "ens1", 256, 256)]),
        *filter(_is_there, cpu_files(CpuRequest("performance", 10), None)),
        *filter(_is_there, cpu_files(CpuRequest("performance", 10), Tuned("balanced", "balanced"))),
        *time_files(["ntp.example.com"]),
        *sysctl_files({"net.core.rmem_max": "1"}),
        *nccl_files(lab_intent(), from_dict(lab_facts())),
    ]
    ensure_files([replace(file, path=f"{tmp_path}{file.path}") for file in wanted], check_mode=False)
    found = managed_files(SysRoot(str(tmp_path)), (), shared_files([]), variables_in)
    assert found == on_host(wanted)
    assert not files_differ(wanted, found)


def test_a_file_that_the_intent_puts_elsewhere_is_found_again(tmp_path: Path) -> None:
    intent = lab_intent(nccl={"conf_file": "/opt/site/nccl.conf", "environment_file": "/opt/site/nccl.env"})
    wanted = nccl_files(intent, from_dict(lab_facts()))
    ensure_files([replace(file, path=f"{tmp_path}{file.path}") for file in wanted], check_mode=False)
    sys = SysRoot(str(tmp_path))
    assert managed_files(sys) == {}
    places = ["/opt/site/nccl.conf", "/opt/site/nccl.env", "/opt/site/absent", "/opt/site"]
    assert managed_files(sys, places, shared_files(places), variables_in) == on_host(wanted)
