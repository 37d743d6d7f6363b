#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spine_load_plan
version_added: 0.1.0
short_description: Plan to let all pairs of a rail meet across the spines at once, and one pair alone
description:
  - Plans the measurement of each rail's oversubscription, if this run has measured pairs and has the graph of their fabric. Half of the
    hosts send, each to one below another leaf; then one pair measures alone.
  - Nobody takes part whom the sweep has found slow or dead, nor what hangs on one leaf beyond half of all. A rail needs two pairs. Why a
    rail has no such load stands in C(pairs/spines.json) of the run's folder, and the gate of the pairs stage tells it.
  - Runs on the control node, once for all hosts, after the results of the sweep were collected.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Plan the load
  rdma.cluster.spine_load_plan:
  run_once: true
  no_log: true
  register: __pairs_fabric_load_plan
"""

RETURN = r"""
hosts:
  description: The hosts of the play that take part; none if there is nothing to be measured.
  type: list
  elements: str
  returned: success
outside:
  description: Nobody; only hosts of the play take part.
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
"""
