#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: soak_result
version_added: 0.1.0
short_description: Record a slice of a soak, or judge all of them
description:
  - Records the error counters of each port of a slice, or computes the rate of errors of each port from all slices of the soak.
  - Contacts no host. Call it once for all hosts.
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
    description:
      - V(slice) appends a line for each port of the slice to C(soak/slices.jsonl) of the run folder, and waits until they are on disk.
      - V(all) writes C(soak/results.json) and the findings C(soak.errors) of all ports. It fails if one of them is an error or unknown.
    type: str
    required: true
    choices: [slice, all]
  hours:
    description: How long the soak measures, instead of C(rdma_soak.hours).
    type: float
seealso:
  - module: rdma.cluster.soak_plan
"""

EXAMPLES = r"""
- name: Record the slice
  rdma.cluster.soak_result:
    kind: slice
  run_once: true
"""

RETURN = r"""
number:
  description: The number of the slice.
  type: int
  returned: for V(slice)
stops:
  description: Why the soak stops after this slice. Empty if it goes on.
  type: str
  returned: for V(slice)
  sample: "node1 is in use: job process 4711 (slurmstepd)"
offenders:
  description: The findings that are an error or unknown.
  type: list
  elements: dict
  returned: for V(all)
explained:
  description: The result as text.
  type: str
  returned: for V(all)
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
