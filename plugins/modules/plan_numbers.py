#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: plan_numbers
version_added: 0.1.0
short_description: Compute the uplink of a planned cluster, or the communication time of a training job
description:
  - Reads the request C(rdma_plan) of its host, usually C(localhost). An invalid key or value is refused with the nearest valid one.
  - C(training) computes the time of an all_reduce of the gradients by ring, tree, SHARP and rings of hosts with NVLink, the part of a step
    that waits for it, and the times of single messages.
  - C(uplink) computes the number and rate of the links to storage and other networks, the times of transfers and checkpoints, and the size
    of the management plane. It warns where the sum of links hides the limit of a single flow.
  - A rate or price that is not given is reported as not given. It does not count as zero.
  - Writes C(plan/KIND.json) and C(plan/KIND.txt) to the folder of this run. Contacts no host. Call it once.
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
  kind:
    description: What to compute, by the section of C(rdma_plan) with this name.
    type: str
    required: true
    choices: [uplink, training]
seealso:
  - module: rdma.cluster.topology_plan
"""

EXAMPLES = r"""
- name: Compute the communication time of a model with 7 billion parameters
  rdma.cluster.plan_numbers:
    kind: training
  run_once: true
  vars:
    rdma_plan:
      hosts: 32
      nic_gbps: 400
      training:
        parameters_billions: 7
        compute_seconds: 2
        nvlink_gbytes_per_s: 450

- name: Compute the uplink for image data
  rdma.cluster.plan_numbers:
    kind: uplink
  run_once: true
  vars:
    rdma_plan:
      hosts: 4
      gpus_per_host: 4
      uplink:
        ingest_gbytes_per_s_per_gpu: 1
        burst_gbps: 200
        parameters_billions: 70
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
  description: Why the request cannot be used.
  type: list
  elements: str
  returned: failure
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
