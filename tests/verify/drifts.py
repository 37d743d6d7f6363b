# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways in which a node of the lab drifts from what the site run made of it, and the line of drift.jsonl that names each."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab import remote
from lab.cluster import Lab
from lab.plan import Node

UNIT = "rdma-soft-links.service"
OURS = "/etc/sysctl.d/99-zz-rdma-cluster.conf"
LATER = "/etc/sysctl.d/99-zzz-site.conf"
LIMITS = "/etc/security/limits.d/90-rdma-cluster.conf"
MANAGER = "/etc/systemd/system.conf.d/90-rdma-cluster.conf"
NETWORK = "/etc/systemd/network"
ENVIRONMENT = "/etc/rdma-cluster/nccl.env"
#: (host, stage, subject): what a line of drift.jsonl is known by.
Line = tuple[str, str, str]
#: Set in each command: the interface of one of the node's rails. A VLAN has the address of its NIC, and so have all members of a bond.
NETDEV = (
    "netdev=$(for each in /sys/class/net/*/device; do own=${{each%/device}}; of=$own/bonding_slave/perm_hwaddr;"
    " test -e $of || of=$own/address; grep -qi {mac} $of && basename $own; done; true)"
)
RESET_SERVICE_LIMIT = (
    f"cp -a {MANAGER} /tmp/keep; sed -i s/^DefaultLimitMEMLOCK=.*/DefaultLimitMEMLOCK=64M/ {MANAGER}; systemctl daemon-reexec;"
    f" cat /tmp/keep > {MANAGER}"
)


@dataclass(frozen=True)
class Kind:
    """command: run by the node's shell; stage, subject: of the line that names it ("{netdev}" stands for the interface of this rail);
    also: what goes with it."""

    name: str
    command: str
    stage: str
    subject: str
    rail: int = 0
    also: tuple[str, ...] = ()


KINDS = (
    Kind("MTU", "ip link set dev $netdev mtu 1500", "network", "{netdev}"),
    Kind("address", "ip address flush dev $netdev scope global", "network", "{netdev}"),
    Kind("network file", f"sed -i s/9000/1500/ {NETWORK}/60-rdma-rail0.network", "network", f"{NETWORK}/60-rdma-rail0.network"),
    Kind("leftover network file", f"echo > {NETWORK}/60-rdma-old.network", "network", f"{NETWORK}/60-rdma-old.network"),
    Kind("interface down", "ip link set dev $netdev down", "link", "interfaces that are up"),
    Kind("module unloaded", "modprobe -r rdma_ucm", "driver", "loaded kernel modules"),
    Kind("boot file of modules", "rm /etc/modules-load.d/rdma-cluster.conf", "driver", "/etc/modules-load.d/rdma-cluster.conf"),
    Kind("unit disabled", f"systemctl disable {UNIT}", "driver", UNIT),
    Kind("unit stopped", f"systemctl stop {UNIT}", "driver", UNIT),
    Kind("list of Soft-RoCE links", "echo '[]' > /etc/rdma-cluster/soft-links.json", "driver", "/etc/rdma-cluster/soft-links.json"),
    Kind("Soft-RoCE link deleted", "rdma link delete rxe_rail1", "driver", "Soft-RoCE devices"),
    Kind("package removed", "apt-get -qq -y remove mstflint", "driver", "driver.package: package mstflint"),
    Kind("limits file", f"sed -i s/unlimited/64/ {LIMITS}", "host", LIMITS),
    Kind("permissions of the limits file", f"chmod 0600 {LIMITS}", "host", LIMITS),
    Kind("service limit alone", RESET_SERVICE_LIMIT, "host", "memlock of services"),
    Kind("sysctl live", "sysctl -q -w net.ipv4.conf.all.arp_ignore=0", "host", "live sysctl"),
    Kind("sysctl file", f"sed -i 's/arp_ignore = 1/arp_ignore = 0/' {OURS}", "host", OURS),
    Kind("later sysctl file", f"echo net.ipv4.conf.all.arp_announce=0 > {LATER}", "host", LATER),
    Kind("line of nccl.conf", "sed -i '/^# BEGIN rdma.cluster/a NCCL_IB_DISABLE=1' /etc/nccl.conf", "nccl", "/etc/nccl.conf"),
    Kind("environment file", f"rm {ENVIRONMENT}", "nccl", ENVIRONMENT),
)  # fmt: skip


#: What happens to one interface: networkd fixes the others in passing when one of them is fixed, so each is on a node of its own.
APART = ("MTU", "address", "interface down")
#: Without a device for each compute rail the stage nccl changes no file and says so (nccl.hca): its kinds are on other nodes than this one.
NO_DEVICE = "Soft-RoCE link deleted"


def draw(seed: int, nodes: list[Node], count: int) -> list[tuple[Node, Kind]]:
    """So many different kinds, each on some node, and of those that are apart as many as there are nodes; the same for the same seed."""
    chance = random.Random(seed)
    own = dict(zip(APART, chance.sample(nodes, min(len(APART), len(nodes))), strict=False))
    own[NO_DEVICE] = chance.choice(nodes)
    kinds = [kind for kind in KINDS if kind.name in own or kind.name not in APART]
    with_devices = [node for node in nodes if node is not own[NO_DEVICE]]
    return [
        (own.get(kind.name) or chance.choice(with_devices if kind.stage == "nccl" else nodes), kind) for kind in chance.sample(kinds, count)
    ]


def command(node: Node, kind: Kind) -> str:
    return f"set -e; {NETDEV.format(mac=node.rails[kind.rail].mac)}; {kind.command}"


def inflict(lab: Lab, drawn: Iterable[tuple[Node, Kind]]) -> set[Line]:
    """Each drift, done to its node; the line that has to name it."""
    lines = set()
    for node, kind in drawn:
        done = remote.execute(node, lab.folder, f"{command(node, kind)}; echo netdev=$netdev")
        assert done.status == 0, f"{kind.name} on {node.name}: {done.stdout}{done.stderr}"
        netdev = done.stdout.rsplit("netdev=", 1)[1].strip()
        print(f"{node.name}: {kind.name}")
        lines |= {(node.name, kind.stage, subject.replace("{netdev}", netdev)) for subject in (kind.subject, *kind.also)}
    return lines


def named(lines: Sequence[dict[str, str]]) -> set[Line]:
    """What the lines of a drift.jsonl or changes.jsonl are known by."""
    return {(line["host"], line["stage"], line["subject"]) for line in lines}
