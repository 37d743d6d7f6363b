#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: routing_plan
version_added: 0.1.0
short_description: Plan the routing of the switches of an Ethernet plane
description:
  - Derives the ASN, the loopback, the subnets and the neighbors of each switch of a plane with C(rdma_fabric.planes.NAME.routing) from
    these settings and from the cabling plan of the plane. It shows a table, and writes the configuration of each switch.
  - Uses the intents that M(rdma.cluster.intent) has read in this run. It contacts no host and no switch, and changes nothing.
  - Fails if cables cannot be routed, as one between two leaves; if a pool is too small; if hosts have different settings for one plane; or
    if a rail does not have the address and the gateway that its port of the leaf needs.
  - Writes C(plan/switch-NAME.frr.conf), C(.daemons) and C(.sysctl) to the folder of this run for a switch with C(syntax=frr),
    C(.routing.nv) for C(nvue), and C(.config_db.json) and C(.frr.conf) for C(sonic). Call it once.
  - With C(hosts_peer), it writes C(plan/host-NAME.frr.conf), C(.daemons) and C(.sysctl) for each host that M(rdma.cluster.observe) has
    read in this run, because they name the interfaces of the rails.
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
  - module: rdma.cluster.intent
  - module: rdma.cluster.roce_plan
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:

- name: Plan the routing of the switches
  rdma.cluster.routing_plan:
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
