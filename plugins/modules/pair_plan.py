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
  - Makes one plan for the hosts from their intent and facts, stores it in the run folder, and draws a token for the run. To be run once.
  - Hosts with a GPU process or a job on them are left out, unless C(rdma_load_allowed) is set.
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
  hosts:
    description: The hosts whose pairs are to be measured.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Plan the sweep
  rdma.cluster.pair_plan:
    hosts: "{{ __pairs_proofs.unproven }}"
  run_once: true
  no_log: true
  register: __pairs_sweep
"""

RETURN = r"""
hosts:
  description: The hosts of the plan; none if fewer than two may be measured.
  type: list
  elements: str
  returned: success
blocked:
  description: The hosts that are left alone, and what is at work there.
  type: dict
  returned: success
plan:
  description: The plan, in the shape that M(rdma.cluster.perftest_rounds) takes.
  type: dict
  returned: when there is something to measure
token:
  description: The secret by which the runners of this sweep know each other.
  type: str
  returned: when there is something to measure
runtime_max_seconds:
  description: The longest that the sweep may take.
  type: int
  returned: when there is something to measure
"""
