#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drill_look
version_added: 0.1.0
short_description: Find what answers a fault of a host in a fire drill
description:
  - Judges all hosts of the run as the gates of the stages link, network, qos and nccl would, and compares the findings with those before
    the fault. It writes no findings, and no gate decides.
  - If C(rdma_drill.alerts_url) is set, it also reads the alerts that fire, from the control node.
  - Uses the facts that M(rdma.cluster.observe) read last. It contacts no host, and changes nothing. Call it once for all hosts, in a loop.
    It waits until 3 s have passed since it began, unless no further look is needed.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: N/A
    details:
      - It looks at a fault that was made, and check mode makes none.
  diff_mode:
    support: none
options:
  step:
    description: The number of the step, from 1.
    type: int
    required: true
  phase:
    description:
      - V(before) keeps the state before the fault. V(during) adds what has answered since the fault was made. V(after) finds whether all is
        quiet again.
    type: str
    choices: [before, during, after]
    required: true
  finished:
    description: RV(finished) of the look before. If it is the one of this step and phase, there is nothing to do.
    type: str
    default: ""
seealso:
  - module: rdma.cluster.drill_plan
  - module: rdma.cluster.drill_fault
  - module: rdma.cluster.drill_result
"""

EXAMPLES = r"""
- name: Look at all hosts
  rdma.cluster.drill_look:
    step: 1
    phase: during
  run_once: true
  register: look
"""

RETURN = r"""
finished:
  description: Step and phase if no further look of the phase is needed, else empty.
  type: str
  returned: always
  sample: "1 during"
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
