#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: intent
version_added: 0.1.0
short_description: Read what the inventory says the cluster should be
description:
  - Validates the C(rdma_) variables of a host against a closed schema, fills in the defaults, and sets the normalised
    result as C(ansible_facts.rdma_intent). The first task of every stage.
  - A key that the schema does not have is an error that names its nearest neighbour, with file and line where Ansible
    knows them, and so is a variable beginning with C(rdma_) that nobody knows. All problems are reported at once.
  - Runs on the control node and touches no host.
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
  stage:
    description:
      - The stage that begins here. Problems of the intent become its findings, and the host counts as one that has begun it.
    type: str
    choices: [preflight, driver, link, fabric, host, network, qos, gpu, nccl, pairs, collectives]
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:
    stage: driver
"""

RETURN = r"""
ansible_facts:
  description: The normalised intent.
  type: dict
  returned: success
  contains:
    rdma_intent:
      description: Every section of the intent, complete with defaults; their keys are those of the C(rdma_) variables.
      type: dict
      contains:
        rails:
          description: The rails of the host, in order.
          type: list
          elements: dict
        fabric:
          description: What joins the rails.
          type: dict
        driver:
          description: The driver stack, and how it is installed.
          type: dict
        firmware:
          description: Settings in the firmware of the rails' NICs.
          type: dict
        gpudirect:
          description: How NICs reach the memory of GPUs.
          type: dict
        host:
          description: Settings of the operating system.
          type: dict
        roce:
          description: How RoCE is told from other traffic; null where the inventory does not say.
          type: dict
        partitions:
          description: The partitions of InfiniBand planes, by name.
          type: dict
        nccl:
          description: What NCCL is told.
          type: dict
        pairs:
          description: How pairs of hosts are measured and judged.
          type: dict
        collectives:
          description: What collectives must reach.
          type: dict
        gate:
          description: What happens when hosts do not pass a gate.
          type: dict
        checks:
          description: What the site makes of single checks, by their id.
          type: dict
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
stage:
  description: The stage.
  type: str
  returned: with O(stage)
problems:
  description: What is wrong with the intent, a sentence each, with file and line where they are known.
  type: list
  elements: str
  returned: failure
"""
