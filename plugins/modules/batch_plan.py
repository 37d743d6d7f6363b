#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: batch_plan
version_added: 0.1.0
short_description: Plan which hosts are changed in batches
description:
  - Adds a host to a group if a change of its rails could harm a user. A later play changes that group in batches.
  - A rail is live if its interface has an address. A host is also live while a GPU process, a job or a user's queue pairs use it, or if
    the users cannot be read.
  - A host without a live rail at the first call of a run is not live for the rest of the run.
  - In check mode no host joins the group, so that one play covers all hosts.
  - Runs only on the control node and uses the facts of M(rdma.cluster.observe).
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
  group:
    description: Name of the group.
    type: str
    required: true
  always:
    description: Add the host to the group even if it is not live.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Find the hosts whose live rails change
  rdma.cluster.batch_plan:
    group: rdma_network_live
  register: __network_batches
"""

RETURN = r"""
live:
  description: Whether a change of the host's rails could harm a user.
  type: bool
  returned: always
waits:
  description: Whether the host was added to the group, so that it is changed later.
  type: bool
  returned: always
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
