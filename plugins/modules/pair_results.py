#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_results
version_added: 0.1.0
short_description: Bring a host's results of a sweep home as they come
description:
  - Asks M(rdma.cluster.perftest_rounds) again and again, with O(rdma.cluster.perftest_rounds#module:state=collected), until the sweep has
    come to its end on the host, and adds what is new to C(HOST.jsonl) in the O(folder) of this run, a line for each result.
  - Beside it, C(HOST.failures.jsonl) has the raw output of the first 32 failures, and C(HOST.counters.json) the counters of errors that
    went up during the sweep.
  - Nothing is removed from the host, so that another run finds it if this one is lost.
  - What has come stays if the host is lost; a second attempt is made before the task fails.
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
    description: How long to wait for its end, in all.
    type: int
    required: true
  poll_seconds:
    description: How long a single question to the host waits for the end; as often comes what is new.
    type: int
    default: 15
  folder:
    description: Where the files go, in the folder of this run.
    type: str
    default: pairs
  host:
    description: The name that the plan has for the host that is asked, if it is not that of the inventory, as with C(delegate_to).
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
  description: How many results have come.
  type: int
  returned: always
unreadable:
  description: How many records of the host were none, or of no meeting of the plan.
  type: int
  returned: always
stored:
  description: The file with the results on the control node.
  type: str
  returned: always
running:
  description: Whether the runner still works; it does when the time was over first.
  type: bool
  returned: success
finished:
  description: Whether the runner has come to its end and everything is here.
  type: bool
  returned: always
reason:
  description: Why it is not finished.
  type: str
  returned: success
  sample: the sweep still runs
"""
