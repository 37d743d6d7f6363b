#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: memlock_limits
version_added: 0.1.0
short_description: Let logins and services lock any amount of memory
description:
  - RDMA locks the memory that it registers; where that is limited, registering fails with C(Cannot allocate memory).
  - Writes C(/etc/security/limits.d/90-rdma-cluster.conf) for logins, root among them, and C(90-rdma-cluster.conf) in
    C(/etc/systemd/system.conf.d) and C(/etc/systemd/user.conf.d) for services.
  - Whether systemd has to read them again is decided by what a service that starts now may lock, and that is what is looked
    at afterwards. A transient unit is started for this look, in check mode too.
  - The default of systemd holds for services that start later. A service that runs already, such as C(slurmd) or C(containerd), keeps
    its limit, and hands it to its jobs, until it is restarted; this module restarts none. A service whose unit sets C(LimitMEMLOCK)
    itself has that one.
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
  unlimited:
    description:
      - Whether there shall be no limit.
      - If V(false), the files of this module are removed. The manager that runs is left as it is, so that services follow at the
        next boot.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Let services and logins lock any amount of memory
  rdma.cluster.memlock_limits:
    unlimited: true
"""

RETURN = r"""
live:
  description: What a service could lock before, V(null) if that needed no change.
  type: str
  returned: always
  sample: 8388608 bytes
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._limits import ensure_memlock
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot


def main() -> None:
    module = AnsibleModule(argument_spec={"unlimited": {"type": "bool", "default": True}}, supports_check_mode=True)
    try:
        result = ensure_memlock(
            runner=SubprocessRunner(), sys=SysRoot(), check_mode=module.check_mode, unlimited=module.params["unlimited"]
        )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, live=result.live, diff=result.diffs)


if __name__ == "__main__":
    main()
