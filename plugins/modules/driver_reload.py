#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_reload
version_added: 0.1.0
short_description: Unload kernel modules and load those on disk
description:
  - Does nothing if every module of O(load) is loaded and is the one on disk.
  - Otherwise it unloads O(modules) one by one with C(modprobe -r), restarts C(openibd) if O(service) requires it, and loads O(load). It
    then verifies by version and srcversion that each loaded module is the one on disk.
  - Refuses to unload anything while a process has a GPU open or a job runs on the host, or if the users cannot be read.
  - Never unloads by force. If another module that is not unloaded first holds a module, or if it is otherwise in use, the task fails and
    changes nothing.
  - Stops at the first failed step. The error lists the loaded modules and the message of the kernel.
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
  modules:
    description:
      - The modules to unload, top first. Modules that are not loaded are skipped.
      - C(modprobe -r) also unloads modules that only this module needed.
    type: list
    elements: str
    required: true
  load:
    description: The modules to load afterwards, lowest first. If empty, O(modules) are unloaded without a comparison.
    type: list
    elements: str
    default: []
  service:
    description:
      - V(openibd) is the service of MLNX_OFED and DOCA-OFED. A restart unloads and loads their own modules. It fails if other modules hold
        them, so O(modules) must name these.
      - V(auto) restarts it if its unit is installed.
    type: str
    choices: [auto, openibd, none]
    default: auto
  always:
    description: Whether to reload even if the modules are those on disk, for example after a change of their options.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Load the installed driver
  rdma.cluster.driver_reload:
    modules: [nvidia_peermem, rdma_ucm, rdma_cm, ib_umad, mlx5_ib, ib_uverbs, mlx5_core]
    load: [mlx5_core, mlx5_ib, ib_uverbs, rdma_ucm]

- name: Unload a module that depends on the driver
  rdma.cluster.driver_reload:
    modules: [nvidia_peermem]
    service: none
"""

RETURN = r"""
unloaded:
  description: The modules that were unloaded, or would be in check mode.
  type: list
  elements: str
  returned: always
  sample: [mlx5_ib, mlx5_core]
restarted:
  description: The unit that was restarted, or V(null).
  type: str
  returned: always
  sample: openibd.service
loaded:
  description: The modules that were loaded.
  type: list
  elements: str
  returned: always
  sample: [mlx5_core, mlx5_ib]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.swap import reload_driver


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "modules": {"type": "list", "elements": "str", "required": True},
            "load": {"type": "list", "elements": "str", "default": []},
            "service": {"type": "str", "choices": ["auto", "openibd", "none"], "default": "auto"},
            "always": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        result = reload_driver(
            options["modules"],
            options["load"],
            service=options["service"],
            always=options["always"],
            runner=SubprocessRunner(),
            sys=SysRoot(),
            check_mode=module.check_mode,
        )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, unloaded=result.unloaded, restarted=result.restarted, loaded=result.loaded, diff=result.diffs)


if __name__ == "__main__":
    main()
