#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drill_fault
version_added: 0.1.0
short_description: Make a fault on a switch or a host for a fire drill, and end it
description:
  - Sets uplinks of a Linux switch down, drops every packet at them, or stops FRR.
  - On a host, sets the interface of a rail down, sets its MTU to 1500, removes its address, or moves its GID to another index.
  - Before that it arms a transient timer of systemd, C(rdma-drill-restore-TOKEN.timer). The timer ends the fault after O(seconds), also if
    the control node or the connection is lost. If the timer is not active, the module fails and changes nothing.
  - Refuses a port that carries Ansible's SSH session, a port without carrier, a second drill, and a machine with a GPU process, a job or
    queue pairs of a user. It also refuses a rail with a default route, with TCP connections, or in a bond, a VLAN or a bridge, and a host
    with storage over RDMA.
  - With O(state=ended) it ends the fault, waits until ports and service are up again, and disarms the timer. For a rail it waits until
    MTU, addresses, routes and GIDs are as before. If something is not as before, it fails and names it, and the timer stays armed.
  - The action of this name runs the module on the switch or the host of O(step), and skips all others. It makes a fault of a switch once
    both streams run. It fills in all other options but O(state) and O(of).
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
  of:
    description: Whether O(step) is a step of the drill of switches, or of that of hosts.
    type: str
    choices: [switches, hosts]
    default: switches
  state:
    description: V(made) makes the fault, V(ended) ends it.
    type: str
    choices: [made, ended]
    required: true
  fault:
    description:
      - V(cut) sets the ports down. V(silence) drops every packet at them and keeps their carrier. V(stop_frr) stops C(frr.service).
        V(ports_down) is V(cut) for all uplinks.
      - V(rail_down) sets the interface of a rail down. V(mtu_1500) sets its MTU. V(address_lost) removes the rail's address.
        V(gid_moved) removes it and adds it again after another one, so that its GID gets a later index.
      - The action sets it.
    type: str
    choices: [cut, silence, stop_frr, ports_down, rail_down, mtu_1500, address_lost, gid_moved]
  address:
    description: The planned address of the rail, with its prefix length. The action sets it.
    type: str
  ports:
    description: The interfaces of the fault; for V(stop_frr), all uplinks; on a host, that of the rail. The action sets it.
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
from ansible_collections.rdma.cluster.plugins.module_utils._drill.fault import KINDS, end, make, preview, refuse_session, refuse_state
from ansible_collections.rdma.cluster.plugins.module_utils._drill.rail import RAIL_KINDS
from ansible_collections.rdma.cluster.plugins.module_utils._driver.storage_uses import read_storage_uses
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import read_addresses
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import in_use_now
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import read_client, read_session


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "int"},
            "state": {"type": "str", "choices": ["made", "ended"], "required": True},
            "of": {"type": "str", "choices": ["switches", "hosts"], "default": "switches"},
            "fault": {"type": "str", "choices": [*KINDS, *RAIL_KINDS]},
            "address": {"type": "str"},
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
    kind, ports, address = module.params["fault"], list(module.params["ports"]), module.params["address"]
    runner, sys = SubprocessRunner(), SysRoot()
    addresses = {name: entry.ipv4 for name, entry in read_addresses(runner).items()}
    refuse_session(read_session(sys, runner, addresses), ports, sys, runner, read_client(sys))
    refuse_state(kind, ports, sys, runner)
    _refuse_users(kind, runner, sys)
    lines = preview(kind, ports, runner=runner, sys=sys, address=address) if kind in RAIL_KINDS else ports
    if not module.check_mode:
        make(kind, ports, module.params["seconds"], module.params["token"], runner=runner, sys=sys, address=address)
    return {"changed": True, "diff": listed_diff(f"{kind} on {', '.join(ports)}, for a drill", lines)}


def _refuse_users(kind: str, runner: SubprocessRunner, sys: SysRoot) -> None:
    """Raise ApplyError if a job uses the machine or, for a fault of a rail, storage over RDMA."""
    users = in_use_now(sys, runner)
    if users:
        raise ApplyError(f"This machine is in use: {users}.")
    if kind not in RAIL_KINDS:
        return
    storage = read_storage_uses(sys)
    if storage is None:
        raise ApplyError("Whether storage uses RDMA on this host is unknown: there is no /proc/mounts.")
    if storage:
        raise ApplyError(f"Storage uses RDMA on this host: {'; '.join(each.what for each in storage[:3])}.")


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
