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
  - Hosts with a GPU process or a job are excluded from the sweep unless C(rdma_load_allowed) is set.
  - If an earlier run started the same sweep and did not collect it, the run continues that sweep. Its name and its secret are kept in
    C(ANSIBLE_HOME) until then.
  - All other kinds need the results of the sweep of this run. Hosts that the sweep found slow or dead are excluded from V(isolation),
    V(cross), V(spines) and V(qos).
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
      - V(sweep) measures the pairs of hosts on every rail.
      - V(suspects) re-measures hosts that the sweep found slow or failed. Each suspect is measured with two good partners, in both
        directions, on its rail and on another one.
      - V(isolation) plans attempts between InfiniBand ports of different partitions, which must fail. A host of each partition tries to
        reach a host of every other partition, with both hosts' own keys. It tries again in every partition of which both are limited
        members. With more than 28 pairs of partitions on a rail, each partition tries two others. C(pairs/isolation.json) of the run
        folder lists the attempts.
      - V(cross) measures ports of different rails of a plane, if C(rdma_pairs.schedule) is V(full+cross). Each port has about
        C(rdma_pairs.partners) partners. Together they cover each rail, and each leaf of the fabric's graph, to each other one, if there are
        enough hosts. C(pairs/cross.json) of the run folder has the ports, what is not covered, and the rails without a way.
      - V(spines) measures the oversubscription of each rail, if the run has the graph of the fabric. Half of the hosts send, each to a host
        below another leaf; then one pair measures alone. A rail needs two pairs. If a rail has no such load, C(pairs/spines.json) of the
        run folder has the reason, and the gate of the pairs stage reports it.
      - V(qos) sends from many hosts to one on each RoCE rail, marked as in C(rdma_roce). A rail needs three hosts.
    type: str
    required: true
    choices: [sweep, suspects, isolation, cross, spines, qos]
  measure:
    description: For V(sweep). V(auto) measures only what has no valid proof, V(true) measures everything, and V(false) measures nothing.
    type: raw
    default: auto
  outside:
    description: For V(sweep). Proven hosts outside the play that may serve as partners. Their facts must have been read.
    type: list
    elements: str
    default: []
  sources:
    description: For V(qos). The maximum number of hosts that send to one target, at least 2. All rails together can have about 85 senders.
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
  description: The hosts of the play that take part; none if there is nothing to measure.
  type: list
  elements: str
  returned: success
outside:
  description: The proven partners outside the play that take part; none in V(isolation), V(cross), V(spines) and V(qos).
  type: list
  elements: str
  returned: success
sweep:
  description: The name of the sweep.
  type: str
  returned: when there is something to measure
plan:
  description: The plan that is sent to the hosts, in the format of M(rdma.cluster.perftest_rounds).
  type: str
  returned: when there is something to measure
token:
  description: The secret with which the runners of this sweep authenticate to each other.
  type: str
  returned: when there is something to measure
runtime_max_seconds:
  description: The maximum duration of the sweep, from the rounds of the plan and the deadlines of its tests.
  type: int
  returned: when there is something to measure
resumed:
  description: Whether an earlier run started the sweep.
  type: bool
  returned: for V(sweep), when there is something to measure
"""
