#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: topology_plan
version_added: 0.1.0
short_description: Plan the switches and cables of a fabric before it is bought
description:
  - Reads the request C(rdma_plan) of its host, which is usually C(localhost). An invalid key or value is refused with the nearest valid
    one.
  - Compares a single switch, leaves and spines, a fat tree of three levels, a rail-optimized fabric, a plane for each rail, a mesh and a
    ring. Chooses the cheapest one that holds all bounds, by price if the switch has one, else by switches and then cables.
  - Reports switches, cables, free ports, oversubscription, the exact bisection without and with failures, and the cost of one failure.
  - If no fabric holds the request, it fails with what is short, by how much, and the nearest plans that work.
  - Writes to C(plan/) of the folder of this run the plan (C(topology.json), C(topology.txt)), a summary (C(summary.md), C(summary.html)),
    the cabling list (C(cables.csv), C(cables.html)), the cables of each plane for the fabric stage (C(cabling/PLANE.yml)), the ports of
    each switch (C(ports/SWITCH.csv)), drawings (C(drawings/)), the bill of materials (C(bom.csv)) and an inventory (C(inventory.yml)).
  - With C(rdma_plan.existing), keeps all cables of an earlier plan, and writes the added ones to C(growth.csv). If that is not possible, it
    fails with the number of hosts that the existing fabric holds, and with what a new plan would move.
  - With C(rdma_plan.from_fabric), compares the fabrics that the fabric stage has stored with the best plan for their hardware. It writes
    C(found.txt), C(found.md) and C(found.html).
  - Contacts no host. Call it once.
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
  - module: rdma.cluster.mesh_plan
"""

EXAMPLES = r"""
- name: Plan a fabric for 32 hosts with 8 NICs
  rdma.cluster.topology_plan:
  run_once: true
  vars:
    rdma_plan:
      hosts: 32
      nics_per_host: 8
      nic_gbps: 400
      switch:
        model: qm9700

- name: Plan its growth
  rdma.cluster.topology_plan:
  run_once: true
  vars:
    rdma_plan:
      hosts: 64
      switch:
        model: qm9700
      existing: latest

- name: Compare the fabric that exists with the best plan for its hardware
  rdma.cluster.topology_plan:
  run_once: true
  vars:
    rdma_plan:
      from_fabric: true
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
problems:
  description: Why the request cannot be planned.
  type: list
  elements: str
  returned: failure
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
