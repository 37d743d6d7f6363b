#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_results
version_added: 0.1.0
short_description: Copy a host's results of a sweep to the control node
description:
  - Calls M(rdma.cluster.perftest_rounds) with O(rdma.cluster.perftest_rounds#module:state=collected) until the sweep has ended on the
    host. It appends new results to C(HOST.jsonl) in the O(folder) of this run, one line for each result.
  - C(HOST.failures.jsonl) contains the raw output of the first 32 failures, and C(HOST.counters.json) the error counters that rose
    during the sweep.
  - Removes nothing from the host, so that another run can collect the results if this one is lost.
  - If the host is lost, the collected results are kept, and the task tries once more before it fails.
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
    description: The total time to wait for the end of the sweep.
    type: int
    required: true
  poll_seconds:
    description: How long a single call to the host waits for the end. New results arrive at this interval.
    type: int
    default: 15
  folder:
    description: The folder of the files, in the folder of this run.
    type: str
    default: pairs
  host:
    description: The name of the host in the plan, if it is not the name in the inventory, as with C(delegate_to).
    type: str
"""

EXAMPLES = r"""
- name: Collect the sweep
  rdma.cluster.pair_results:
    sweep: "{{ __pairs_sweep.sweep }}"
    wait_seconds: "{{ __pairs_sweep.runtime_max_seconds }}"
"""

RETURN = r"""
records:
  description: The number of collected results.
  type: int
  returned: always
unreadable:
  description: The number of the host's records that were invalid or did not belong to the plan.
  type: int
  returned: always
stored:
  description: The file with the results on the control node.
  type: str
  returned: always
running:
  description: Whether the runner still works. V(true) if the wait ended first.
  type: bool
  returned: success
finished:
  description: Whether the runner has ended and all results were collected.
  type: bool
  returned: always
reason:
  description: Why the sweep is not finished.
  type: str
  returned: success
  sample: the sweep still runs
"""
