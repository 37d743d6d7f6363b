#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate
version_added: 0.1.0
short_description: Ask what must hold before the next stage may start
description:
  - Makes findings from intent and facts, records them in the run folder, and decides whether the build goes on. A stage ends with
    three calls, one for each O(scope).
  - An C(error) stops a host, and so does an C(unknown), since what could not be checked is not known to be well. C(rdma_checks)
    sets the severity of single checks, or silences them until a date.
  - What happens to a host that does not pass says C(rdma_gate.policy). With V(stop) the build ends at the gate of this stage; with
    V(quarantine) it goes on without the host while not more than C(max_failed_percent) of the hosts are out; with V(report) it
    goes on with it.
  - In check mode a gate records and never fails a host.
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
      - V(fleet) makes the findings that compare hosts; it runs once and fails nobody.
      - V(host) judges one host, and fails it unless the policy is to report.
      - V(decide) compares all hosts that have begun the stage, unreachable ones included, with policy and limit; it runs once, with
        C(any_errors_fatal).
    type: str
    required: true
    choices: [fleet, host, decide]
  fail_host:
    description: Whether O(scope=host) fails a host that does not pass. A batch of a rolling stage is judged without that, since
      Ansible ends the whole run when all hosts of a batch fail.
    type: bool
    default: true
  batch:
    description: Whether O(scope=decide) looks at the hosts that were judged so far alone. Those that wait for their batch do not count.
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
  description: C(policy), C(limit_percent), the number of C(hosts), those that are C(out) and why, C(planes) that do not pass, and whether
    the build C(stops).
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
