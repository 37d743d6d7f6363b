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
  - Decides who is to be run, runs M(rdma.cluster.nccl_test) on a host alone, or climbs the ladder of 2, 4, 8 … hosts and finds who is to
    blame where a set of them is not well. What comes of it is judged by the gate of the collectives stage.
  - Hosts with a GPU process or a job on them are left out, unless C(rdma_load_allowed) is set.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is run.
  diff_mode:
    support: none
options:
  scope:
    description:
      - V(plan), to be run once, says who is to be run.
      - V(alone) runs each of them by itself, without MPI; with one GPU there is nothing to run.
      - V(choose), to be run once, says who of them is well alone, and is to launch the others.
      - V(ladder), to be run once and delegated to the launching host, climbs. It writes C(collectives.json) into the run folder.
    type: str
    required: true
    choices: [plan, alone, choose, ladder]
  measure:
    description: V(auto) for what is not proven, V(true) for everything, V(false) for nothing.
    type: raw
    default: auto
  launcher:
    description: The host that O(scope=ladder) is delegated to.
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
  description: Who is to be run, or who is to climb; known good hosts first.
  type: list
  elements: str
  returned: when O(scope=plan) or O(scope=choose)
launcher:
  description: The host that launches.
  type: str
  returned: when O(scope=choose)
run:
  description: Whether the host was run.
  type: bool
  returned: when O(scope=alone)
status:
  description: What came of it, V(well), V(slow), V(failed) or V(setup).
  type: str
  returned: when O(scope=alone) has run it
runs:
  description: How many runs the ladder took.
  type: int
  returned: when O(scope=ladder)
well:
  description: The largest set of hosts that is well.
  type: list
  elements: str
  returned: when O(scope=ladder) has run
"""
