#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: subnet_manager
version_added: 0.1.0
short_description: Run opensm on ports of a host, now and at boot
description:
  - Gives opensm its configuration and partitions, a set of files for each plane, and runs it by the service of its distribution.
  - Compares files and service with what is wished, and the files with what the running opensm has read. A change of partitions, and of
    most settings, is told to it by a signal; what it reads only when it starts needs O(restart_allowed).
  - Stops instances of the same service on other ports, and removes files of ours for planes that are not in O(instances).
  - After a start it waits for the port to become active.
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
  flavour:
    description: Whose opensm it is, which says the names of its services.
    type: str
    choices: [debian, rhel, ofed]
    required: true
  instances:
    description: One for each plane.
    type: list
    elements: dict
    required: true
    suboptions:
      plane:
        description: Its name.
        type: str
        required: true
      guid:
        description: The GUID of the port, V(0x0002c9030002fb05).
        type: str
        required: true
      device:
        description: The RDMA device of the port.
        type: str
        required: true
      number:
        description: The number of the port.
        type: str
        required: true
      priority:
        description: From 0 to 15; the highest is the master.
        type: int
        required: true
      config:
        description: The text of opensm.conf.
        type: str
        required: true
      partitions:
        description: The text of partitions.conf.
        type: str
        required: true
  sharp:
    description: Whether NVIDIA's aggregation manager runs.
    type: bool
    default: false
  restart_allowed:
    description: Whether a running opensm may be started anew.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run the subnet managers of this host
  rdma.cluster.subnet_manager:
    flavour: "{{ managers.flavour }}"
    instances: "{{ managers.instances }}"
"""

RETURN = r"""
steps:
  description: What was done beside files, or would be in check mode.
  type: list
  elements: str
  returned: always
  sample: ["reload opensm@0x0002c9030002fb05.service"]
withheld:
  description: Each plane whose opensm would have to be started anew, and why.
  type: dict
  returned: always
  sample:
    compute: ["routing_engine (null) → ftree"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._opensm_ensure import ManagerHost, ensure_managers
from ansible_collections.rdma.cluster.plugins.module_utils._opensm_service import FLAVOURS, Instance
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

INSTANCE = {
    **{name: {"type": "str", "required": True} for name in ("plane", "guid", "device", "number", "config", "partitions")},
    "priority": {"type": "int", "required": True},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "flavour": {"type": "str", "choices": list(FLAVOURS), "required": True},
            "instances": {"type": "list", "elements": "dict", "required": True, "options": INSTANCE},
            "sharp": {"type": "bool", "default": False},
            "restart_allowed": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        result = ensure_managers(
            [Instance(**each) for each in options["instances"]],
            options["flavour"],
            ManagerHost(SysRoot(), SubprocessRunner()),
            sharp=options["sharp"],
            restart_allowed=options["restart_allowed"],
            check_mode=module.check_mode,
        )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, steps=result.steps, withheld=result.withheld, diff=result.diffs)


if __name__ == "__main__":
    main()
