#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_suspects
version_added: 0.1.0
short_description: Plan to measure suspects of a sweep again
description:
  - Finds in what this run has measured who is to blame for what is slow or failed, and plans to measure each of them again with two good
    partners, in both directions, on its rail and on another one. Nobody is convicted on one measurement.
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
- name: Find suspects, and good partners for them
  rdma.cluster.pair_suspects:
  run_once: true
  no_log: true
  register: __pairs_again
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
"""
