#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: soft_links
version_added: 0.1.0
short_description: Create Soft-RoCE links on NICs, now and at boot
description:
  - Installs C(rdma-soft-links.service) with one file that maps Soft-RoCE devices to NICs.
  - If a link differs from the file, runs the service, and verifies the link afterwards.
  - So the boot and this module apply the same file. NICs are found by PCI address or MAC each time.
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
  links:
    description: The links. If empty, the service and its files are removed. Existing links stay until the next boot.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The name of the RDMA device.
        type: str
        required: true
      type:
        description: The software driver.
        type: str
        choices: [rxe]
        default: rxe
      nic:
        description: The NIC, named by exactly one of C(pci) (V(0000:21:00.0)) and C(mac).
        type: dict
        required: true
  replace_allowed:
    description:
      - Whether to delete and recreate a device that is on another NIC, or has the name that its rail had in the last run, while a GPU
        process or a job uses the host.
      - If V(false), the module changes nothing on a host in use and names such devices in RV(withheld).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Create a Soft-RoCE device on a NIC
  rdma.cluster.soft_links:
    links:
      - name: rxe_rail0
        nic:
          pci: "0000:21:00.0"
"""

RETURN = r"""
created:
  description: The devices that were created, or would be in check mode.
  type: list
  elements: str
  returned: always
  sample: [rxe_rail0]
withheld:
  description: The devices that were not deleted, and what uses the host. Empty if there is none.
  type: str
  returned: always
  sample: rxe_rail0 (job process 4711 (slurmstepd))
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import idle_refusal
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.soft_links import ensure_soft_links

LINK_SPEC = {
    "name": {"type": "str", "required": True},
    "type": {"type": "str", "choices": ["rxe"], "default": "rxe"},
    "nic": {"type": "dict", "required": True},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "links": {"type": "list", "elements": "dict", "required": True, "options": LINK_SPEC},
            "replace_allowed": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        refused = idle_refusal(SysRoot(), SubprocessRunner(), allowed=module.params["replace_allowed"])
        result = ensure_soft_links(module.params["links"], runner=SubprocessRunner(), check_mode=module.check_mode, refused=refused)
    except (ApplyError, CommandError, OSError) as error:
        module.fail_json(msg=str(error))
    withheld = f"{', '.join(result.withheld)} ({refused})" if result.withheld else ""
    module.exit_json(changed=result.changed, created=result.created, withheld=withheld, diff=result.diffs)


if __name__ == "__main__":
    main()
