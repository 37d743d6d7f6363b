#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_start
version_added: 0.1.0
short_description: Start a host's share of a sweep, unless the host is in use
description:
  - Starts a sweep with M(rdma.cluster.perftest_rounds), with O(rdma.cluster.perftest_rounds#module:state=started).
  - The module first reads who uses the host. If a GPU process or a job uses it, nothing starts unless C(rdma_load_allowed) is set for the
    host. C(HOST.refused.json) in the O(folder) of this run records this, and the gate reports the host as not measured.
  - If the sweep already runs on the host, the module adopts it.
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
  plan:
    description: The plan as M(rdma.cluster.pair_plan) returns it.
    type: str
    required: true
  token:
    description: The secret with which the runners of this sweep authenticate to each other.
    type: str
    required: true
  runtime_max_seconds:
    description: The time limit of the runner, after which systemd ends it.
    type: int
    required: true
  queue_pairs:
    description: Whether processes with queue pairs count as users of the host, as in M(rdma.cluster.perftest_rounds).
    type: bool
    default: false
  folder:
    description: The folder of the results, in the folder of this run.
    type: str
    default: pairs
  host:
    description: The name of the host in the plan, if it is not the name in the inventory, as with C(delegate_to).
    type: str
"""

EXAMPLES = r"""
- name: Start the sweep
  rdma.cluster.pair_start:
    sweep: "{{ __pairs_sweep.sweep }}"
    plan: "{{ __pairs_sweep.plan }}"
    token: "{{ __pairs_sweep.token }}"
    runtime_max_seconds: "{{ __pairs_sweep.runtime_max_seconds }}"
"""

RETURN = r"""
started:
  description: Whether this call started the runner. V(false) if the sweep was adopted, or if the host is in use.
  type: bool
  returned: success
in_use:
  description: Who uses the host, which is why nothing was started. Empty if the runner was started.
  type: str
  returned: success
  sample: job process 815 (slurmstepd)
"""
