# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for rails whose address is not on the NIC's own interface: those on a VLAN or a bond."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import HASHES, LACP, MODES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import MAC, PCI, Key, choice, integer, keys, optional, text

#: 0 and 4095 are reserved, and 1 is the VLAN of untagged frames on most switches (IEEE 802.1Q).
FIRST_ID, LAST_ID = 2, 4094

VLAN = optional(
    keys(
        "The VLAN of a RoCE rail. Address, MTU and routes are then on an interface of this VLAN, `PARENT.ID`, which the network stage "
        "creates, or `RAIL.ID` if that name is longer than 15 characters. The NIC gets the same MTU.",
        id=replace(integer("The number of the VLAN.", FIRST_ID, LAST_ID), required=True),
        pcp=integer(
            "The priority in the tag of all frames of this VLAN, for switches that do not look at DSCP. It must be the `priority` of "
            "`rdma_roce`. Without it, the priority of the tag is not changed.",
            0,
            7,
        ),
    )
)
BOND = optional(
    keys(
        "The bond of a RoCE rail, made of several NICs. Address, MTU and routes are then on the bond, or on the VLAN on it. The network "
        "stage makes the bond `bond-RAIL`, unless the host already has a bond of these members: that one is used as it is.",
        members=Key(
            (list,),
            "The NICs of the bond, at least two. The first one is the `nic` of the rail.",
            required=True,
            each=Key(
                (dict,),
                "A NIC, by one of the two keys.",
                required=True,
                one_of=True,
                keys={"pci": text("PCI address of the NIC.", PCI), "mac": text("MAC address of the NIC.", MAC)},
            ),
        ),
        mode=choice("`802.3ad`: LACP with the switches; `active-backup`: one NIC at a time.", LACP, *MODES),
        lacp_rate=choice("How often LACP is sent: `fast`, each second, or `slow`, each 30 s.", "fast", "fast", "slow"),
        hash=choice("What chooses the member for a packet.", "layer3+4", *HASHES),
    )
)
