# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for rails whose address is not on the NIC's own interface: those on a VLAN."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import integer, keys, optional

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
