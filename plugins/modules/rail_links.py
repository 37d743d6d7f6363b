#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_links
version_added: 0.1.0
short_description: Set the interfaces of rails up
description:
  - Sets each interface up that is administratively down, and waits for carrier.
  - An interface without carrier does not fail the task. The link gate reports it, with the cable in question.
  - The network manager sets the interfaces up at boot; see M(rdma.cluster.rail_network).
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
  netdevs:
    description: The interfaces.
    type: list
    elements: str
    required: true
  wait_seconds:
    description: How long to wait for carrier on the interfaces that were down.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: Set both rails up
  rdma.cluster.rail_links:
    netdevs: [ens1, ens2]
"""

RETURN = r"""
set_up:
  description: The interfaces that were set up, or would be in check mode.
  type: list
  elements: str
  returned: always
  sample: [ens1]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import ensure_up


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "netdevs": {"type": "list", "elements": "str", "required": True},
            "wait_seconds": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    try:
        set_up = ensure_up(
            module.params["netdevs"], runner=SubprocessRunner(), sys=SysRoot(),
            wait_seconds=module.params["wait_seconds"], check_mode=module.check_mode,
        )  # fmt: skip
    except (ApplyError, CommandError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(set_up), set_up=set_up, diff=listed_diff("interfaces that are up", set_up))


if __name__ == "__main__":
    main()
