#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: intent
version_added: 0.1.0
short_description: Read and validate the intent of a host from the inventory
description:
  - Validates the C(rdma_) variables of a host against a closed schema, fills in the defaults, and sets the normalized
    result as C(ansible_facts.rdma_intent). It is the first task of every stage.
  - An unknown key is an error that names the most similar key, with file and line if Ansible knows them. An unknown variable that begins
    with C(rdma_) is an error too. All problems are reported at once.
  - Runs on the control node and contacts no host.
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
      - The stage that begins here. Problems of the intent become findings of the stage, and the host counts as having begun it.
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
  description: The normalized intent.
  type: dict
  returned: success
  contains:
    rdma_intent:
      description: Every section of the intent, complete with defaults. The keys are those of the C(rdma_) variables.
      type: dict
      contains:
        preset:
          description: The known machine that the host is; V(null) if the inventory does not set it.
          type: str
        rails:
          description: The rails of the host, in order.
          type: list
          elements: dict
        fabric:
          description: The fabric that connects the rails.
          type: dict
        driver:
          description: The driver stack, and how it is installed.
          type: dict
        firmware:
          description: Firmware settings of the rails' NICs.
          type: dict
        gpudirect:
          description: The path between NICs and GPU memory.
          type: dict
        host:
          description: Settings of the operating system.
          type: dict
        roce:
          description: How RoCE traffic is marked and prioritized; V(null) if the inventory does not set it.
          type: dict
        partitions:
          description: The partitions of InfiniBand planes, by name.
          type: dict
        nccl:
          description: The settings of NCCL.
          type: dict
        pairs:
          description: How pairs of hosts are measured and judged.
          type: dict
        collectives:
          description: The thresholds of collectives.
          type: dict
        scheduler:
          description: The settings of the topology files for schedulers.
          type: dict
        recorder:
          description: The recorder of changes.
          type: dict
        drill:
          description: The faults that the playbook C(drill) may make.
          type: dict
        soak:
          description: The duration, the load and the limit of the playbook C(soak).
          type: dict
        metrics:
          description: The metrics of the host, which the role P(rdma.cluster.exporter#role) installs.
          type: dict
        gate:
          description: What happens if hosts do not pass a gate.
          type: dict
        checks:
          description: The site's settings of single checks, by check id.
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
  description: The problems of the intent, one sentence for each, with file and line if they are known.
  type: list
  elements: str
  returned: failure
"""
