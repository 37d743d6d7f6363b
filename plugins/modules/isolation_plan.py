#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: isolation_plan
version_added: 0.1.0
short_description: Plan measurements between partitions, which must fail
description:
  - If this run has measured pairs whose InfiniBand ports are in different partitions, plans that a host of each tries to reach one of each
    other, both with their own keys, and once more in every partition of which both are limited members (the default one, as a rule).
  - Nobody takes part whom the sweep has found slow or dead, so that a failure speaks of partitions. With more than 28 pairs of partitions
    on a rail each partition tries two others. What is tried stands in C(pairs/isolation.json) of the run's folder.
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
- name: Plan what must fail
  rdma.cluster.isolation_plan:
  run_once: true
  no_log: true
  register: __pairs_fabric_load_isolation
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
