#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_plan
version_added: 0.1.0
short_description: Plan the measurements of pairs of hosts
description:
  - Makes one plan for the hosts from their intent and facts, stores it in the run folder, and draws a token for it. Runs on the control
    node, once for all hosts.
  - Hosts with a GPU process or a job on them are excluded from the sweep, unless C(rdma_load_allowed) is set.
  - If an earlier run started the same sweep and did not collect it, the run continues that sweep. Its name and its secret are kept in
    C(ANSIBLE_HOME) until then.
  - All other kinds need the results of the sweep of this run. Hosts that the sweep found slow or dead take no part in V(isolation),
    V(spines) and V(qos).
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
  kind:
    description:
      - V(sweep) for the pairs of hosts on every rail.
      - V(suspects) for what the sweep found slow or failed. Each suspect is measured again with two good partners, in both directions, on
        its rail and on another one.
      - V(isolation) for attempts between InfiniBand ports of different partitions, which must fail. A host of each partition tries to reach
        one of each other partition, with both hosts' own keys, and again in every partition of which both are limited members. With more
        than 28 pairs of partitions on a rail, each partition tries two others. The attempts are listed in C(pairs/isolation.json) of the
        run folder.
      - V(spines) for the oversubscription of each rail, if the run has the graph of the fabric. Half of the hosts send, each to one below
        another leaf; then one pair measures alone. A rail needs two pairs. C(pairs/spines.json) of the run folder says why a rail has no
        such load, and the gate of the pairs stage reports it.
      - V(qos) for many hosts that send to one, marked as C(rdma_roce) says, on each RoCE rail. A rail needs three hosts.
    type: str
    required: true
    choices: [sweep, suspects, isolation, spines, qos]
  measure:
    description: For V(sweep); V(auto) for what is not proven, V(true) for everything, V(false) for nothing.
    type: raw
    default: auto
  outside:
    description: For V(sweep); hosts outside of the play that are proven and may serve as partners; their facts have been read.
    type: list
    elements: str
    default: []
  sources:
    description: For V(qos); how many hosts send to one target at the most, at least 2. All rails together have 85.
    type: int
    default: 8
"""

EXAMPLES = r"""
- name: Plan the sweep
  rdma.cluster.pair_plan:
    kind: sweep
  run_once: true
  no_log: true
  register: __pairs_sweep

- name: Plan to re-measure suspects with good partners
  rdma.cluster.pair_plan:
    kind: suspects
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
  description: The proven partners outside of the play that take part; none in V(isolation), V(spines) and V(qos).
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
  description: Whether an earlier run started the sweep.
  type: bool
  returned: for V(sweep), when there is something to measure
"""
