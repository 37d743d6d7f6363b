#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: peermem
version_added: 0.1.0
short_description: Keep nvidia_peermem loaded, now and at boot
description:
  - Loads C(nvidia_peermem) and verifies that it is loaded. NICs access GPU memory through this module if DMA-BUF does not work.
  - If the module was built without the loaded RDMA stack, or for another one, the NVIDIA driver must be rebuilt. The module rebuilds it
    once with DKMS for the running kernel, and loads the module again.
  - The rebuild requires O(rebuild_allowed), and a host without a GPU process or job. If the build fails, the installed driver stays in
    place.
  - Writes C(/etc/modules-load.d/rdma-cluster-gpudirect.conf) only after the module could be loaded, and removes the file if it could not.
    Otherwise C(systemd-modules-load.service) would fail at every boot.
  - Never unloads the module.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Check mode cannot predict a rebuild of the driver, because only loading the module shows whether it is necessary.
  diff_mode:
    support: full
options:
  state:
    description:
      - V(loaded) loads the module now and at boot.
      - V(not_at_boot) removes the file for the boot. A loaded module stays until the next boot.
    type: str
    choices: [loaded, not_at_boot]
    default: loaded
  rebuild_allowed:
    description:
      - Whether the NVIDIA driver may be rebuilt and its installed modules replaced.
      - If a build is necessary but not allowed, RV(withheld) reports it.
    type: bool
    default: false
  build_minutes:
    description: The time limit for a build of the NVIDIA driver.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: Load nvidia_peermem, now and at boot
  rdma.cluster.peermem:

- name: Load nvidia_peermem, and rebuild the NVIDIA driver if necessary
  rdma.cluster.peermem:
    rebuild_allowed: true

- name: Do not load nvidia_peermem at boot, because the path is DMA-BUF
  rdma.cluster.peermem:
    state: not_at_boot
"""

RETURN = r"""
loaded:
  description: Whether the module was loaded, or would be in check mode.
  type: bool
  returned: always
rebuilt:
  description: The DKMS driver that was rebuilt, or V(null).
  type: str
  returned: always
  sample: nvidia/550.54.15
withheld:
  description: The driver that must be rebuilt, and why it was not. Empty if there is none.
  type: str
  returned: always
  sample: "nvidia/550.54.15 has to be built again by DKMS for the loaded RDMA stack: not allowed"
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.peermem import ensure_loaded, ensure_not_at_boot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import refusal


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["loaded", "not_at_boot"], "default": "loaded"},
            "rebuild_allowed": {"type": "bool", "default": False},
            "build_minutes": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    try:
        if module.params["state"] == "not_at_boot":
            result = ensure_not_at_boot(check_mode=module.check_mode)
        else:
            result = ensure_loaded(
                build_seconds=60.0 * module.params["build_minutes"],
                refused=lambda: refusal(SysRoot(), SubprocessRunner(), allowed=module.params["rebuild_allowed"]),
                runner=SubprocessRunner(),
                sys=SysRoot(),
                check_mode=module.check_mode,
            )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    details = {"loaded": result.loaded, "rebuilt": result.rebuilt, "withheld": result.withheld}
    module.exit_json(changed=result.changed, diff=result.diffs, **details)


if __name__ == "__main__":
    main()
