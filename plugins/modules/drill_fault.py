#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drill_fault
version_added: 0.1.0
short_description: Make a fault on a switch for a fire drill, and end it
description:
  - Sets uplinks of a Linux switch down, drops every packet at them, or stops FRR.
  - Before that it arms a transient timer of systemd, C(rdma-drill-restore-TOKEN.timer). The timer ends the fault after O(seconds), also if
    the control node or the connection is lost. If the timer is not active, the module fails and changes nothing.
  - Refuses a port that carries Ansible's SSH session, a port without carrier, a second drill, and a switch with a GPU process, a job or
    queue pairs of a user.
  - With O(state=ended) it ends the fault, waits until ports and service are up again, and disarms the timer. If something is not up again,
    it fails and names it, and the timer stays armed.
  - The action of this name runs the module on the switch of O(step), once both streams run, and skips all others. It fills in O(fault),
    O(ports), O(seconds) and O(token).
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  step:
    description: The number of the step in the drill of this run. Without it, the action ends what an earlier drill has left.
    type: int
  state:
    description: V(made) makes the fault, V(ended) ends it.
    type: str
    choices: [made, ended]
    required: true
  fault:
    description:
      - V(cut) sets the ports down. V(silence) drops every packet at them and keeps their carrier. V(stop_frr) stops C(frr.service).
        V(ports_down) is V(cut) for all uplinks.
      - The action sets it.
    type: str
    choices: [cut, silence, stop_frr, ports_down]
  ports:
    description: The interfaces of the fault; for V(stop_frr), all uplinks. The action sets it.
    type: list
    elements: str
    default: []
  seconds:
    description: After this time the timer ends the fault. The action sets it.
    type: int
  token:
    description: 16 hexadecimal digits, part of the timer's name. The action sets it.
    type: str
seealso:
  - module: rdma.cluster.drill_plan
"""

EXAMPLES = r"""
- name: Make the first fault
  rdma.cluster.drill_fault:
    step: 1
    state: made

- name: End it
  rdma.cluster.drill_fault:
    step: 1
    state: ended
"""

RETURN = r"""
by_timer:
  description: With O(state=ended), whether the timer had ended the fault before.
  type: bool
  returned: success
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._drill.fault import KINDS, end, make, refuse_session, refuse_state
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import read_addresses
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import in_use_now
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import read_client, read_session


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "int"},
            "state": {"type": "str", "choices": ["made", "ended"], "required": True},
            "fault": {"type": "str", "choices": list(KINDS)},
            "ports": {"type": "list", "elements": "str", "default": []},
            "seconds": {"type": "int"},
            "token": {"type": "str", "no_log": False},
        },
        required_if=[("state", "made", ["fault", "ports", "seconds", "token"])],
        supports_check_mode=True,
    )
    try:
        done = _make(module) if module.params["state"] == "made" else _end(module)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**{"by_timer": False, **done})


def _make(module: AnsibleModule) -> dict[str, Any]:
    kind, ports, runner, sys = module.params["fault"], list(module.params["ports"]), SubprocessRunner(), SysRoot()
    addresses = {name: entry.ipv4 for name, entry in read_addresses(runner).items()}
    refuse_session(read_session(sys, runner, addresses), ports, sys, runner, read_client(sys))
    refuse_state(kind, ports, sys, runner)
    users = in_use_now(sys, runner)
    if users:
        raise ApplyError(f"This switch is in use: {users}.")
    if not module.check_mode:
        make(kind, ports, module.params["seconds"], module.params["token"], runner=runner, sys=sys)
    return {"changed": True, "diff": listed_diff(f"{kind} on these ports, for a drill", ports)}


def _end(module: AnsibleModule) -> dict[str, Any]:
    if module.check_mode:
        return {"changed": False}
    ended = end(runner=SubprocessRunner(), sys=SysRoot())
    if ended is None:
        return {"changed": False}
    if ended.left:
        timer = "The timer has run already" if ended.by_timer else "The timer tries once more"
        module.fail_json(msg=f"NOT RESTORED: {'. '.join(ended.left)}. {timer}.")
    return {"changed": True, "by_timer": ended.by_timer}


if __name__ == "__main__":
    main()
