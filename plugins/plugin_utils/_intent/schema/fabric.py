# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the intent's schema that says what joins the rails: planes, who runs their subnet manager, and partitions.

Defaults of a subnet manager's settings are those of `opensm -c` (3.3.23). Its M_Key and the other keys are secrets and no part of the
intent, which is written to the folder of a run: they are variables of the role subnet_manager.
"""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    ADDRESS,
    FILE,
    HOST,
    NAME,
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

#: Routing engines of opensm (osm_opensm.c of 3.3.24), and those with adaptive routing, which only NVIDIA's own opensm has.
ENGINES = ("minhop", "updn", "dnup", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp")
ADAPTIVE_ENGINES = ("ar_updn", "ar_ftree", "ar_dor", "ar_torus")
MEMBERSHIPS = ("full", "limited")
GUID = matching(r"0x[0-9a-fA-F]{16}", "a port GUID (0x0002c9030002fb05)", lower=True)
HEX64 = matching(r"0x[0-9a-fA-F]{16}", "64 bits in hexadecimal (0xfe80000000000000)", lower=True)
HOST_OR_GUID = replace(HOST, words="the name of a host, or a port GUID (0x0002c9030002fb05)")
#: The partition that every port is in unless it is told otherwise (IBTA, 10.9.1).
DEFAULT_KEY = 0x7FFF

_VL_TABLE = matching(r"[0-9]{1,2}:[0-9]{1,3}(,[0-9]{1,2}:[0-9]{1,3}){0,63}", "pairs of virtual lane and weight (0:4,1:0)")
_SL_TABLE = matching(r"[0-9]{1,2}(,[0-9]{1,2}){15}", "sixteen virtual lanes, one for each service level")
QOS = keys(
    "Service levels and virtual lanes, for all kinds of ports; opensm's own where they are absent.",
    enabled=flag("Set them up; without it opensm puts every partition on service level 0.", False),
    max_vls=integer("The most virtual lanes; 0 is the port's own.", 0, 15, default=0),
    high_limit=integer("Limit of the high priority arbitration table; -1 is opensm's own.", -1, 255, default=-1),
    vlarb_high=text("High priority arbitration table.", _VL_TABLE),
    vlarb_low=text("Low priority arbitration table.", _VL_TABLE),
    sl2vl=text("The virtual lane of each service level.", _SL_TABLE),
)
LOG = keys(
    "Its log.",
    flags=integer("What is logged, as bits: 1 errors, 2 information, 4 verbose, 8 debug.", 0, 255, default=3),
    max_size_mb=integer("At this size the log begins anew; 0 is without limit.", 0, 1_000_000, default=0),
    flush=flag("Write out each line at once.", False),
)
SUBNET_MANAGER = optional(
    keys(
        "Who runs its subnet manager ([the subnet manager](subnet_manager.md)); nobody is looked for where it is absent. InfiniBand only.",
        kind=choice(
            "`hosts`: opensm on one or two hosts; `switch`: a switch runs it, and nothing is set; `none`: a fabric without one.",
            "hosts",
            "hosts",
            "switch",
            "none",
        ),
        hosts=Key((list,), "The hosts of `kind: hosts`; the first is the master, the others stand by.", each=text("A host.", HOST)),
        routing=choice(
            "The routing engine; opensm's own (`minhop`) where it is absent. Only NVIDIA's opensm (DOCA, MLNX_OFED) has those of ar_.",
            None,
            *ENGINES,
            *ADAPTIVE_ENGINES,
        ),
        lmc=integer("A port has 2^lmc LIDs.", 0, 7, default=0),
        sweep_interval_seconds=integer("How often it looks for changes by itself; 0 is never.", 0, 86400, default=10),
        subnet_prefix=text("The upper half of its GIDs; give each plane of a host its own.", HEX64, default="0xfe80000000000000"),
        m_key_protection_level=integer(
            "What an M_Key keeps from others: 0 writing, 1 the key as well, 2 and 3 all reading.", 0, 3, default=0
        ),
        m_key_lease_seconds=integer("After this a port forgets its M_Key; 0 is never.", 0, 65535, default=0),
        default_membership=choice(
            "What every port is in the default partition (0x7fff), where `rdma_partitions` does not name that. Without it the partition "
            "stays as it is. A subnet manager that is new to a plane keeps limited members limited; on a new fabric every port is a full "
            "member, as with opensm without a file.",
            None,
            *MEMBERSHIPS,
        ),
        switch=text(
            "With `kind: switch`, which one: the GUID or the node description of the master, or one word of that. Without it any single "
            "switch is accepted.",
            matching(r"[!-~][ -~]{0,63}", "a GUID or a node description"),
        ),
        partition_enforcement=choice("Where switches enforce partitions.", "both", "both", "in", "out", "off"),
        qos=QOS,
        log=LOG,
        sharp=flag("Run NVIDIA's aggregation manager (`sharp_am`) on the first host; needs DOCA or MLNX_OFED.", False),
    )
)
PLANE = keys(
    "A plane.",
    subnet_manager=SUBNET_MANAGER,
    ratio=number(
        "Its intended oversubscription: bandwidth to the hosts over bandwidth to the spines; more is an error. "
        "Without it, an oversubscription of a plane with compute rails is a warning.",
        0.1,
        64,
    ),
    plan=text(
        "The file on the control node that says how it is cabled ([the fabric](fabric.md)); relative to the playbook's folder.",
        FILE,
    ),
)
MEMBER = Key(
    (str, dict),
    "A host, with all its InfiniBand ports, or one port by its GUID; or a dictionary of one of the two and its own membership.",
    form=HOST_OR_GUID,
    keys={
        "host": text("A host.", HOST),
        "guid": text("A port.", GUID),
        "membership": choice("Its membership, if it is another.", None, *MEMBERSHIPS),
    },
)
PARTITION = keys(
    "A partition.",
    key=integer("Its key, without the bit for full membership; 0x7fff is the default partition.", 1, 0x7FFF, required=True),
    members=Key((str, list), "Who is in it: `all` ports, or a list.", required=True, choices=("all",), each=MEMBER),
    membership=choice("`limited` members talk to full ones only, not to each other.", "full", *MEMBERSHIPS),
    shared=flag("Its members may be in other partitions too: storage, services. Two that are not shared have no host in common.", False),
    index0=flag("It is first in its members' tables, which is what NCCL and verbs use that are not told an index.", False),
    ipoib=flag("It carries IP over InfiniBand.", False),
    mtu=integer("MTU of its IP over InfiniBand, 2048 or 4096 bytes.", 2048, 4096, default=2048),
    sl=integer("Its service level; other than 0 only with `qos` of the subnet manager.", 0, 15, default=0),
)
IPOIB = optional(
    keys(
        "IP over InfiniBand on this rail, where it is more than an address on the default partition.",
        mode=choice(
            "`connected` allows an MTU of 65520, and only drivers other than that of ConnectX-4 and later have it.",
            "datagram",
            "datagram",
            "connected",
        ),
        children=named(
            "Interfaces on other partitions, by the partition's name; they are called `INTERFACE.8001`, by the key.",
            NAME,
            keys(
                "A child interface.",
                address=text("IPv4 address with prefix length.", ADDRESS),
                mtu_bytes=integer("MTU of the interface; that of the partition less 4 where it is absent.", 1280, 65520),
            ),
        ),
    )
)
SECTIONS: dict[str, Section] = {
    "rdma_fabric": Section(
        keys(
            "What joins the rails.",
            topology=choice(
                "`switched`: all hosts meet in every rail; `mesh`: a rail is a cable between two hosts; `single`: one switch.",
                "switched",
                "switched",
                "mesh",
                "single",
            ),
            planes=named("The planes by name.", NAME, PLANE),
            shared_subnet=flag("Two rails of a host may be in one subnet, which is an error otherwise.", False),
        ),
        ("preflight", "link", "fabric", "host"),
    ),
    "rdma_partitions": Section(named("The partitions of InfiniBand planes, by name.", NAME, PARTITION), ("link", "network")),
}
