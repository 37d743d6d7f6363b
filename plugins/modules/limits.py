#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: limits
version_added: 0.1.0
short_description: What logins and services may lock of memory and have open of files
description:
  - RDMA locks the memory that it registers; where that is limited, registering fails with C(Cannot allocate memory).
  - Writes C(/etc/security/limits.d/90-rdma-cluster.conf) for logins, root among them, and C(90-rdma-cluster.conf) in
    C(/etc/systemd/system.conf.d) and C(/etc/systemd/user.conf.d) for services, and in C(/etc/systemd/logind.conf.d).
  - Whether systemd has to read them again is decided by what a service that starts now gets, and that is what is looked
    at afterwards. A transient unit is started for this look, in check mode too. logind is asked what it does now.
  - The default of systemd holds for services that start later. A service that runs already, such as C(slurmd) or C(containerd), keeps
    its limit, and hands it to its jobs, until it is restarted; this module restarts none. A service whose unit sets a limit
    itself has that one.
  - The size of the stack is never set.
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
      - Whether there shall be no limit of locked memory.
      - What is not wished leaves the files. The manager that runs is left as it is, so that services follow at the next boot.
    type: bool
    default: true
  open_files:
    description: Files that a process may have open at least, before it asks for more; V(0) leaves it as it is.
    type: int
    default: 0
  keep_ipc:
    description: Whether logind shall leave shared memory and semaphores of users who have logged out (C(RemoveIPC=no)), where it runs.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Let services and logins lock any amount of memory
  rdma.cluster.limits:
    memlock_unlimited: true
    open_files: 131072
    keep_ipc: true
"""

RETURN = r"""
live:
  description: What differed on the running system, what was seen and what is wished.
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
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import LimitsWish
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits_ensure import ensure_limits

SPEC = {
    "memlock_unlimited": {"type": "bool", "default": True},
    "open_files": {"type": "int", "default": 0},
    "keep_ipc": {"type": "bool", "default": False},
}


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    wish = LimitsWish(**{name: module.params[name] for name in SPEC})
    try:
        result = ensure_limits(wish, runner=SubprocessRunner(), sys=SysRoot(), check_mode=module.check_mode)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, live=result.live, diff=result.diffs)


if __name__ == "__main__":
    main()
