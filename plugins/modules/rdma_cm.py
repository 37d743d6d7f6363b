#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_cm
version_added: 0.1.0
short_description: Default RoCE mode and type of service of RDMA-CM
description:
  - Gives ports the type of GID and the type of service that RDMA-CM takes for a connection that does not say, through configfs.
  - Reads first, writes what differs, and reads back. The folder of a device in configfs is made, and stays, so that facts can tell it.
  - The kernel keeps the values until the device goes. After a driver reload or a reboot they are its defaults again.
  - Programs that do not use RDMA-CM, such as NCCL, are not affected.
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
  ports:
    description: The ports.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description: The RDMA device (V(mlx5_0)).
        type: str
        required: true
      port:
        description: The number of its port.
        type: int
        default: 1
  mode:
    description: The type of GID.
    type: str
    choices: [IB/RoCE v1, RoCE v2]
    default: RoCE v2
  tos:
    description: The type of service, V(0) to V(255); the DSCP is its upper six bits.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Connections of RDMA-CM carry the DSCP of RDMA
  rdma.cluster.rdma_cm:
    ports:
      - device: mlx5_0
    tos: 106
"""

RETURN = r"""
live:
  description: Each port that differed, with what was seen (V(not asked) in check mode, if nobody has asked before) and what is wished.
  type: dict
  returned: always
  sample:
    mlx5_0/1: ["mode RoCE v2, ToS 0", "mode RoCE v2, ToS 106"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._rdma_cm import MODES, Configfs, RdmaCm, ensure_rdma_cm
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

PORT_SPEC = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "ports": {"type": "list", "elements": "dict", "required": True, "options": PORT_SPEC},
            "mode": {"type": "str", "choices": list(MODES), "default": "RoCE v2"},
            "tos": {"type": "int", "required": True},
        },
        supports_check_mode=True,
    )
    ports = [(port["device"], port["port"]) for port in module.params["ports"]]
    wished = RdmaCm(module.params["mode"], module.params["tos"])
    try:
        result = ensure_rdma_cm(ports, wished, sys=SysRoot(), configfs=Configfs(), check_mode=module.check_mode)
    except (ApplyError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, live=result.live, diff=result.diffs)


if __name__ == "__main__":
    main()
