#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: limits
version_added: 0.1.0
short_description: Set the limits of locked memory and open files for logins and services
description:
  - RDMA locks the memory that it registers. If locked memory is limited, registration fails with C(Cannot allocate memory).
  - Writes C(/etc/security/limits.d/90-rdma-cluster.conf) for logins, root among them, and C(90-rdma-cluster.conf) in
    C(/etc/systemd/system.conf.d) and C(/etc/systemd/user.conf.d) for services, and in C(/etc/systemd/logind.conf.d).
  - Starts a transient unit, also in check mode, to read the limits that a new service gets. If they differ, systemd reads the files again,
    and the module verifies the result the same way. The current setting of logind comes from logind itself.
  - The systemd defaults apply to services that start later. A running service, such as C(slurmd) or C(containerd), keeps its limits until
    it is restarted, and its jobs inherit them. This module restarts no service. A limit in a service's own unit takes precedence.
  - The module never sets the stack size.
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
  memlock_unlimited:
    description:
      - Whether locked memory is unlimited.
      - If V(false), the setting is removed from the files. The running systemd manager does not change, so services follow at the next
        boot.
    type: bool
    default: true
  open_files:
    description: The minimum soft limit of open files of a process. V(0) does not set it.
    type: int
    default: 0
  keep_ipc:
    description: Whether logind, if it runs, keeps shared memory and semaphores of users who have logged out (C(RemoveIPC=no)).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Allow services and logins to lock any amount of memory
  rdma.cluster.limits:
    memlock_unlimited: true
    open_files: 131072
    keep_ipc: true
"""

RETURN = r"""
live:
  description: The settings that differed on the running system, each with the current and the requested value.
  type: list
  elements: list
  returned: always
  sample:
    - [memlock of services, 8388608 bytes, unlimited]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import LimitsRequest
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits_ensure import ensure_limits

SPEC = {
    "memlock_unlimited": {"type": "bool", "default": True},
    "open_files": {"type": "int", "default": 0},
    "keep_ipc": {"type": "bool", "default": False},
}


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    request = LimitsRequest(**{name: module.params[name] for name in SPEC})
    try:
        result = ensure_limits(request, runner=SubprocessRunner(), sys=SysRoot(), check_mode=module.check_mode)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, live=result.live, diff=result.diffs)


if __name__ == "__main__":
    main()
