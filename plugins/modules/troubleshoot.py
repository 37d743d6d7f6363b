#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: troubleshoot
version_added: 0.1.0
short_description: Find what explains a symptom of a cluster
description:
  - Goes through the decision tree of a symptom. Each question of the tree is answered by checks of the gates. The module stops at the first
    question that explains the symptom, and prints the questions up to there with their answers.
  - An answer is C(yes), C(yes, with warnings), C(no), C(not known), C(not measured) or C(does not apply). Only C(no) explains the symptom;
    for the first question, whether every host answers, also C(not known). A bad measurement of bandwidth is the symptom itself, and does
    not end the walk.
  - Checks of the pairs and collectives stages use the findings of the newest run that judged the host. The module measures nothing.
  - Uses the intents, facts and fabric graphs that M(rdma.cluster.intent), M(rdma.cluster.observe) and M(rdma.cluster.fabric_read) have
    read in this run.
  - Stores the text and the data in the folder of this run, as C(troubleshooting.txt) and C(troubleshooting.json). It changes nothing.
  - Runs only on the control node, once for all hosts.
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
  symptom:
    description:
      - V(slow), a job is slower than expected. V(hang), a job hangs. V(gdr), GPUDirect RDMA is not used.
      - V(ecmp), some paths across the spines are overloaded. V(flap), a link goes down and up. V(drops), packets are discarded.
      - V(mesh), hosts with direct cables do not connect. V(library), a program fails with unknown symbols or versions. V(registration),
        memory cannot be registered.
    type: str
    required: true
    choices: [slow, hang, gdr, ecmp, flap, drops, mesh, library, registration]
  problems:
    description:
      - The problems of each host's intent as M(rdma.cluster.intent) returns them, host → list of texts. Such an intent is not used.
    type: dict
    default: {}
seealso:
  - module: rdma.cluster.diagnose
  - module: rdma.cluster.explain
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:

- name: Read the host
  rdma.cluster.observe:

- name: Find why a job is slow
  rdma.cluster.troubleshoot:
    symptom: slow
  run_once: true
"""

RETURN = r"""
explained:
  description: The path through the tree as text.
  type: str
  returned: success
explained_by:
  description: The number of the question that explains the symptom, from 1; V(null) if none does.
  type: int
  returned: success
path:
  description: The answered questions in order.
  type: list
  elements: dict
  returned: success
  contains:
    question:
      description: The question.
      type: str
    checks:
      description: The IDs of the checks that answer it.
      type: list
      elements: str
    answer:
      description: The answer.
      type: str
      sample: "yes"
    findings:
      description: The findings that are C(error), C(unknown) or C(warning), the errors first.
      type: list
      elements: dict
stored:
  description: The file with the path on the control node.
  type: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
