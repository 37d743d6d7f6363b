# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: the network between hosts: partitions, addresses, MTU, loss."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.host import no_infiniband
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.network import (
    gid_index,
    gid_indexes_differ,
    mtus_of_job_differ,
    no_ip_gid,
    subnets_differ,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import on_layer_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause, judged, not_checkable

_QOS = ("qos.trust", "qos.dscp", "qos.pfc", "qos.ets", "qos.ecn", "qos.traffic_class", "qos.overwritten")


FABRIC: dict[str, Cause] = {
    "ib.pkey": Cause(
        "partitions separate the hosts", on_layer_of("IB", judged("link", "link.pkey", "link.partitions")), "Run the link stage for {host}."
    ),
    "ib.sm": Cause(
        "the subnet manager did not configure the port",
        on_layer_of("IB", judged("link", "link.sm")),
        "1. Run `sminfo` on {host}. 2. Start a subnet manager, or run the link stage.",
    ),
    "mad.ethernet": Cause(
        "the port is not InfiniBand, which has no such management",
        no_infiniband,
        "1. On {host}, run `ibstat`, and check `Link layer`. 2. Name an InfiniBand port: `-C DEVICE -P PORT`. For RoCE, use `rdma link` "
        "and `ethtool -S`.",
    ),
    "mad.node": Cause(
        "the device node of management packets is missing, or not readable",
        not_checkable("the nodes of management packets were not read"),
        "1. On {host}, run `ls -l /dev/infiniband/umad*`. 2. Run `modprobe ib_umad`. 3. Run the tool as root.",
    ),
    "mad.route": Cause(
        "a cable, switch or host on the route is down, busy or has another M_Key",
        not_checkable("the fabric was not read"),
        "1. On {host}, run `ibqueryerrors` and `iblinkinfo | grep -i down`. 2. Follow the route of the line: `smpquery -D nodedesc ROUTE`. "
        "3. Reseat the cable or restart the device at its end.",
    ),
    "sm.second": Cause(
        "another process uses the port for the same management class",
        not_checkable("the processes of the host were not read"),
        "1. On {host}, run `pgrep -a opensm`, and end the other one. 2. Check that the kernel's ib_umad works: `sminfo`. 3. If it does not "
        "since a new kernel, start the previous one.",
    ),
    "gid.differs": Cause(
        "the hosts use different GID indexes",
        on_layer_of("RoCE", gid_indexes_differ),
        "1. Compare `show_gids` and NCCL_IB_GID_INDEX on all hosts of the job. 2. Unset it (NCCL 2.21 or newer finds it), or run the nccl "
        "stage for them.",
    ),
    "gid.index": Cause(
        "the GID index does not belong to a RoCE v2 address",
        on_layer_of("RoCE", gid_index),
        "Unset NCCL_IB_GID_INDEX on {host} (NCCL 2.21 or newer finds it), or set the index of RoCE v2 on IPv4 from `show_gids`.",
    ),
    "gid.none": Cause("a RoCE port has no IP address", on_layer_of("RoCE", no_ip_gid), "Run the network stage for {host}."),
    "gid.planned": Cause("a rail lacks its planned GID", judged("network", "network.gid"), "Run the network stage for {host}."),
    "gid.subnet": Cause(
        "the two ends are in different subnets",
        subnets_differ,
        "1. On {host}, run `ip route get` with the address of the other end. 2. Set NCCL_CROSS_NIC=0 if rails are separate networks; in a "
        "mesh set NCCL_IB_SUBNET_AWARE_ROUTING=1.",
    ),
    "mtu": Cause(
        "MTUs differ", mtus_of_job_differ, "1. Run the network stage for {host}. 2. Test the path to its partners: `ping -M do -s 8972`."
    ),
    "mtu.planned": Cause(
        "a rail lacks its planned MTU", judged("network", "network.mtu", "network.rdma_mtu"), "Run the network stage for {host}."
    ),
    "arp": Cause("several rails answer for each other's addresses", judged("host", "host.sysctl"), "Run the host stage for {host}."),
    "qos": Cause("RoCE is not lossless", on_layer_of("RoCE", judged("qos", *_QOS)), "Run the qos stage for {host}."),
    "loss": Cause(
        "the fabric loses packets or is down between them",
        not_checkable("switches were not read"),
        "1. Measure the pair: `ansible-playbook rdma.cluster.pairs`. 2. Check `ethtool -S` on {host} and the discards of its switch ports.",
    ),
}
