#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: router_config
version_added: 0.1.0
short_description: Give a router its planned FRR configuration
description:
  - Writes C(frr.conf), C(daemons) and the kernel settings of a router, and applies them with C(frr-reload.py --reload), which keeps
    sessions that do not change. It restarts FRR only if BGP's daemon does not run, so that no session is up.
  - C(vtysh -C) checks the text before it lands. If FRR does not accept it, the old file stays.
  - Refuses to change the ASN of a router with sessions, to replace a C(frr.conf) of others without O(replace_allowed), and to remove lines
    while a host of O(busy) is in use. RV(refused) has the reason.
  - Changes nothing while a GPU process, a job or a user's queue pairs use this host.
  - The action of this name fills in O(conf), O(daemons), O(sysctls) and O(busy) from the folder of this run, where
    M(rdma.cluster.routing_plan) has written them.
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
  conf:
    description: The text of C(frr.conf). The action sets it.
    type: str
  daemons:
    description: The text of C(/etc/frr/daemons). The action sets it.
    type: str
  sysctls:
    description: Kernel setting → value. The action sets it.
    type: dict
  busy:
    description: The hosts of the plane that are in use, in words. The action sets it.
    type: list
    elements: str
    default: []
  replace_allowed:
    description: Whether to replace a C(frr.conf) that has lines of others.
    type: bool
    default: false
seealso:
  - module: rdma.cluster.routing_plan
"""

EXAMPLES = r"""
- name: Apply the plan
  rdma.cluster.router_config:
"""

RETURN = r"""
changes:
  description: The differences, one line each. In check mode, all that would be done.
  type: list
  elements: str
  returned: always
  sample: ["write /etc/frr/frr.conf", "add: router bgp 4200000101"]
installed:
  description: Whether FRR was there before.
  type: bool
  returned: always
refused:
  description: Why nothing was changed although there are differences. Empty otherwise.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._routing.apply import RouterPlan, apply_router, compare_router


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "conf": {"type": "str"},
            "daemons": {"type": "str"},
            "sysctls": {"type": "dict"},
            "busy": {"type": "list", "elements": "str", "default": []},
            "replace_allowed": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    given = module.params
    if not given["conf"] or not given["daemons"] or given["sysctls"] is None:
        module.fail_json(msg="conf, daemons and sysctls are missing: run rdma.cluster.routing_plan before.")
    plan = RouterPlan(given["conf"], given["daemons"], {name: str(value) for name, value in given["sysctls"].items()})
    sys, runner = SysRoot(), SubprocessRunner()
    try:
        change = compare_router(plan, sys, runner, replace_allowed=given["replace_allowed"], busy=given["busy"])
        if change.changed and not change.refusal and not module.check_mode:
            apply_router(plan, change, runner)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    refused = change.refusal if change.changed else ""
    module.exit_json(
        changed=change.changed and not refused, changes=change.words, refused=refused, installed=change.installed, diff=change.diff
    )


if __name__ == "__main__":
    main()
