#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: planes_proof
version_added: 0.1.0
short_description: Set all rails of a host down for a proof, and up again
description:
  - Proves that the management of a host does not need its rails. The role C(planes) calls the module twice, and opens a new SSH connection
    in between.
  - With O(state=down) it first arms a transient timer of systemd, which sets the rails up and restores their addresses and routes after
    60 seconds. If the timer is not active, the module fails and sets no rail down.
  - With O(state=up) it checks that the name servers and NTP servers that answered before still do. Then it sets the rails up, restores
    addresses and routes that the kernel has removed, waits for them, and disarms the timer.
  - It does nothing on a host in use, and fails if Ansible's SSH session uses a rail.
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
  state:
    description: Whether to set the rails down or up.
    type: str
    choices: [down, up]
    required: true
  netdevs:
    description: The interfaces of all rails. Needed with O(state=down).
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Set the rails down
  rdma.cluster.planes_proof:
    state: down
    netdevs: [ens1, ens2]

- name: Set the rails up
  rdma.cluster.planes_proof:
    state: up
"""

RETURN = r"""
down:
  description: With O(state=down), the interfaces that were set down, or would be in check mode.
  type: list
  elements: str
  returned: always
  sample: [ens1, ens2]
withheld:
  description: The users of the host, because of which nothing was done; otherwise empty.
  type: str
  returned: always
  sample: "GPU process 4711 (python3)"
lost:
  description: With O(state=up), what the host lost while its rails were down, and what did not come back. Empty if the proof has passed.
  type: list
  elements: str
  returned: always
  sample: ["NTP server 192.168.100.5 no longer answers"]
answered:
  description: With O(state=up), the servers that answered before and while the rails were down.
  type: list
  elements: str
  returned: always
  sample: ["name server 10.0.0.53"]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import read_addresses
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import in_use_now
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import read_name_servers
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import read_session
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.planes_proof import answers, bring_up, refuse_session, take_down

NOTHING = {"down": [], "withheld": "", "lost": [], "answered": []}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["down", "up"], "required": True},
            "netdevs": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        made = _down(module) if module.params["state"] == "down" else _up(module)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**{**NOTHING, **made})


def _down(module: AnsibleModule) -> dict[str, Any]:
    netdevs, runner, sys = list(module.params["netdevs"]), SubprocessRunner(), SysRoot()
    if not netdevs:
        return {"changed": False}
    addresses = {name: entry.ipv4 for name, entry in read_addresses(runner).items()}
    refuse_session(read_session(sys, runner, addresses), netdevs, sys)
    withheld = in_use_now(sys, runner)
    if withheld:
        return {"changed": False, "withheld": withheld}
    if not module.check_mode:
        take_down(netdevs, runner=runner, sys=sys, name_servers=read_name_servers(sys), asks=answers)
    return {"changed": True, "down": netdevs, "diff": listed_diff("interfaces that are set down for the proof, then up", netdevs)}


def _up(module: AnsibleModule) -> dict[str, Any]:
    if module.check_mode:
        return {"changed": False}
    outcome = bring_up(runner=SubprocessRunner(), sys=SysRoot(), asks=answers)
    return {"changed": True, "lost": outcome.lost, "answered": outcome.answered}


if __name__ == "__main__":
    main()
