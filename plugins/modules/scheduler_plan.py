#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: scheduler_plan
version_added: 0.1.0
short_description: Plan the topology files of Slurm and Kubernetes
description:
  - Derives the tree of leaves and spines above the hosts from the graph that the fabric stage of an earlier run has stored, and writes it
    for schedulers. Only compute rails count, and each plane has its own tree.
  - Hosts without a valid proof of the pairs stage on each compute rail are not in the tree, and are listed. For Slurm each of them is a
    leaf of its own, so that only jobs of one host run there. C(rdma_scheduler) in the inventory changes this, the plane and the names of
    the nodes.
  - Uses the intents that M(rdma.cluster.intent) has read in this run. It contacts no host, installs nothing, and changes nothing.
  - Writes C(topology.conf), C(topology-block.conf), C(topology.yaml), C(kubernetes-labels.sh) and C(hostfile) to C(plan/scheduler/) of the
    folder of this run, with the difference from the last plan in C(scheduler.diff). Call it once.
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
  - module: rdma.cluster.fabric_discover
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:

- name: Plan the topology of the schedulers
  rdma.cluster.scheduler_plan:
  run_once: true
"""

RETURN = r"""
explained:
  description: The text, with the difference from the last plan.
  type: str
  returned: success
left_out:
  description: The hosts that are not in the trees, each with the reason.
  type: dict
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
