#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_modules
version_added: 0.1.0
short_description: Load kernel modules in order, now and at boot
description:
  - Loads each module that is not loaded, in the given order, and verifies that it is loaded afterwards.
  - Writes the modules of O(at_boot) to C(/etc/modules-load.d/rdma-cluster.conf).
  - Writes O(options) to C(/etc/modprobe.d/rdma-cluster.conf), before anything is loaded.
  - Never unloads a module. A loaded module keeps its current options.
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
  names:
    description: The modules that must be loaded, in loading order.
    type: list
    elements: str
    required: true
  at_boot:
    description:
      - The modules of O(names) that C(systemd-modules-load) loads at boot.
      - Omit modules that udev and rdma-core load.
    type: list
    elements: str
    default: []
  options:
    description:
      - The options of each module as one text (V(prof_sel=2 debug_mask=1)). They take effect when the module is loaded the next time.
      - If empty, the file is removed.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Load the modules of Soft-RoCE
  rdma.cluster.kernel_modules:
    names: [ib_core, ib_uverbs, rdma_cm, rdma_ucm, rdma_rxe]
    at_boot: [rdma_rxe]

- name: Load the ConnectX driver with an option
  rdma.cluster.kernel_modules:
    names: [mlx5_core, mlx5_ib]
    options:
      mlx5_core: prof_sel=2
"""

RETURN = r"""
loaded:
  description: The modules that were loaded, or would be in check mode.
  type: list
  elements: str
  returned: always
  sample: [rdma_rxe]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import ensure_modules


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "at_boot": {"type": "list", "elements": "str", "default": []},
            "options": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        result = ensure_modules(
            options["names"],
            options["at_boot"],
            {name: str(text) for name, text in options["options"].items()},
            runner=SubprocessRunner(),
            sys=SysRoot(),
            check_mode=module.check_mode,
        )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, loaded=result.loaded, diff=result.diffs)


if __name__ == "__main__":
    main()
