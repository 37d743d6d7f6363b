#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: soak_plan
version_added: 0.1.0
short_description: Plan a soak and its slices, and refuse it if hosts are in use
description:
  - Plans the pairs of all hosts of the play on every rail, and one slice after the other. In a slice each port meets one partner.
  - Continues the last soak beside the runs if it is not finished and has the same hosts and the same C(rdma_soak). The time between the
    two runs does not count.
  - Uses the intents and the facts that were read in this run. Run M(rdma.cluster.intent) and M(rdma.cluster.observe) before. It contacts
    no host. Call it once for all hosts.
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
      - V(earlier) returns the measurement that a killed run may have left on the hosts. It needs no intent.
      - V(begin) begins or continues a soak. It fails if a GPU process, a job or a process with queue pairs uses a host, unless
        C(rdma_load_allowed) is set for it, or if a host was not read. In check mode it lists the reasons and does not fail.
      - V(slice) plans the next slice, or ends the soak. The result has the keys of M(rdma.cluster.pair_plan).
    type: str
    required: true
    choices: [earlier, begin, slice]
  hours:
    description: How long the soak measures, instead of C(rdma_soak.hours).
    type: float
seealso:
  - module: rdma.cluster.soak_result
  - module: rdma.cluster.pair_plan
"""

EXAMPLES = r"""
- name: Plan the soak
  rdma.cluster.soak_plan:
    kind: begin
  run_once: true
"""

RETURN = r"""
sweep:
  description: The measurement. For V(earlier), the one that may still run on the hosts; empty if none does.
  type: str
  returned: for V(earlier) and V(slice)
  sample: 20261127T120000Z-4711-soak-17
batches:
  description: The number of batches of slices. The last one may have fewer slices.
  type: int
  returned: for V(begin)
batch:
  description: The number of slices of a batch.
  type: int
  returned: for V(begin)
refusals:
  description: What speaks against the soak. Empty if it may begin.
  type: list
  elements: str
  returned: for V(begin)
  sample: ["node1 is in use: job process 4711 (slurmstepd)"]
over:
  description: Why the soak ends. Empty if there is a further slice.
  type: str
  returned: for V(slice)
  sample: its 24 h are over
wait_seconds:
  description: How long to wait before the slice, in seconds.
  type: int
  returned: for V(slice), if there is one
number:
  description: The number of the slice, from 0.
  type: int
  returned: for V(slice), if there is one
explained:
  description: The load of the soak, with all hosts and ports, and the reasons against it, as text.
  type: str
  returned: for V(begin)
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
