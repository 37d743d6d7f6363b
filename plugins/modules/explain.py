#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: explain
version_added: 0.1.0
short_description: Explain the RDMA and NCCL state of a host to a person
description:
  - Writes the state of a host as plain text of at most 120 columns. The first parts are the system, the driver stack, each planned
    rail, other RDMA devices, GPUs and GPUDirect RDMA.
  - Errors since the last run, limits, kernel settings, clock, disks and load follow.
  - For each NCCL variable it shows the effective value, the file that sets it, and its meaning.
  - Marks with C(!) the values that differ from the intent or are likely to reduce throughput. It judges nothing; the gates do.
  - Uses the intent and the facts that M(rdma.cluster.intent) and M(rdma.cluster.observe) have read in this run. Without such facts it reads
    the host. Without an intent it compares nothing.
  - Stores the text as C(explain/HOST.txt) in the folder of this run. It changes nothing on the host.
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
  problems:
    description:
      - The problems of the host's intent, as M(rdma.cluster.intent) returns them. They are at the top of the text, and nothing is compared
        with the intent.
    type: list
    elements: str
    default: []
seealso:
  - module: rdma.cluster.intent
  - module: rdma.cluster.observe
  - module: rdma.cluster.rdma_facts
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:

- name: Read the host
  rdma.cluster.observe:

- name: Explain the host
  rdma.cluster.explain:
"""

RETURN = r"""
explained:
  description: The text.
  type: str
  returned: success
stored:
  description: The file with the text on the control node.
  type: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
