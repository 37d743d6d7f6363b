#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: recorder
version_added: 0.1.0
short_description: Install the recorder of changes on a host
description:
  - Installs a program that records what changes on the host, with a service and a timer of systemd that starts it at boot and whenever it
    has ended.
  - It records the carrier of interfaces, the states and rates of RDMA ports, GID tables, error counters that rose, modules, drivers,
    firmware, the kernel, the kernel parameters of this collection, interrupts, boots, and steps of the clock.
  - The record is in C(/var/lib/rdma-cluster/recorder), two files of JSON lines that replace each other. The program only reads the host,
    and needs no capability of root.
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
  state:
    description: V(absent) stops the recorder and removes its files. The record stays.
    type: str
    choices: [present, absent]
    default: present
  interfaces:
    description: Interfaces to record although no device is below them, for example VLANs. Bonds are always recorded.
    type: list
    elements: str
    default: []
  size_mib:
    description: The largest size of the record, in MiB.
    type: int
    default: 16
seealso:
  - module: rdma.cluster.recorder_read
"""

EXAMPLES = r"""
- name: Record what changes on the hosts
  rdma.cluster.recorder:
    size_mib: 16
"""

RETURN = r"""
files:
  description: The files that were written or removed.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.service import ensure_recorder, recorder_files, remove_recorder


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "interfaces": {"type": "list", "elements": "str", "default": []},
            "size_mib": {"type": "int", "default": 16},
        },
        supports_check_mode=True,
    )
    given, runner = module.params, SubprocessRunner()
    try:
        if given["state"] == "absent":
            change = remove_recorder(runner=runner, check_mode=module.check_mode)
        else:
            files = recorder_files(given["interfaces"], given["size_mib"] * 2**20)
            change = ensure_recorder(files, runner=runner, check_mode=module.check_mode)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(change), diff=change.diffs, files=[file.path for file in change.files])


if __name__ == "__main__":
    main()
