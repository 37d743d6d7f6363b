#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_settle
version_added: 0.1.0
short_description: Wait until the subnet managers have configured the ports of a host
description:
  - After a subnet manager was started or changed, it takes seconds until it has activated the ports of other hosts and set their P_Keys.
  - Waits on each host with InfiniBand rails on such a plane until its ports are active and have the planned P_Keys. It also waits if a port
    waits for a subnet manager that already runs.
  - A timeout does not fail the task; the gate reports it.
  - Does not connect to a host without such ports, nor to any host in check mode.
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
  timeout_seconds:
    description: How long to wait.
    type: int
    default: 60
seealso:
  - module: rdma.cluster.observe
"""

EXAMPLES = r"""
- name: Wait for the subnet manager
  rdma.cluster.fabric_settle:
  register: settled
"""

RETURN = r"""
read:
  description: Whether the ports of the host were read. If so, its facts must be read again.
  type: bool
  returned: success
settled:
  description: Whether all ports were ready in time.
  type: bool
  returned: when the ports were read
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
