#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_plan
version_added: 0.1.0
short_description: Plan a sweep over the pairs of hosts
description:
  - Makes one plan for the hosts from their intent and facts, stores it in the run folder, and draws a token for the sweep. To be run once.
  - Hosts with a GPU process or a job on them are left out, unless C(rdma_load_allowed) is set.
  - If the same sweep was begun by an earlier run that has not collected it, that one goes on. Its name and its secret are kept in
    C(ANSIBLE_HOME) until then.
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
  measure:
    description: V(auto) for what is not proven, V(true) for everything, V(false) for nothing.
    type: raw
    default: auto
  outside:
    description: Hosts outside of the play that are proven and may serve as partners; their facts have been read.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Plan the sweep
  rdma.cluster.pair_plan:
  run_once: true
  no_log: true
  register: __pairs_sweep
"""

RETURN = r"""
hosts:
  description: The hosts of the play that take part; none if there is nothing to be measured.
  type: list
  elements: str
  returned: success
outside:
  description: The proven partners outside of the play that take part.
  type: list
  elements: str
  returned: success
sweep:
  description: The sweep's name.
  type: str
  returned: when there is something to measure
plan:
  description: The plan as it travels to the hosts, in the shape that M(rdma.cluster.perftest_rounds) takes.
  type: str
  returned: when there is something to measure
token:
  description: The secret by which the runners of this sweep know each other.
  type: str
  returned: when there is something to measure
runtime_max_seconds:
  description: The longest that the sweep may take, from the rounds of the plan and the deadlines of its tests.
  type: int
  returned: when there is something to measure
resumed:
  description: Whether the sweep is one that an earlier run has begun.
  type: bool
  returned: when there is something to measure
"""
