#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drill_plan
version_added: 0.1.0
short_description: Plan a fire drill, and refuse it if something speaks against it
description:
  - Lists the steps of a drill, which are the faults that C(rdma_drill.allow) permits by name, with the switch, its ports and the two hosts
    that measure each of them; or with the host, its rail and the checks that must see the fault.
  - Fails if a permission cannot be used, if a host of the run is in use, or if the routed fabric is not as planned (C(fabric.bgp)). In
    check mode it lists the reasons and does not fail.
  - Uses the intents, the facts and the answers of the switches that were read in this run. Run M(rdma.cluster.intent),
    M(rdma.cluster.observe) and M(rdma.cluster.router_facts) before. It contacts no host, and changes nothing. Call it once.
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
  again:
    description: Check once more before a further step, and do not show the steps.
    type: bool
    default: false
  of:
    description:
      - V(switches) plans the faults of switches. V(hosts) plans the faults of rails of hosts, and judges all hosts now. It fails if a host
        of a step is in use, or if a check that must see a fault is not ok before it.
    type: str
    choices: [switches, hosts]
    default: switches
seealso:
  - module: rdma.cluster.drill_fault
  - module: rdma.cluster.drill_stream
  - module: rdma.cluster.drill_result
"""

EXAMPLES = r"""
- name: Plan the drill
  rdma.cluster.drill_plan:
  run_once: true
"""

RETURN = r"""
steps:
  description: The names of the steps.
  type: list
  elements: str
  returned: always
  sample: ["silence leaf1 swp1"]
refusals:
  description: What speaks against the drill. Empty if it may begin.
  type: list
  elements: str
  returned: always
  sample: ["node1 is in use: job process 4711 (slurmstepd)"]
hold_seconds:
  description: How long a fault lasts.
  type: int
  returned: success
looks:
  description: With O(of=hosts), how often to look at most, by the phase of a step.
  type: dict
  returned: success
explained:
  description: The steps and the reasons as text.
  type: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
