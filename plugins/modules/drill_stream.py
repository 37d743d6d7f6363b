#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drill_stream
version_added: 0.1.0
short_description: Measure on a host how long traffic stops
description:
  - Starts, and collects, a program that exchanges numbered UDP packets with another host. It sends one packet of each flow in each
    interval, and records which packets of the other host do not arrive.
  - It works as the transient unit C(rdma-drill-stream-TOKEN.service), which ends by itself after O(seconds). Its files are in
    C(/run/rdma-cluster/drill) until O(state=collected).
  - It loads the fabric with less than 10 Mbit/s, and changes nothing, so only O(state=stopped) reports a change.
  - Starts nothing on a host with a GPU process, a job or queue pairs of a user. RV(withheld) has the reason.
  - The action of this name runs the module on the two hosts of O(step) and skips all others. It fills in all other options but
    O(state), and stores the result in the folder of this run.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Starts and collects nothing.
  diff_mode:
    support: N/A
    details:
      - There is no lasting state to compare.
options:
  step:
    description: The number of the step in the drill of this run. The action requires it.
    type: int
  state:
    description:
      - V(started) starts the program. V(collected) stops it, returns its result and removes its files.
      - V(stopped) stops a program that an interrupted drill has left, and removes its files. It needs no O(step).
    type: str
    choices: [started, collected, stopped]
    required: true
  token:
    description: 16 hexadecimal digits, the same on both hosts, by which the program knows its packets. The action sets it.
    type: str
  address:
    description: The address of this host's rail. The action sets it.
    type: str
  peer:
    description: The address of the other host's rail. The action sets it.
    type: str
  port:
    description: The UDP port that receives. The source ports of the flows come after it. The action sets it.
    type: int
  flows:
    description: The number of flows. The action sets it.
    type: int
  interval_ms:
    description: The time between two packets of a flow. The action sets it.
    type: int
  seconds:
    description: The program ends after this time if nobody collects it. The action sets it.
    type: int
seealso:
  - module: rdma.cluster.drill_plan
"""

EXAMPLES = r"""
- name: Start the streams of the first step
  rdma.cluster.drill_stream:
    step: 1
    state: started

- name: Collect them
  rdma.cluster.drill_stream:
    step: 1
    state: collected
"""

RETURN = r"""
result:
  description: With O(state=collected), what was received, and the holes in it. Times are in ms, by the clock of the sender.
  type: dict
  returned: success
withheld:
  description: The users of the host, because of which nothing was started. Empty otherwise.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._drill.stream_unit import Stream, collect, start, stop
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import in_use_now

NEEDED = ["address", "peer", "port", "flows", "interval_ms", "seconds", "token"]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "int"},
            "state": {"type": "str", "choices": ["started", "collected", "stopped"], "required": True},
            "token": {"type": "str", "no_log": False},
            "address": {"type": "str"},
            "peer": {"type": "str"},
            "port": {"type": "int"},
            "flows": {"type": "int"},
            "interval_ms": {"type": "int"},
            "seconds": {"type": "int"},
        },
        required_if=[("state", "started", NEEDED)],
        supports_check_mode=True,
    )
    given, runner = module.params, SubprocessRunner()
    if module.check_mode:
        module.exit_json(changed=False, result={}, withheld="")
    try:
        if given["state"] == "collected":
            module.exit_json(changed=False, result=collect(runner), withheld="")
        if given["state"] == "stopped":
            module.exit_json(changed=stop(runner), result={}, withheld="")
        withheld = in_use_now(SysRoot(), runner)
        if not withheld:
            start(Stream(**{name: given[name] for name in NEEDED}), runner)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, result={}, withheld=withheld)


if __name__ == "__main__":
    main()
