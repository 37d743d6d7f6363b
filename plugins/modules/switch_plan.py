#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: switch_plan
version_added: 0.1.0
short_description: Write a sheet for each switch of the Ethernet planes
description:
  - Writes what is planned for each switch in one place, for the network team. C(plan/switch-NAME.sheet.txt) has its ports and the rail or
    the switch behind each one, the addresses, the VLAN of each host port, the ASN, the BGP neighbors with their ASNs, and the QoS.
    C(plan/switch-NAME.ports.csv) has the ports for a spreadsheet.
  - The ports come from the cabling plans (C(rdma_fabric.planes.NAME.plan)) of planes that are not InfiniBand. Addresses and neighbors come
    from C(rdma_fabric.planes.NAME.routing), VLANs from the rails, and QoS from C(rdma_roce.switches).
  - Uses the intents that M(rdma.cluster.intent) has read in this run. It contacts no host and no switch, and changes nothing. Call it once.
  - Fails where M(rdma.cluster.routing_plan) or M(rdma.cluster.roce_plan) fails.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: rdma.cluster.routing_plan
  - module: rdma.cluster.roce_plan
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:

- name: Write the sheets of the switches
  rdma.cluster.switch_plan:
  run_once: true
"""

RETURN = r"""
explained:
  description: The text.
  type: str
  returned: success
stored:
  description: The files on the control node.
  type: list
  elements: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
