#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_discover
version_added: 0.1.0
short_description: Write down the fabrics that were found, as data, as a drawing and as an inventory
description:
  - Writes into the folder of this run C(fabric.json) with the graphs; of each plane C(fabric/PLANE.graphml) for Gephi, yEd and networkx,
    and C(fabric/PLANE.svg), a drawing of leaves, spines and hosts with the bad links in red; and C(fabric/inventory.yml), an
    inventory proposed from the graphs and from the facts of the hosts.
  - The rails of the inventory are told by the leaves, where each leaf is nearly all one rail's, or else by the order of the PCI
    addresses of each host. What looks wrong (a port on another rail's leaf, a slow one) stands in comments at its head.
  - Works on the control node alone and changes nothing on hosts. Its task runs once for all of them.
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
      - The graph of each plane, as M(rdma.cluster.fabric_facts) returns it; each plane once.
    type: list
    elements: dict
    required: true
  planes:
    description:
      - The plane of each graph, in the order of O(graphs). It replaces the name in the graph, which a host has returned.
      - Without it the names in the graphs count. A name has letters, digits, C(_) and C(-), 32 at most, and begins with a letter.
    type: list
    elements: str
seealso:
  - module: rdma.cluster.rdma_facts
"""

EXAMPLES = r"""
- name: Write down the fabric
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
  description: How many links are bad, by plane.
  type: dict
  returned: success
  sample: {default: 2}
problems:
  description: What of the fabrics could not be read, a sentence each.
  type: list
  elements: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
