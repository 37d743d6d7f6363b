#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_removal
version_added: 0.1.0
short_description: List the packages that a removal of the driver stack removes
description:
  - Lists the packages of the installed stack, and the dependent packages that are removed with them (C(dpkg --no-act --purge),
    C(rpm --erase --test)).
  - Reads who currently uses the stack. It changes nothing.
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
  packages:
    description: The packages to remove, from the driver plan. The module adds the packages that C(ofed_info) lists.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: List the packages that a switch of the driver stack removes
  rdma.cluster.driver_removal:
    packages: "{{ ansible_facts.rdma.stack.distribution.vendor | list }}"
  register: removal
"""

RETURN = r"""
packages:
  description: The installed packages of the stack with their versions, by name.
  type: dict
  returned: always
  sample: {mlnx-ofed-kernel-dkms: 24.10.OFED.24.10.1.1.4.1-1}
dependants:
  description: Other packages that depend on them with their versions, by name.
  type: dict
  returned: always
  sample: {qemu-system-x86: "1:7.2+dfsg-7"}
in_use:
  description: The current users of the stack. A source that cannot be read counts as a user.
  type: list
  elements: str
  returned: always
  sample: [GPU process 4711 (python3)]
unread:
  description: Why the packages are unknown; none if they are known.
  type: str
  returned: always
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack_removal import read_removal


def main() -> None:
    module = AnsibleModule(argument_spec={"packages": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True)
    module.exit_json(changed=False, **asdict(read_removal(module.params["packages"], SysRoot(), SubprocessRunner())))


if __name__ == "__main__":
    main()
