#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: router_facts
version_added: 0.1.0
short_description: Read a router that runs FRR
description:
  - Returns what C(vtysh) prints of BGP, its routes, BFD and the interfaces, the routes of the kernel, and the kernel settings that
    routing depends on. M(rdma.cluster.gate) of the stage C(fabric) compares them with the plan.
  - Changes nothing. A router without FRR, or whose daemons do not run, is not an error. RV(problem) has the reason.
  - The action of this name stores the answer in the folder of this run.
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
  settle_seconds:
    description:
      - Read again until the switches are as planned (C(fabric.bgp)), at most so long. The action uses it, and the module reads once.
    type: int
    default: 0
seealso:
  - module: rdma.cluster.routing_plan
"""

EXAMPLES = r"""
- name: Read the switch
  rdma.cluster.router_facts:
"""

RETURN = r"""
texts:
  description: Command of C(vtysh) → its output.
  type: dict
  returned: always
sysctls:
  description: Kernel setting → its value as text.
  type: dict
  returned: always
kernel:
  description: The output of C(ip -json -4 route show), V(null) if it could not be read.
  type: str
  returned: always
kernel_problem:
  description: Why the routes of the kernel could not be read, V(null) if they were.
  type: str
  returned: always
problem:
  description: Why FRR could not be read, V(null) if it was.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import read_router


def main() -> None:
    module = AnsibleModule(argument_spec={"settle_seconds": {"type": "int", "default": 0}}, supports_check_mode=True)
    module.exit_json(changed=False, **read_router(SysRoot(), SubprocessRunner()))


if __name__ == "__main__":
    main()
