#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: plugin_transfer
version_added: 0.2.0
short_description: Move data between hosts through NCCL's network plugin and count it at the RDMA ports
description:
  - Loads the network plugin of C(rdma_nccl.plugin) on two hosts and moves 4 MiB through it as NCCL does. One host listens, and the other
    connects. Both register host memory, send or receive 8 messages, and close the connection. The receiver compares every byte.
  - The counters of the RDMA ports and of the interfaces are read before and after. They show whether the plugin used verbs or TCP.
  - In a mesh each host sends to every host with a direct cable. On other fabrics it sends to the next host that it can reach.
  - The plugin is loaded as C(nobody) in a process of its own. A plugin that crashes or hangs is ended and becomes a finding.
  - As a task of a play, the action plugin plans the transfers from the intent and the facts of all hosts, and stores the results for the
    gate (check C(nccl.plugin_transfer)). A host with a GPU process or a job is excluded unless C(rdma_load_allowed) is set.
  - The program is the transient systemd unit C(rdma-plugin-transfer-RUN.service). Hosts meet on TCP port 18590 of their rails.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Moves nothing.
  diff_mode:
    support: none
options:
  scope:
    description:
      - V(plan) plans the transfers without a valid proof. Run it once.
      - V(start) starts them in the background, because both hosts of a pair must work at the same time.
      - V(collect) waits for the results of this host and stores them.
      - The action plugin reads it.
    type: str
    choices: [plan, start, collect]
  measure:
    description: V(auto) plans only transfers that have no valid proof, V(true) plans all, and V(false) plans none.
    type: raw
    default: auto
  token:
    description: The secret with which the hosts of this run authenticate to each other, from O(scope=plan).
    type: str
  state:
    description: V(started) or V(collected). The action plugin sets it.
    type: str
    choices: [started, collected]
  run:
    description: The id of the run. The action plugin sets it.
    type: str
  host:
    description: The name of the host in the plan. The action plugin sets it.
    type: str
  plan:
    description: The plan as JSON. The action plugin sets it.
    type: str
  load_allowed:
    description: Whether to start on a host in use. The action plugin sets it.
    type: bool
    default: false
  wait_seconds:
    description: How long O(state=collected) waits. The action plugin sets it.
    type: float
    default: 0
requirements:
  - systemd
"""

EXAMPLES = r"""
- name: Plan the transfers through the network plugin
  rdma.cluster.plugin_transfer:
    scope: plan
  run_once: true
  no_log: true
  register: transfers

- name: Start the transfers
  rdma.cluster.plugin_transfer:
    scope: start
    token: "{{ transfers.token }}"
  when: inventory_hostname in transfers.hosts

- name: Collect the results
  rdma.cluster.plugin_transfer:
    scope: collect
  when: inventory_hostname in transfers.hosts
"""

RETURN = r"""
hosts:
  description: The hosts that take part.
  type: list
  elements: str
  returned: when O(scope=plan)
token:
  description: The secret of this run.
  type: str
  returned: when O(scope=plan)
started:
  description: Whether the program was started.
  type: bool
  returned: when O(scope=start)
in_use:
  description: Who uses the host, so that nothing was started. Empty otherwise.
  type: str
  returned: when O(scope=start)
results:
  description:
    - The transfers of this host. C(failed) is why one ended early, and C(mismatch) how the received bytes differ.
    - C(ports) and C(netdevs) are the increases of the counters of RDMA ports and interfaces.
  type: list
  elements: dict
  returned: when O(scope=collect)
  sample:
    - partner: node2
      rail: rail0
      role: sends
      device: rxe0
      bytes: 4194304
      failed: ''
      mismatch: ''
      at: closeSend
      seconds: 1.3
      ports: {rxe0/1: {bytes: null, packets: 4113}}
      netdevs: {rail0: 4465000}
"""

import sys
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import in_use_now
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.unit import TransferUnit


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "scope": {"type": "str", "choices": ["plan", "start", "collect"]},
            "measure": {"type": "raw", "default": "auto"},
            "token": {"type": "str", "no_log": True},
            "state": {"type": "str", "choices": ["started", "collected"]},
            "run": {"type": "str"},
            "host": {"type": "str"},
            # Not a secret, but AnsibleModule writes other arguments to the journal.
            "plan": {"type": "str", "no_log": True},
            "load_allowed": {"type": "bool", "default": False},
            "wait_seconds": {"type": "float", "default": 0},
        },
        required_if=[("state", "started", ("run", "host", "plan", "token")), ("state", "collected", ("run",))],
        supports_check_mode=True,
    )
    if module.params["state"] is None:
        module.fail_json(msg="the action plugin of this module did not run: use it as a task, by the name rdma.cluster.plugin_transfer")
    try:
        result = apply(module.params, module.check_mode)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **result)


def apply(options: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    unit = TransferUnit(options["run"], SubprocessRunner())
    if options["state"] == "collected":
        return {"results": [] if check_mode else [asdict(each) for each in unit.collect(options["wait_seconds"])]}
    # A job may have started since the plan was made.
    in_use = "" if options["load_allowed"] else in_use_now(SysRoot())
    if in_use:
        return {"started": False, "in_use": in_use}
    started = unit.start(options["plan"], options["token"], options["host"], python=sys.executable, check_mode=check_mode)
    return {"started": started, "in_use": ""}


if __name__ == "__main__":
    main()
