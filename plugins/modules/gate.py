#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate
version_added: 0.1.0
short_description: Check the results of a stage before the next one may start
description:
  - Makes findings from intent and facts, records them in the run folder, and decides whether the build goes on. A stage ends with
    three calls, one for each O(scope).
  - An C(error) stops a host. An C(unknown) stops it too, because a check that could not be made proves nothing. C(rdma_checks) sets the
    severity of single checks, or silences them until a date.
  - C(rdma_gate.policy) decides what happens if a host does not pass. With V(stop) the build ends at the gate of this stage. With V(report)
    it goes on with the host.
  - With V(quarantine) the build goes on without the host, if at most C(max_failed_percent) of the hosts are out.
  - In check mode a gate records findings and never fails a host.
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
  stage:
    description: The stage that ends here.
    type: str
    required: true
    choices: [preflight, driver, link, fabric, host, network, qos, gpu, nccl, pairs, collectives]
  scope:
    description:
      - V(fleet) makes the findings that compare hosts. It runs once and fails no host.
      - V(host) judges one host, and fails it unless the policy is V(report).
      - V(decide) applies policy and limit to all hosts that have begun the stage, including unreachable ones. It runs once, with
        C(any_errors_fatal).
    type: str
    required: true
    choices: [fleet, host, decide]
  fail_host:
    description: Whether O(scope=host) fails a host that does not pass. Set it to V(false) for a batch of a rolling stage, because Ansible
      ends the whole run if all hosts of a batch fail.
    type: bool
    default: true
  batch:
    description: Whether O(scope=decide) considers only the hosts judged so far. Hosts that wait for their batch do not count.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Compare the hosts
  rdma.cluster.gate:
    stage: link
    scope: fleet
  run_once: true

- name: Judge each host
  rdma.cluster.gate:
    stage: link
    scope: host

- name: Decide whether the build goes on
  rdma.cluster.gate:
    stage: link
    scope: decide
  run_once: true
  any_errors_fatal: true
"""

RETURN = r"""
status:
  description: The worst status of the host's findings.
  type: str
  returned: with O(scope=host)
  sample: ok
offenders:
  description: The findings that stop the host.
  type: list
  elements: dict
  returned: with O(scope=host)
decision:
  description: C(policy), C(limit_percent), the number of C(hosts), the hosts that are C(out) with the reasons, the C(planes) that do not
    pass, and whether the build C(stops).
  type: dict
  returned: with O(scope=decide)
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
stage:
  description: The stage.
  type: str
  returned: always
"""
