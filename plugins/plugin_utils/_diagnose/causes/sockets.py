# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: sockets, the rendezvous, and tests between two hosts."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.sockets import (
    firewall,
    gloo_loopback,
    socket_interface,
    wrong_address,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import networks_differ, of_container, refused
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause, not_checkable

SOCKETS: dict[str, Cause] = {
    "gloo.loopback": Cause(
        "a host's own name leads to an address that no other host reaches, and Gloo uses it",
        gloo_loopback,
        "1. On {host}, run `getent hosts $(hostname)`: it must be an address that other hosts reach. 2. Set GLOO_SOCKET_IFNAME to the "
        "management interface, or correct /etc/hosts.",
    ),
    "socket.name": Cause(
        "NCCL uses an interface that does not lead to the other hosts, or NCCL_SOCKET_IFNAME matches none",
        socket_interface,
        "Correct NCCL_SOCKET_IFNAME on {host} (rdma_nccl.socket_ifname); `ip -br address` there lists its interfaces.",
    ),
    "socket.address": Cause(
        "it connects to an address that does not belong to another host",
        wrong_address,
        "Set NCCL_SOCKET_IFNAME to the management interface of {host}; for PyTorch also set MASTER_ADDR.",
    ),
    "socket.firewall": Cause(
        "a firewall blocks them", firewall, "Run `nft list ruleset` on {host}, and allow ports 1024 to 65535 between the job's hosts."
    ),
    "store.alone": Cause(
        "the launcher did not start all ranks, or used different addresses",
        not_checkable("the log has only the ranks that connected"),
        "1. Compare MASTER_ADDR, MASTER_PORT and the number of ranks on all hosts. 2. Read the log of the missing host.",
    ),
    "socket.container": Cause(
        "the job's container has no interface except loopback",
        of_container,
        "1. Run `ip -br address` in the container. 2. Start it on {host} with `--network=host`.",
    ),
    "net.differs": Cause(
        "a network plugin is installed on a part of the hosts, or their variables differ",
        networks_differ,
        "1. On all hosts of the job and in their images, run `ldconfig -p | grep nccl-net`. 2. Use one image. 3. For a test without "
        "plugins, set NCCL_NET_PLUGIN=none.",
        of_log=True,
    ),
    "port.taken": Cause(
        "an earlier job still runs there",
        not_checkable("listening processes were not read"),
        "Run `ss -ltnp` on {host}, and end the processes of earlier jobs.",
    ),
    "socket.job": Cause(
        "two jobs use the same address and port, or a port scanner connects",
        not_checkable("processes of other jobs are not in this log"),
        "1. On {host}, run `ss -tnp`, and end processes of earlier jobs. 2. Give each job its own MASTER_PORT and NCCL_COMM_ID. "
        "3. Exclude the hosts from port scans.",
    ),
    "test.server": Cause(
        "the other end was not started, has ended, or listens elsewhere",
        refused,
        "1. Start the test without an address on the server first. 2. On the client, use the server's address and the same `-p` port. "
        "3. Check it with `nc -vz PEER 18515` on {host}.",
    ),
    "test.version": Cause(
        "the two ends have different versions or options",
        not_checkable("the options of the other end are not in this log"),
        "1. Compare `ib_write_bw --version` on both hosts. 2. Give both ends the same options.",
    ),
    "test.options": Cause(
        "an option is missing, or comes after the one that needs it",
        not_checkable("the facts do not contain the command"),
        "1. Give `--use_cuda=N` before `--use_cuda_dmabuf`. 2. See `ib_write_bw --help`.",
    ),
    "test.build": Cause(
        "the test is not installed, or was built without GPU support",
        not_checkable("the facts do not contain how it was built"),
        "1. On {host}, run `ldd $(command -v ib_write_bw)`. 2. Install perftest, for GPUs with CUDA and DMA-BUF.",
    ),
    "mpi.interface": Cause(
        "MPI uses an interface that does not lead to the other host",
        not_checkable("the options of mpirun are not in the facts"),
        "Give mpirun `--mca btl_tcp_if_include SUBNET --mca oob_tcp_if_include SUBNET` with the management network of {host}.",
    ),
}
