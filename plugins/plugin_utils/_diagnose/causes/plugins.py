# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: plugins and libraries of communication."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.host import is_set, names_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import versions_differ
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause, not_checkable

PLUGINS: dict[str, Cause] = {
    "nvshmem.ibgda": Cause(
        "the GPU's driver or the container does not allow GPUs to control a NIC",
        not_checkable("the options of the NVIDIA driver were not read"),
        "1. On {host}, check that /proc/driver/nvidia/params contains `EnableStreamMemOPs: 1` and `PeerMappingOverride=1`. 2. Set both in "
        "/etc/modprobe.d, and reboot. 3. Start the container with `--privileged`, or set NVSHMEM_IBGDA_NIC_HANDLER=cpu.",
    ),
    "ucx.two": Cause(
        "the process loads two copies of UCX",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host}, run `grep -E 'libuc[pst]' /proc/PID/maps`. 2. Keep one copy: uninstall UCX of the image, or build NIXL against it.",
    ),
    "debug.ucx": Cause(
        "the line with the reason is not in this log",
        not_checkable("UCX prints it at level warn or info"),
        "Run it again with UCX_LOG_LEVEL=info and NIXL_LOG_LEVEL=DEBUG on {host}.",
    ),
    "debug.nvshmem": Cause(
        "the line with the reason is not in this log",
        not_checkable("NVSHMEM prints it at level WARN"),
        "Run it again with NVSHMEM_DEBUG=INFO and NVSHMEM_DEBUG_SUBSYS=INIT,TRANSPORT on {host}.",
    ),
    "plugin.version": Cause(
        "the plugin, or libfabric below it, is of another version than the program needs",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host} and in the image, run `ldconfig -p | grep -E 'nccl-net|libfabric'` and `fi_info --version`. 2. For NCCL, install "
        "HPC-X or aws-ofi-nccl of the release of the job's NCCL; for a test without it, set NCCL_NET_PLUGIN=none. 3. For MPI, use the "
        "libfabric of the NIC's vendor.",
    ),
    "ofi.efa": Cause(
        "EFA is not installed or not attached to the instance",
        not_checkable("the interfaces of the instance were not read"),
        "1. On {host}, run `fi_info -p efa`. 2. Install the EFA software, and attach EFA interfaces to the instance.",
    ),
    "ofi.address": Cause(
        "the interface of the RDMA port has no IP address, which libfabric's verbs provider needs",
        not_checkable("the providers of libfabric were not read"),
        "1. On {host}, run `fi_info -p verbs` and `ip -br address`. 2. Give the IPoIB or RoCE interface an address.",
    ),
    "ofi.zone": Cause(
        "the instances are in different availability zones or subnets",
        not_checkable("the places of instances were not read"),
        "Put all instances of the job into one subnet and one placement group: EFA does not cross zones.",
    ),
    "ofi.group": Cause(
        "a security group blocks traffic, or the peer is gone",
        not_checkable("security groups were not read"),
        "1. Allow all traffic of the security group from itself, in both directions. 2. Check the log of the peer. "
        "3. Measure with `fi_pingpong -p efa` on {host}.",
    ),
    "ucx.choice": Cause(
        "UCX_TLS, UCX_NET_DEVICES or options of mpirun exclude the transports",
        not_checkable("the environment of ranks was not read"),
        "1. On {host}, run `ucx_info -d`. 2. Unset UCX_TLS and UCX_NET_DEVICES, and check `--mca pml` and `--mca btl`.",
    ),
    "sharp": Cause(
        "no aggregation manager runs, or the fabric does not support SHARP",
        not_checkable("the aggregation manager was not read"),
        "1. On the host of the subnet manager, check sharp_am. 2. Set NCCL_COLLNET_ENABLE=0 if SHARP is not wanted.",
    ),
    "gdrcopy": Cause(
        "the module gdrdrv is missing or does not fit",
        not_checkable("the version of gdrdrv was not read"),
        "1. On {host}, run `lsmod | grep gdrdrv`. 2. Install gdrcopy of one version, or set NCCL_GDRCOPY_ENABLE=0.",
    ),
    "version": Cause(
        "images or installations differ",
        versions_differ,
        "Use one image on all hosts. On {host}, check `ldconfig -p | grep nccl` and LD_LIBRARY_PATH.",
        of_log=True,
    ),
    "plugin": Cause(
        "the plugin is not installed, or its folder is not in LD_LIBRARY_PATH",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host}, run `ldconfig -p | grep nccl-net`. 2. If it is not there, unset NCCL_NET_PLUGIN.",
    ),
    "nccl.algorithm": Cause(
        "NCCL_ALGO or NCCL_PROTO exclude every algorithm for it",
        is_set("NCCL_ALGO", "NCCL_PROTO"),
        "Unset NCCL_ALGO and NCCL_PROTO on {host}, or add `Ring` and `Simple` to their lists.",
    ),
    "topo.variable": Cause(
        "NCCL_TOPO_FILE names a missing file",
        names_file("NCCL_TOPO_FILE"),
        "1. On {host} and in the container, run `ls -l {file}`. 2. Unset NCCL_TOPO_FILE, which bare metal does not need.",
    ),
    "graph.variable": Cause("NCCL_GRAPH_FILE names a missing file", names_file("NCCL_GRAPH_FILE"), "Unset NCCL_GRAPH_FILE on {host}."),
    "topo.stale": Cause(
        "the file is of another version of NCCL",
        not_checkable("the file was not read"),
        "Write it again with NCCL_TOPO_DUMP_FILE on {host}, or unset the variable.",
    ),
}
