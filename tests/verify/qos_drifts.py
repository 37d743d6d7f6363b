# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways in which a node's quality of service and tuning drift, each with the line of drift.jsonl that names it.

node1 has mlnx_qos and OFED's files, node2 iproute2's dcb and the kernel's own.
"""

from __future__ import annotations

from tests.verify.drifts import KINDS, Kind

PROFILE = "/etc/rdma-cluster/roce.json"
PROGRAM = "/usr/local/lib/rdma-cluster/roce_qos.pyz"
TEMPLATE = "/etc/systemd/system/rdma-qos@.service"
CHRONY = "/etc/chrony/sources.d/rdma-cluster.sources"
RULES = "/etc/udev/rules.d/90-rdma-cluster-rings.rules"
FILES = "/sys/class/net/$netdev/ecn"
DEBUGFS = "/sys/kernel/debug/mlx5/$(basename $(readlink -f /sys/class/net/$netdev/device/..))/cc_params"
CLASS = "/sys/class/infiniband/rxe_rail1/tc/1/traffic_class"
CONFIGFS = "d=/sys/kernel/config/rdma_cm/rxe_rail0; mkdir -p $d"
SPARED = ("limits file", "service limit alone", "sysctl live", "sysctl file")
OF_HOST = tuple(kind for kind in KINDS if kind.name in SPARED)
if len(OF_HOST) != len(SPARED):
    raise LookupError(f"tests.verify.drifts has not all of {SPARED}")

#: By the node that they happen to.
QOS_KINDS: dict[str, tuple[Kind, ...]] = {
    "node1": (
        Kind("trust", "mlnx_qos -i $netdev --trust pcp", "qos", "trust of {netdev}"),
        # A port has one or the other.
        Kind("global pause", "ethtool -A $netdev rx on tx on", "qos", "global_pause of {netdev}", also=("pfc of {netdev}",)),
        Kind("RDMA-CM", f"{CONFIGFS}; echo 0 > $d/ports/1/default_roce_tos", "qos", "rdma_cm of {netdev}"),
        Kind("PFC", "mlnx_qos -i $netdev --pfc 0,0,0,0,0,1,0,0", "qos", "pfc of {netdev}", rail=1),
        Kind("DSCP", "mlnx_qos -i $netdev --dscp2prio set,26,5", "qos", "dscp 26 of {netdev}", rail=1),
        Kind("shares", "mlnx_qos -i $netdev --tcbw 70,0,0,30,0,0,0,0", "qos", "ets of {netdev}", rail=1),
        Kind("ECN", f"echo 0 > {FILES}/roce_np/enable/3", "qos", "ecn_np 3 of {netdev}", rail=1),
        Kind("CNPs' DSCP", f"echo 40 > {FILES}/roce_np/cnp_dscp", "qos", "np cnp_dscp of {netdev}", rail=1),
        Kind("DCQCN", f"echo 7 > {FILES}/roce_rp/rpg_threshold", "qos", "rp rpg_threshold of {netdev}", rail=1),
        Kind("traffic class", f"echo tclass=-1 > {CLASS}", "qos", "traffic_class of {netdev}", rail=1),
        Kind("profile on disk", f"sed -i s/26/27/ {PROFILE}", "qos", PROFILE),
        *OF_HOST,
    ),
    "node2": (
        Kind("PFC by dcb", "dcb pfc set dev $netdev prio-pfc 3:off", "qos", "pfc of {netdev}"),
        Kind("DSCP by dcb", "dcb app del dev $netdev dscp-prio 26:3", "qos", "dscp 26 of {netdev}", rail=1),
        Kind("CNPs' DSCP upstream", f"echo 40 > {DEBUGFS}/np_cnp_dscp", "qos", "np cnp_dscp of {netdev}", rail=1),
        Kind("unit disabled", "systemctl disable rdma-qos@$netdev.service", "qos", "rdma-qos@{netdev}.service", rail=1),
        Kind("program gone", f"rm {PROGRAM}", "qos", PROGRAM),
        Kind("rings", "ethtool -G $netdev rx 256", "host", "rx ring of {netdev}"),
        Kind("rule of rings", f"rm {RULES}", "host", RULES),
        Kind("time servers", f"rm {CHRONY}", "host", CHRONY),
    ),
}  # fmt: skip
