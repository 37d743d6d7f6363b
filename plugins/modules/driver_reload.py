#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_reload
version_added: 0.1.0
short_description: Take kernel modules out, and put those on disk in
description:
  - Does nothing where every module of O(load) is loaded, and is the one on disk.
  - Else unloads O(modules) one by one with C(modprobe -r), restarts C(openibd) where O(service) says so, loads O(load), and looks
    whether each that is loaded now is the one on disk, by version and srcversion.
  - Refuses to unload anything while a process has a GPU open or a job runs on the host, or if that cannot be read.
  - Nothing is forced. If a module is held by one that is not unloaded before it, or is in use otherwise, this is said, and nothing was
    changed.
  - A step that fails is the end. The error says what is loaded then, and what the kernel said.
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
      - What is to be unloaded, top first. Those that are not loaded are passed over.
      - C(modprobe -r) takes along what only this module has needed.
    type: list
    elements: str
    required: true
  load:
    description: What is to be loaded afterwards, lowest first. With none, nothing is compared before O(modules) are unloaded.
    type: list
    elements: str
    default: []
  service:
    description:
      - V(openibd), which MLNX_OFED and DOCA-OFED bring, unloads and loads their own modules when it is restarted. It fails on others
        that hold them, which O(modules) must name.
      - V(auto) takes it where its unit is installed.
    type: str
    choices: [auto, openibd, none]
    default: auto
  always:
    description: Reload also where the modules are those on disk, as after a change of their options.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run the driver that was installed
  rdma.cluster.driver_reload:
    modules: [nvidia_peermem, rdma_ucm, rdma_cm, ib_umad, mlx5_ib, ib_uverbs, mlx5_core]
    load: [mlx5_core, mlx5_ib, ib_uverbs, rdma_ucm]

- name: Take out what stands on the driver
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
  description: The unit that was restarted, V(null) for none.
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
