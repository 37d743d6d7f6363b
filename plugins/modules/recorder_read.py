#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: recorder_read
version_added: 0.1.0
short_description: Read what a host has recorded between two times
description:
  - Reads the events that the recorder (M(rdma.cluster.recorder)) has written on the host, and on request its journal.
  - The action plugin measures how far the host's clock is off the clock of the control node, before it reads. All times that it stores are
    those of the control node's clock.
  - Stores the result in the folder of this run, as C(recorded/HOST.json). It changes nothing.
  - A host without a recorder is no failure. Nothing is known of its changes, and the result says so.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  time:
    description: The time in question, in seconds since 1970 by the clock of the control node. Without it and O(local), now.
    type: float
  local:
    description: The time in question in the time zone of the host, as a log has it, like C(2026-11-23 14:05:00).
    type: str
  before_seconds:
    description: How long before that time the window begins.
    type: float
    default: 600
  after_seconds:
    description: How long after it the window ends.
    type: float
    default: 300
  journal:
    description:
      - Whether to read the journal too, that is the kernel, subnet managers, Fabric Manager, chrony and slurmd. At most 256 KiB of text.
    type: bool
    default: false
seealso:
  - module: rdma.cluster.recorder
  - module: rdma.cluster.changed
"""

EXAMPLES = r"""
- name: Read the events of the last hour
  rdma.cluster.recorder_read:
    before_seconds: 3600
    after_seconds: 0
"""

RETURN = r"""
events:
  description: The number of events.
  type: int
  returned: success
recorded:
  description: Whether the host has a record.
  type: bool
  returned: success
clock:
  description: C(offset_seconds) is how far the host's clock is ahead of the control node's, C(error_seconds) how exactly that is known.
  type: dict
  returned: success
stored:
  description: The file with the events on the control node.
  type: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import FOLDER
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.window import read_record


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "time": {"type": "float"},
            "local": {"type": "str"},
            "before_seconds": {"type": "float", "default": 600},
            "after_seconds": {"type": "float", "default": 300},
            "journal": {"type": "bool", "default": False},
        },
        mutually_exclusive=[("time", "local")],
        supports_check_mode=True,
    )
    given = module.params
    runner = SubprocessRunner() if given["journal"] else None
    try:
        middle = given["time"] if given["local"] is None else given["local"]
        record = read_record(FOLDER, runner, middle, (given["before_seconds"], given["after_seconds"]))
    except (ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, record=record)


if __name__ == "__main__":
    main()
