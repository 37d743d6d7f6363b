#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_read
version_added: 0.1.0
short_description: Read the fabric of each plane on one host
description:
  - Reads each InfiniBand plane with M(rdma.cluster.fabric_facts) on the first host of the play that has a port with a link on it. The
    result is stored in the folder of this run.
  - If the first host could not read all of a plane, a second task reads that plane on the next host. Otherwise the second task reads
    nothing.
  - With O(what=graphs), each host with hardware RoCE rails also reads its LLDP neighbors.
  - Does not connect to a host without such rails.
  - Run M(rdma.cluster.intent) and M(rdma.cluster.observe) before. It changes nothing. The gate reports what could not be read.
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
  what:
    description:
      - V(graphs) reads the graph of each plane with its counters.
      - V(managers) reads the subnet managers of the planes with a planned subnet manager.
      - V(loaded) reads the graph of each InfiniBand plane with its counters again, after the load of this run. If the run measured no
        pairs, it reads nothing.
    type: str
    choices: [graphs, managers, loaded]
    required: true
seealso:
  - module: rdma.cluster.fabric_facts
  - module: rdma.cluster.gate
"""

EXAMPLES = r"""
- name: Read the fabric of each plane
  rdma.cluster.fabric_read:
    what: graphs
"""

RETURN = r"""
stored:
  description: The files on the control node with the results of this host.
  type: list
  elements: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
