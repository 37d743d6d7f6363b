#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_settle
version_added: 0.1.0
short_description: Wait until the subnet managers of this run have done their work on a host's ports
description:
  - A subnet manager that was started or changed makes the ports of other hosts active, and gives them their P_Keys, seconds later.
  - Waits on each host with InfiniBand rails on such a plane, until its ports are active and have the planned P_Keys; also where a port
    waits for a subnet manager that runs already. What has not come in time is no failure here; the gate tells it.
  - A host with nothing to wait for is not asked for anything, nor is any host in check mode.
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
  description: Whether the host was asked; its facts are to be read again then.
  type: bool
  returned: success
settled:
  description: Whether all has come in time.
  type: bool
  returned: when it was asked
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
