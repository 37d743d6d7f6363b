#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mesh_plan
version_added: 0.1.0
short_description: Plan the rails of a mesh of direct cables
description:
  - Gives each cable of C(rdma_fabric.mesh) a name and a subnet, and each of its ends an address. A cable keeps the name and the addresses
    that both ends have in C(rdma_rails). A new cable gets the lowest free subnet of the pool.
  - Reads C(rdma_fabric), C(rdma_rails) and C(rdma_nccl) of all hosts of the play by the schema of the intent. Rails may be missing, or have
    no address yet.
  - With C(cables) set to V(discover), it uses the cables that M(rdma.cluster.link_peers) has found in this run.
  - Writes C(plan/mesh.yml), an inventory with the rails of each host, to the folder of this run, and its difference from the present rails
    to C(plan/mesh.diff). It changes no inventory and contacts no host. Call it once.
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
"""

EXAMPLES = r"""
- name: Plan the mesh
  rdma.cluster.mesh_plan:
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
problems:
  description: Why the cables cannot be planned.
  type: list
  elements: str
  returned: failure
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
