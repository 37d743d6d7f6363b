# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host's firewall has to let pass for its rails, derived from the intent."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.firewall import ICMP, TCP, UDP, Opening
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import rail_addresses, resolve


def openings(rails: Sequence[Rail], facts: Facts) -> list[Opening]:
    """Return what has to pass on each rail with an interface and an address: from its own subnets and from those behind its router.

    The kernel filters the data of Soft-RoCE alone: RoCE of a NIC bypasses it.
    """
    found = []
    for rail in resolve(rails, facts):
        if rail.interface is not None and rail.rail["address"] is not None:
            own = dict.fromkeys(str(ipaddress.ip_interface(text).network) for text in rail_addresses(rail.rail))
            kinds = (TCP, UDP, ICMP) if rail.rail["soft"] else (TCP, ICMP)
            found += [Opening(rail.interface, subnet, kinds) for subnet in (*own, *rail.rail["routes"])]
    return found
