#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_results
version_added: 0.1.0
short_description: Wait for a sweep and bring a host's records home
description:
  - Runs M(rdma.cluster.perftest_rounds) with O(rdma.cluster.perftest_rounds#module:state=collected) and stores the records
    as C(pairs/HOST.jsonl) in the folder of this run.
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
  sweep:
    description: The id of the sweep.
    type: str
    required: true
  wait_seconds:
    description: How long to wait for its end.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Collect the sweep
  rdma.cluster.pair_results:
    sweep: "{{ __pairs_sweep.plan.sweep }}"
    wait_seconds: "{{ __pairs_sweep.runtime_max_seconds }}"
"""

RETURN = r"""
records:
  description: How many records the host had.
  type: int
  returned: success
stored:
  description: The file with the records on the control node.
  type: str
  returned: success
finished:
  description: Whether the runner had come to its end.
  type: bool
  returned: success
"""
