#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_plan
version_added: 0.1.0
short_description: Plan a sweep over all pairs of hosts
description:
  - Makes one plan for all hosts of the play from their intent and facts, stores it in the run folder, and draws a token
    for the run. To be run once.
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
- name: Plan the sweep
  rdma.cluster.pair_plan:
  run_once: true
  no_log: true
  register: __pairs_sweep
"""

RETURN = r"""
plan:
  description: The plan, in the shape that M(rdma.cluster.perftest_rounds) takes.
  type: dict
  returned: success
token:
  description: The secret by which the runners of this sweep know each other.
  type: str
  returned: success
runtime_max_seconds:
  description: The longest that the sweep may take.
  type: int
  returned: success
"""
