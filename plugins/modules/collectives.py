#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: collectives
version_added: 0.1.0
short_description: Run collectives on each host and on growing sets of them
description:
  - Plans the runs, runs M(rdma.cluster.nccl_test) on a host alone, or runs it on 2, 4, 8 … hosts together. If a set of hosts fails, it
    finds the host or connection at fault. The gate of the collectives stage judges the results.
  - Excludes hosts with a GPU process or a job unless C(rdma_load_allowed) is set.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Runs nothing.
  diff_mode:
    support: none
options:
  scope:
    description:
      - V(plan) returns the hosts to run. Run it once.
      - V(alone) runs each of these hosts by itself, without MPI. On a host with one GPU there is nothing to run.
      - V(choose) returns the hosts that passed alone, and the host that launches the joint runs. Run it once.
      - V(ladder) runs 2, 4, 8 … hosts together and writes C(collectives.json) to the run folder. Run it once, delegated to the launching
        host.
    type: str
    required: true
    choices: [plan, alone, choose, ladder]
  measure:
    description: V(auto) runs only what has no valid proof, V(true) runs everything, and V(false) runs nothing.
    type: raw
    default: auto
  launcher:
    description: The host to which O(scope=ladder) is delegated.
    type: str
"""

EXAMPLES = r"""
- name: Plan the runs that have no valid proof
  rdma.cluster.collectives:
    scope: plan
  run_once: true
  register: plan
"""

RETURN = r"""
hosts:
  description: The hosts to run alone, or to run together. Hosts known to be good come first.
  type: list
  elements: str
  returned: when O(scope=plan) or O(scope=choose)
launcher:
  description: The host that launches the joint runs.
  type: str
  returned: when O(scope=choose)
run:
  description: Whether the host was run.
  type: bool
  returned: when O(scope=alone)
status:
  description: The result, V(well), V(slow), V(failed) or V(setup).
  type: str
  returned: when O(scope=alone) has run the host
runs:
  description: The number of joint runs.
  type: int
  returned: when O(scope=ladder)
well:
  description: The largest set of hosts that passed.
  type: list
  elements: str
  returned: when O(scope=ladder) has run
"""
