#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ring_plan
version_added: 0.1.0
short_description: Map the rings of a job to the cables of the fabric
description:
  - Reads the rings and trees of a job from the log of NCCL, or takes one ring for each compute rail in the order of a hostfile. It maps
    each hop between hosts to the cables of the graph that the fabric stage of an earlier run has stored.
  - Reports the load of each cable in each direction, the busiest cable, and how often each ring crosses each spine. A flow counts as spread
    evenly over equal shortest paths.
  - Proposes the order of hosts with the fewest changes between leaves, with the load of the cables before and after. The hosts of one leaf
    are together in it.
  - What it cannot map is listed as unknown and not counted, for example a rank without a host in the log, or a host that is not in the
    graph.
  - Uses the intents that M(rdma.cluster.intent) has read in this run. It contacts no host, installs nothing, and changes nothing.
  - Writes C(rings.txt), C(rings.json), and C(hostfile) if another order is better, to C(plan/rings/) of the folder of this run. Call
    it once.
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
  log:
    description:
      - The log of the job, a file on the control node, with the output of all ranks. Any prefix of the lines is allowed.
      - Run the job with C(NCCL_DEBUG=INFO) and C(NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV). Without C(GRAPH), NCCL shows only the first ranks
        of a long ring.
    type: str
  hostfile:
    description:
      - The hostfile of the job, a file on the control node. One of O(log) and O(hostfile) is required.
      - With O(log) too, the log has the rings, and the hostfile the order and the lines of the proposed hostfile.
    type: str
  hosts:
    description:
      - Maps a name in the log or the hostfile to the host's name in the inventory. Use it for names that are neither in the inventory nor
        the host's own name, for example names of containers.
    type: dict
    default: {}
seealso:
  - module: rdma.cluster.diagnose
  - module: rdma.cluster.fabric_discover
  - module: rdma.cluster.scheduler_plan
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:

- name: Map the rings of a job to the cables
  rdma.cluster.ring_plan:
    log: job.log
    hosts:
      trainer-0: node1
      trainer-1: node2
  run_once: true

- name: Find the best order of a hostfile
  rdma.cluster.ring_plan:
    hostfile: hostfile
  run_once: true
"""

RETURN = r"""
explained:
  description: The text.
  type: str
  returned: success
out_of_order:
  description: The hosts that the proposed order moves; empty if the present order is the best, or unknown.
  type: list
  elements: str
  returned: success
  sample: [node5, node9]
unknown:
  description: What is not mapped, each with its name and the reason.
  type: list
  elements: dict
  returned: success
  contains:
    what:
      description: The name of the rank, ring, hop or host.
      type: str
    why:
      description: The reason.
      type: str
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
