#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cpu_power
version_added: 0.1.0
short_description: Set the governor and idle states of the CPUs, now and at boot
description:
  - If C(tuned) runs, creates a profile C(rdma-cluster) that includes the active profile, and activates it. Otherwise tuned would overwrite
    both settings.
  - If C(tuned) does not run, installs C(rdma-cpu.service), which writes the values of one file to sysfs at boot. If the current values
    differ, the module also runs it now.
  - Skips settings that the kernel does not have, such as frequencies in most virtual machines. The gate of the host stage reports them.
  - With neither option, removes the module's own files. The values stay until the next boot.
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
  governor:
    description: The frequency governor of all CPUs, one of C(scaling_available_governors).
    type: str
  max_cstate_latency_us:
    description: The maximum wake-up latency of idle states in microseconds. The CPUs do not enter idle states with a higher latency.
    type: int
  change_allowed:
    description:
      - Whether to make the change while a GPU process or a job uses the host.
      - If V(false), the module changes nothing on a host in use and reports the difference in RV(withheld).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Set full speed, and prevent deep idle states
  rdma.cluster.cpu_power:
    governor: performance
    max_cstate_latency_us: 10
"""

RETURN = r"""
live:
  description: The current settings that differed, each with the current and the requested value.
  type: list
  elements: list
  returned: always
  sample:
    - [governor of the CPUs, powersave, performance]
withheld:
  description: The differences that were not changed, and who uses the host. Empty if there are none.
  type: str
  returned: always
  sample: "governor of the CPUs: powersave to performance (job process 4711 (slurmstepd))"
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import read_cpu
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu_ensure import CpuRequest, ensure_cpu
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import idle_refusal


def main() -> None:
    options = {"governor": {"type": "str"}, "max_cstate_latency_us": {"type": "int"}}
    module = AnsibleModule(argument_spec={**options, "change_allowed": {"type": "bool", "default": False}}, supports_check_mode=True)
    request = CpuRequest(**{name: module.params[name] for name in options})
    try:
        result = ensure_cpu(
            request,
            runner=SubprocessRunner(),
            look=lambda: read_cpu(SysRoot(), running=True),
            check_mode=module.check_mode,
            refused=(refused := idle_refusal(SysRoot(), SubprocessRunner(), allowed=module.params["change_allowed"])),
        )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    withheld = f"{', '.join(result.withheld)} ({refused})" if result.withheld else ""
    module.exit_json(changed=result.changed, live=result.live, withheld=withheld, diff=result.diffs)


if __name__ == "__main__":
    main()
