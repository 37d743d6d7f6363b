# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which ACS controls redirect traffic between GPU and NIC, and on which hosts they may be switched off.

Sources: NCCL's user guide (troubleshooting: PCI Access Control Services), rdma-core's `rdma_topo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: The ACS controls that send traffic between two devices up to the root complex, as lspci names them.
REDIRECTING = ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")
#: ConnectX-8 and ConnectX-9, whose own PCIe path to the GPU (Data Direct) needs some of those controls.
DATA_DIRECT = ("0x1023", "0x1025")
#: The beginning of the names of GPUs on boards with Grace.
GRACE = ("NVIDIA GB", "NVIDIA GH")
#: auto: depends on the host's platform. Only bare_metal disables controls.
AUTO, BARE_METAL, VM, DATADIRECT, LEAVE = MODES = ("auto", "bare_metal", "vm", "datadirect", "leave")
NO_GPU = "this host has no GPU"
IN_A_VIRTUAL_MACHINE = "in a virtual machine this is the hypervisor's"
THIS_PLATFORM = "this platform needs some of ACS: see `rdma_topo check` of rdma-core, and switch nothing off by hand"


@dataclass(frozen=True)
class Platform:
    """The mode that auto selects on a host, and why; mode is None if the platform is unknown."""

    mode: str | None
    why: str


def is_data_direct(models: Iterable[str | None], device_ids: Iterable[str | None]) -> bool:
    """Return whether GPUs and NICs need ACS to reach each other, by the names of GPUs and the device ids of NICs."""
    return any((model or "").startswith(GRACE) for model in models) or any(each in DATA_DIRECT for each in device_ids)


def platform(models: Sequence[str | None], device_ids: Sequence[str | None], virtual_machine: bool | None) -> Platform:
    """Return the platform of the host. models: of its GPUs, None if the driver reports none. device_ids: of its NICs ("0x1021")."""
    if not models:
        return Platform(LEAVE, NO_GPU)
    if virtual_machine:
        return Platform(VM, IN_A_VIRTUAL_MACHINE)
    if is_data_direct(models, device_ids):
        return Platform(DATADIRECT, THIS_PLATFORM)
    if virtual_machine is None:
        return Platform(None, "it is not known whether this is a virtual machine")
    if None in models:
        return Platform(None, "no driver reports which GPUs these are, and boards with Grace need ACS")
    return Platform(BARE_METAL, "")


def redirecting(controls: Iterable[str] | None) -> list[str]:
    """Return the controls that redirect traffic."""
    return [name for name in controls or () if name in REDIRECTING]


def slot_of(address: str) -> str:
    """Return the part of an address that all functions of a card share."""
    return address.rpartition(".")[0]
