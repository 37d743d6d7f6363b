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
  - Loads C(nvidia_peermem), through which NICs reach the memory of GPUs where DMA-BUF cannot work, and looks whether it is there.
  - Where it was built without the RDMA stack that is loaded, or against another one, builds the NVIDIA driver again with DKMS for the
    running kernel, once, and tries again, if O(rebuild_allowed) is V(true) and neither a GPU process nor a job uses the host. A build that
    fails leaves the installed driver in its place.
  - Writes C(/etc/modules-load.d/rdma-cluster-gpudirect.conf) only after it could be loaded, and removes it where it could not, because
    a module that cannot be loaded makes C(systemd-modules-load.service) fail at every boot.
  - Never unloads the module.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Whether the driver has to be built again shows only when the module is loaded; check mode does not foretell it.
  diff_mode:
    support: full
options:
  state:
    description:
      - V(loaded) now and at boot.
      - V(not_at_boot), the file for the boot is removed; a module that is loaded stays until the next boot.
    type: str
    choices: [loaded, not_at_boot]
    default: loaded
  rebuild_allowed:
    description:
      - Whether the NVIDIA driver may be built again and its installed modules be replaced.
      - If a build is necessary and not allowed, RV(withheld) says so.
    type: bool
    default: false
  build_minutes:
    description: How long a build of the NVIDIA driver may take.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: NICs reach the memory of GPUs through nvidia_peermem
  rdma.cluster.peermem:

- name: The same on a host that may build its NVIDIA driver again
  rdma.cluster.peermem:
    rebuild_allowed: true

- name: The path is DMA-BUF, which needs no module
  rdma.cluster.peermem:
    state: not_at_boot
"""

RETURN = r"""
loaded:
  description: Whether the module was loaded, or would be in check mode.
  type: bool
  returned: always
rebuilt:
  description: The driver in DKMS that was built again, V(null) for none.
  type: str
  returned: always
  sample: nvidia/550.54.15
withheld:
  description: The driver that has to be built again, and why it is not; empty if there is none.
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
    told = {"loaded": result.loaded, "rebuilt": result.rebuilt, "withheld": result.withheld}
    module.exit_json(changed=result.changed, diff=result.diffs, **told)


if __name__ == "__main__":
    main()
