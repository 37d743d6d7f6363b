#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: diagnose
version_added: 0.1.0
short_description: Find out from the log of a job why it failed
description:
  - Reads the log of a job for the error lines of NCCL, CUDA, PyTorch, nccl-tests, Open MPI, UCX, Slurm and the kernel, and says which came
    first and which followed from it.
  - Of each kind of line it has a list of likely causes. Each is checked against the facts and the intent of the hosts that the line
    concerns, and is C(confirmed), C(excluded) or C(not checkable), with what was seen and with what to do, where.
  - Facts are what M(rdma.cluster.observe) or M(rdma.cluster.rdma_facts) have read in this run, of now and not of the time when the job
    failed. They are those of hosts and not of containers.
  - Warnings of NCCL whose text it does not know are shown as C(unknown), grouped by their text.
  - The text and the data are stored in the folder of this run, as C(diagnosis.txt) and C(diagnosis.json). It changes nothing, and judges
    nothing; a log with failures is no failure of this task.
  - Works on the control node alone. Its task runs once for all hosts. A log of a million lines takes some seconds, and memory that does
    not grow with it.
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
      - The file on the control node, as the launcher has written it, with whatever prefix it puts before lines. The output of all ranks
        in one file tells most. Best with C(NCCL_DEBUG=INFO).
    type: str
    required: true
  hosts:
    description:
      - Who is meant by names that are neither those of the inventory nor the hosts' own, for example those of containers.
        The name in the log → the host's name in the inventory.
    type: dict
    default: {}
  problems:
    description:
      - The problems of each host's intent, host → list of texts, as M(rdma.cluster.intent) returns them. Such an intent is not used.
      - The text names the refused intents at its top. A host without any part of an intent is not refused.
    type: dict
    default: {}
seealso:
  - module: rdma.cluster.explain
  - module: rdma.cluster.observe
"""

EXAMPLES = r"""
- name: Read the hosts
  rdma.cluster.rdma_facts:

- name: Diagnose the failed job
  rdma.cluster.diagnose:
    log: job.log
    hosts:
      trainer-0: node1
      trainer-1: node2
  run_once: true
"""

RETURN = r"""
explained:
  description: The diagnosis as a text.
  type: str
  returned: success
first_cause:
  description: The kind of line that is likely to be the cause of the others; null for a log without failures.
  type: str
  returned: success
  sample: memory.locked
confirmed:
  description: The causes that were found to hold, the most interesting ones first.
  type: list
  elements: str
  returned: success
  sample: [memlock]
findings:
  description:
    - Each kind of line, in the order in which to look at them; C(is) is C(error), C(symptom), C(unknown), C(remark) or C(consequence).
    - Warnings of NCCL that fit no known text have the kind C(nccl.unknown), with one entry for each text.
  type: list
  elements: dict
  returned: success
  contains:
    kind:
      description: Stable name of the kind of line.
      type: str
    is:
      description: What it is in the course of things.
      type: str
    says:
      description: What it means.
      type: str
    first_cause:
      description: Whether it is likely to be the cause of the others.
      type: bool
    source:
      description: Whose text it is.
      type: str
    count:
      description: How often it comes.
      type: int
    first_line:
      description: The first such line, with host, rank, number and time, as far as it tells them.
      type: dict
    hosts:
      description: Who wrote it, as they call themselves.
      type: list
      elements: str
    ranks:
      description: The ranks that wrote it.
      type: list
      elements: int
    fields:
      description: What such lines tell, each with its first values.
      type: dict
    causes:
      description: The likely causes, confirmed ones first, with the verdict, what each host shows, and what to do.
      type: list
      elements: dict
unknown_hosts:
  description: Names in the log that are no host of the play.
  type: list
  elements: str
  returned: success
refused_intents:
  description: The hosts whose intent is refused, each with its problems; their causes are checked by facts alone.
  type: dict
  returned: success
stored:
  description: The file with all of it on the control node.
  type: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
