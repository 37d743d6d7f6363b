# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: RDMA devices, their drivers and slots."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.host import (
    device_list,
    no_device,
    no_node,
    other_vendor,
    ports_down,
    set_to,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.network import device_named, hca_lists_differ
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import of_container
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause, judged, not_checkable

DEVICES: dict[str, Cause] = {
    "hca.none": Cause("the host has no RDMA device", no_device, "Run the driver stage for {host}. Its gate reports what is missing."),
    "hca.list": Cause("NCCL_IB_HCA selects no device", device_list, "Run the nccl stage for {host}, or correct NCCL_IB_HCA in the job."),
    "ib.disabled": Cause("RDMA is disabled", set_to("NCCL_IB_DISABLE", "1"), "Unset NCCL_IB_DISABLE on {host}."),
    "ib.net": Cause("the job requests sockets", set_to("NCCL_NET", "Socket"), "Unset NCCL_NET on {host}."),
    "port.down": Cause("a port is not ACTIVE", ports_down, "Run the link stage for {host}. Its gate reports why the port is not ACTIVE."),
    "port.planned": Cause("a planned rail is not up", judged("link", "link.state"), "Run the link stage for {host}."),
    "port.flaps": Cause(
        "the link goes down, or has errors",
        judged("link", "link.flaps", "link.errors", must_apply=True),
        "Check cable and optic of {device} on {host}: `mlxlink -d {device} -m -c -e`.",
    ),
    "ib.node": Cause(
        "a device node in /dev/infiniband is missing", no_node, "Run the driver stage for {host}, then `ls -l /dev/infiniband` there."
    ),
    "ib.container": Cause(
        "the job's container lacks RDMA devices or libibverbs",
        of_container,
        "1. Start the container on {host} with `--device /dev/infiniband`. 2. Add rdma-core to its image: `ldconfig -p | grep ibverbs`.",
    ),
    "ib.layers": Cause(
        "RoCE and InfiniBand ports are mixed", judged("link", "link.layer"), "Use only ports of one kind in NCCL_IB_HCA on {host}."
    ),
    "device.kind": Cause(
        "the NIC is not of mlx5, and GPUs control only these",
        other_vendor,
        "1. On {host}, run `rdma link`: mlx5 devices are of NVIDIA. 2. Set NVSHMEM_IB_ENABLE_IBGDA=0 and NVSHMEM_REMOTE_TRANSPORT=ibrc or "
        "libfabric. 3. For DeepEP's low latency, use NICs of NVIDIA.",
    ),
    "verbs.version": Cause(
        "libibverbs and its plug-ins, or the kernel's driver, are of different releases",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host} and in the container, run `ldconfig -p | grep -E 'ibverbs|mlx5|bnxt_re'`; all must be of one release. 2. Remove "
        "other copies from LD_LIBRARY_PATH and LD_PRELOAD. 3. Install in the container the NIC vendor's rdma-core of the host's driver.",
    ),
    "verbs.package": Cause(
        "the plug-in of libibverbs for this NIC is not installed",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host} and in the container, run `ls /etc/libibverbs.d; ls /usr/lib*/libibverbs /usr/lib/*/libibverbs`. 2. Install "
        "ibverbs-providers (Debian, Ubuntu), libibverbs (RHEL) or the vendor's package.",
    ),
    "device.name": Cause(
        "the named RDMA device does not exist there",
        device_named,
        "1. On {host}, run `rdma link` and `ibdev2netdev`. 2. Name a device that the host has.",
    ),
    "hca.differs": Cause(
        "the hosts use different sets of RDMA ports",
        hca_lists_differ,
        "1. Compare NCCL_IB_HCA and `rdma link` on all hosts of the job. 2. Set the same rails everywhere: run the nccl stage for them.",
    ),
    "limits.nic": Cause(
        "the NIC's own limit of queues or memory is reached",
        not_checkable("the resources in use were not read"),
        "1. On {host}, run `rdma resource show`, and end processes of earlier jobs. 2. Run fewer processes or queues on each NIC.",
    ),
    "driver.fit": Cause(
        "driver, kernel and firmware do not fit each other",
        judged("driver", "driver.loaded", "driver.stack", "driver.module"),
        "1. Run the driver stage for {host}. 2. Reboot it, so that only modules of one driver stack are loaded.",
    ),
    "build.headers": Cause(
        "the headers of this kernel, or modules that it builds on, are not installed",
        not_checkable("the packages were not read"),
        "1. On {host}, run `ls -d /lib/modules/$(uname -r)/build`. 2. Install the headers of exactly this kernel. 3. For nvidia-peermem, "
        "install RDMA drivers first, then the NVIDIA driver.",
    ),
    "build.release": Cause(
        "this release of the driver does not support the kernel",
        not_checkable("the supported kernels are in the release notes of the driver"),
        "1. On {host}, read the make.log that the line names. 2. Compare `uname -r` with the release notes of DOCA-OFED. 3. Install a "
        "newer release, or boot a kernel that it supports.",
    ),
    "pcie.link": Cause(
        "a PCIe link is slower or narrower than planned",
        judged("preflight", "pcie.link"),
        "1. On {host}, run `lspci -vv` for the card, and compare LnkCap with LnkSta. 2. Reseat the card, or move it to another slot.",
    ),
    "pcie.broken": Cause(
        "the card, its slot or a riser is broken",
        not_checkable("errors of PCIe are only in the kernel's log"),
        "1. On {host}, run `dmesg | grep -iE 'aer|dpc|pcie'`. 2. Power it off and on. 3. Reseat or replace the card.",
    ),
    "sriov": Cause(
        "the BIOS, the firmware or the host does not allow virtual functions",
        not_checkable("the settings of virtual functions were not read"),
        "1. On {host}, check SR-IOV in its BIOS, and `mlxconfig -d DEVICE query SRIOV_EN NUM_OF_VFS`. 2. Check that the physical function "
        "works: `dmesg | grep mlx5`.",
    ),
    "interrupts": Cause(
        "the host has no free interrupts",
        not_checkable("the free interrupts were not read"),
        "1. On {host}, count the lines of /proc/interrupts. 2. Configure fewer queues or virtual functions. 3. Reboot it.",
    ),
    "power": Cause(
        "the slot offers too little power",
        not_checkable("the power of slots was not read"),
        "Put the card of {host} into a slot with 75 W, or set the power of the slot in its BIOS.",
    ),
    "cooling": Cause(
        "the cooling of the card fails",
        not_checkable("temperatures were not read"),
        "1. On {host}, run `mget_temp -d DEVICE` and `ipmitool sensor`. 2. Check its fans and the airflow at the card.",
    ),
    "cable": Cause(
        "a cable or transceiver is broken, unplugged or not supported",
        judged("link", "link.optic", "link.errors", must_apply=True),
        "1. On {host}, run `mlxlink -d DEVICE -m -c -e`. 2. Reseat the cable. 3. Replace it.",
    ),
    "firmware": Cause(
        "the firmware or the card",
        not_checkable("the card was not read"),
        "Run `dmesg | grep mlx5` on {host}, and compare its firmware with that of the other hosts (alike.firmware).",
    ),
}
