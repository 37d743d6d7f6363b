#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drill_result
version_added: 0.1.0
short_description: Judge a step of a fire drill, or all of them
description:
  - With O(step), computes how long traffic stopped, writes C(drill/results.json) to the folder of this run, and keeps the outage beside the
    runs, where the check C(nccl.outage) of the nccl stage finds it. Fails if the routed fabric is not as planned after the step, and names
    what is not restored.
  - Without O(step), lists the outages of this run, and compares the longest one of each host's planes with the time for which NCCL retries.
  - With O(of=hosts), judges instead what has answered the fault of a host (gates, alerts), and what is false. Without O(step) it counts
    them.
  - Contacts no host. Call it once.
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
  step:
    description: The number of the step, from 1.
    type: int
  of:
    description: Whether the step is one of the drill of switches, or of that of hosts.
    type: str
    choices: [switches, hosts]
    default: switches
seealso:
  - module: rdma.cluster.drill_plan
"""

EXAMPLES = r"""
- name: Judge the first step
  rdma.cluster.drill_result:
    step: 1
  run_once: true
"""

RETURN = r"""
outage_ms:
  description: How long traffic stopped, in ms. V(null) if it was not measured.
  type: float
  returned: with O(step)
  sample: 890.2
problem:
  description: Why the outage was not measured. Empty if it was.
  type: str
  returned: with O(step)
explained:
  description: The result as text.
  type: str
  returned: always
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
