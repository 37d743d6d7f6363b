# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for the fabric: planes, their subnet managers, and partitions.

Defaults of a subnet manager's settings are those of `opensm -c` (3.3.23). Its M_Key and the other keys are secrets and not part of the
intent, which is written to the run folder: they are variables of the role subnet_manager.
"""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    FILE,
    GUID,
    HOST,
    INTERFACE,
    IPV4_ADDRESS,
    NAME,
    SUBNET,
    Key,
    Section,
    choice,
    flag,
    integer,
    keys,
    matching,
    named,
    number,
    optional,
    text,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import MESH
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.routing import ROUTING

#: The routing engines of opensm (osm_opensm.c of 3.3.24), and those with adaptive routing, which only NVIDIA's opensm has.
ENGINES = ("minhop", "updn", "dnup", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp")
ADAPTIVE_ENGINES = ("ar_updn", "ar_ftree", "ar_dor", "ar_torus")
MEMBERSHIPS = ("full", "limited")
HEX64 = matching(r"0x[0-9a-fA-F]{16}", "64 bits in hexadecimal (0xfe80000000000000)", lower=True)
HOST_OR_GUID = replace(HOST, words="a host name, or a port GUID (0x0002c9030002fb05)")
#: The partition of every port by default (IBTA, 10.9.1).
DEFAULT_KEY = 0x7FFF

_VL_TABLE = matching(r"[0-9]{1,2}:[0-9]{1,3}(,[0-9]{1,2}:[0-9]{1,3}){0,63}", "pairs of virtual lane and weight (0:4,1:0)")
_SL_TABLE = matching(r"[0-9]{1,2}(,[0-9]{1,2}){15}", "sixteen virtual lanes, one for each service level")
QOS = keys(
    "Service levels and virtual lanes, for all kinds of ports. Without a key, opensm's default.",
    enabled=flag("Enable QoS. Without it, opensm puts every partition on service level 0.", False),
    max_vls=integer("Maximum number of virtual lanes; 0 means the port's own.", 0, 15, default=0),
    high_limit=integer("Limit of the high priority arbitration table; -1 means opensm's default.", -1, 255, default=-1),
    vlarb_high=text("High priority arbitration table.", _VL_TABLE),
    vlarb_low=text("Low priority arbitration table.", _VL_TABLE),
    sl2vl=text("The virtual lane of each service level.", _SL_TABLE),
)
LOG = keys(
    "The log of opensm.",
    flags=integer("Logged messages, as bits: 1 errors, 2 information, 4 verbose, 8 debug.", 0, 255, default=3),
    max_size_mb=integer("At this size opensm starts the log again; 0 means no limit.", 0, 1_000_000, default=0),
    flush=flag("Write each line to the file at once.", False),
)
SUBNET_MANAGER = optional(
    keys(
        "Where the subnet manager of the plane runs ([the subnet manager](subnet_manager.md)). Without it, the subnet "
        "manager is not checked. InfiniBand only.",
        kind=choice(
            "`hosts`: opensm on one or two hosts; `switch`: a switch runs it, and the role sets nothing; `none`: the fabric has none.",
            "hosts",
            "hosts",
            "switch",
            "none",
        ),
        hosts=Key(
            (list,), "For `kind: hosts`, the hosts. The first one is the master, the others are standby.", each=text("A host.", HOST)
        ),
        routing=choice(
            "The routing engine. Without it, opensm's default (`minhop`). Only NVIDIA's opensm (DOCA, MLNX_OFED) has the "
            "engines that begin with ar_.",
            None,
            *ENGINES,
            *ADAPTIVE_ENGINES,
        ),
        lmc=integer("LID mask control: each port has 2^lmc LIDs.", 0, 7, default=0),
        sweep_interval_seconds=integer("Interval of opensm's own sweeps for changes; 0 means never.", 0, 86400, default=10),
        subnet_prefix=text(
            "The upper half of the plane's GIDs. Use a different prefix for each plane of a host.", HEX64, default="0xfe80000000000000"
        ),
        m_key_protection_level=integer(
            "What an M_Key protects from others: 0 writing, 1 also reading the key, 2 and 3 all reading.", 0, 3, default=0
        ),
        m_key_lease_seconds=integer("After this time a port loses its M_Key; 0 means never.", 0, 65535, default=0),
        default_membership=choice(
            "Membership of every port in the default partition (0x7fff), if `rdma_partitions` does not define that "
            "partition. Without it, the partition does not change: a new subnet manager of a plane keeps limited members "
            "limited. On a new fabric every port is a full member, as with opensm without a partition file.",
            None,
            *MEMBERSHIPS,
        ),
        switch=text(
            "With `kind: switch`, the switch of the master: its GUID, its node description, or one word of the description. "
            "Without it, any single switch is accepted.",
            matching(r"[!-~][ -~]{0,63}", "a GUID or a node description"),
        ),
        partition_enforcement=choice("Where switches enforce partitions.", "both", "both", "in", "out", "off"),
        qos=QOS,
        log=LOG,
        sharp=flag("Run NVIDIA's aggregation manager (`sharp_am`) on the first host. Needs DOCA or MLNX_OFED.", False),
    )
)
PLANE = keys(
    "A plane.",
    subnet_manager=SUBNET_MANAGER,
    routing=ROUTING,
    ratio=number(
        "Planned oversubscription: bandwidth to the hosts divided by bandwidth to the spines. More is an error. Without "
        "it, oversubscription of a plane with compute rails is a warning.",
        0.1,
        64,
    ),
    plan=text(
        "File on the control node with the planned cabling ([the fabric](fabric.md)). A relative path starts at the inventory's folder.",
        FILE,
    ),
)
MEMBER = Key(
    (str, dict),
    "A host, with all its InfiniBand ports, or one port by its GUID. Or a dictionary of one of these with its own membership.",
    form=HOST_OR_GUID,
    keys={
        "host": text("A host.", HOST),
        "guid": text("A port.", GUID),
        "membership": choice("Membership of this member, if it differs from that of the partition.", None, *MEMBERSHIPS),
    },
)
PARTITION = keys(
    "A partition.",
    key=integer("P_Key without the bit for full membership; 0x7fff is the default partition.", 1, 0x7FFF, required=True),
    members=Key((str, list), "Members: `all` ports, or a list.", required=True, choices=("all",), each=MEMBER),
    membership=choice("`limited` members reach only full members, not each other.", "full", *MEMBERSHIPS),
    shared=flag(
        "Members may be in other partitions too, for example for storage or services. Two partitions that are not shared "
        "have no host in common.",
        False,
    ),
    index0=flag(
        "Put the partition first in the P_Key tables of its members. NCCL and verbs programs use this entry if no index is set.", False
    ),
    ipoib=flag("The partition carries IP over InfiniBand.", False),
    mtu=integer("MTU of IP over InfiniBand on this partition, 2048 or 4096 bytes.", 2048, 4096, default=2048),
    sl=integer("Service level. Values other than 0 need `qos` of the subnet manager.", 0, 15, default=0),
)
IPOIB = optional(
    keys(
        "IP over InfiniBand on this rail, if it needs more than an address on the default partition.",
        mode=choice(
            "`connected` allows an MTU of 65520. The driver of ConnectX-4 and later does not support it.",
            "datagram",
            "datagram",
            "connected",
        ),
        children=named(
            "Interfaces on other partitions, by the name of the partition. The interface is named after the key: `INTERFACE.8001`.",
            NAME,
            keys(
                "A child interface.",
                address=text("IPv4 address with prefix length.", IPV4_ADDRESS),
                mtu_bytes=integer("MTU of the interface. Without it, the MTU of the partition minus 4.", 1280, 65520),
            ),
        ),
    )
)
MANAGEMENT = Key(
    (dict,),
    "The management network of the hosts, by exactly one of these keys ([planes](network.md#management-and-data-plane)). NCCL's own "
    "connections use it. Without it, the interface of Ansible's SSH session. It must not be a rail.",
    keys={
        "interface": text("The interface.", INTERFACE),
        "subnet": text("The subnet of the management addresses, by which each host's interface is found.", SUBNET),
    },
    one_of=True,
)
SECTIONS: dict[str, Section] = {
    "rdma_fabric": Section(
        keys(
            "The fabrics that join the rails.",
            topology=choice(
                "`switched`: every rail connects all hosts; `mesh`: a rail is a cable between two hosts; `single`: one switch.",
                "switched",
                "switched",
                "mesh",
                "single",
            ),
            planes=named("The planes by name.", NAME, PLANE),
            management=MANAGEMENT,
            shared_subnet=flag("Allow two rails of a host in one subnet. Otherwise this is an error.", False),
            mesh=MESH,
            max_outage_ms=integer(
                "The longest outage, in ms, after which the fabric carries traffic again, for example after a cut cable. NCCL must retry "
                "for longer (`nccl.outage`). Without it, this is not checked.",
                1,
                3_600_000,
            ),
        ),
        ("preflight", "link", "fabric", "host", "network", "nccl"),
    ),
    "rdma_partitions": Section(named("Partitions of the InfiniBand planes, by name.", NAME, PARTITION), ("link", "network")),
}
