#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: subnet_manager_plan
version_added: 0.1.0
short_description: Plan the subnet managers of a host
description:
  - Makes opensm's files for each plane of C(rdma_fabric.planes) whose subnet manager runs on this host, in the format of
    M(rdma.cluster.subnet_manager). They contain C(rdma_partitions) and the GUIDs of the members' ports.
  - Uses intents and facts that this run has read. It contacts no host and changes nothing.
  - Fails if the ports of a member are unknown, because the partition would be written without it.
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
  keys:
    description: The secrets of each plane by plane name. Each has C(m_key), C(sm_key) and C(sa_key) as 64 bits in hexadecimal.
    type: dict
    default: {}
  load:
    description: Whether to find the hosts in use, because of which an allowed change of the fabric is refused.
    type: bool
    default: false
seealso:
  - module: rdma.cluster.subnet_manager
"""

EXAMPLES = r"""
- name: Plan the subnet managers of this host
  rdma.cluster.subnet_manager_plan:
  register: managers
"""

RETURN = r"""
problems:
  description:
    - Why the subnet manager cannot be set up, as sentences; empty if it can. If there are problems, the task fails, except in check mode.
  type: list
  elements: str
  returned: always
flavor:
  description: The vendor of opensm, V(debian), V(rhel) or V(ofed).
  type: str
  returned: success
starts_at_install:
  description: >-
    Whether the distribution's package may start opensm on every port as soon as it is installed. Debian's package does so, even on a host
    with a vendor's stack.
  type: bool
  returned: success
instances:
  description: The subnet managers, one for each plane.
  type: list
  elements: dict
  returned: success
sharp:
  description: Whether NVIDIA's aggregation manager runs here.
  type: bool
  returned: success
ports:
  description: The ports of the hosts of this run. Maps each GUID to host and device.
  type: dict
  returned: success
busy:
  description: >-
    With O(load), the hosts in use, each with its users. A host of the inventory with C(rdma_rails) that is not in the play counts as in
    use, because it was not read. A host that did not answer counts as in use too.
  type: dict
  returned: success
ports_file:
  description:
    - The C(path) of Debian's file that lists the ports of opensm, and its text for C(none). Write it before the package is installed;
      otherwise the package starts opensm on every port.
  type: dict
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
