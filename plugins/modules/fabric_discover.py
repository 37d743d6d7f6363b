#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_discover
version_added: 0.1.0
short_description: Store the discovered fabrics as data, drawings and a proposed inventory
description:
  - Writes C(fabric.json) with the graphs to the folder of this run.
  - Writes for each plane C(fabric/PLANE.graphml) for Gephi, yEd and networkx, and C(fabric/PLANE.svg), a drawing of leaves, spines and
    hosts with the bad links in red.
  - Writes C(fabric/inventory.yml), an inventory proposed from the graphs and the facts of the hosts.
  - If nearly all ports of each leaf belong to one rail, the leaves determine the rails of the inventory. Otherwise the order of the PCI
    addresses of each host does. Comments at the top of the file list what looks wrong, such as a slow port or a port on another rail's
    leaf.
  - Runs only on the control node, once for all hosts, and changes nothing on hosts.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  graphs:
    description:
      - The graph of each plane as M(rdma.cluster.fabric_facts) returns it. Each plane occurs once.
    type: list
    elements: dict
    required: true
  planes:
    description:
      - The plane of each graph, in the order of O(graphs). It replaces the name in the graph, which a host has returned.
      - By default the names in the graphs are used. A name begins with a letter and has at most 32 letters, digits, C(_) and C(-).
    type: list
    elements: str
seealso:
  - module: rdma.cluster.rdma_facts
"""

EXAMPLES = r"""
- name: Store the discovered fabric
  rdma.cluster.fabric_discover:
    graphs: "{{ [fabric.graph] }}"
    planes: [default]
  run_once: true
"""

RETURN = r"""
stored:
  description: The files on the control node.
  type: list
  elements: str
  returned: success
bad_links:
  description: The number of bad links, by plane.
  type: dict
  returned: success
  sample: {default: 2}
problems:
  description: The parts of the fabrics that could not be read, one sentence for each.
  type: list
  elements: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
