#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: subnet_manager_plan
version_added: 0.1.0
short_description: Say what a host runs of the planes' subnet managers
description:
  - Makes opensm's files for each plane of C(rdma_fabric.planes) whose subnet manager runs on this host, with C(rdma_partitions) and the
    GUIDs of their members' ports, in the shape that M(rdma.cluster.subnet_manager) takes.
  - Works on intents and facts that this run has read. It reaches no host and changes nothing.
  - Fails where a member's ports are not known, because a partition would be written without it.
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
    description: The secrets of each plane, by its name, each with C(m_key), C(sm_key) and C(sa_key) as 64 bits in hexadecimal.
    type: dict
    default: {}
  load:
    description: Whether to find the hosts that are in use, which an allowed change of the fabric is refused for.
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
    - Why the subnet manager cannot be set up, as sentences; empty if it can. With problems, the task fails, except in check mode.
  type: list
  elements: str
  returned: always
flavour:
  description: Whose opensm it is, V(debian), V(rhel) or V(ofed).
  type: str
  returned: success
starts_at_install:
  description: >-
    Whether the package of the host's distribution may start opensm on every port as soon as it is installed, as Debian's does, also beside
    a vendor's stack.
  type: bool
  returned: success
instances:
  description: One for each plane.
  type: list
  elements: dict
  returned: success
sharp:
  description: Whether NVIDIA's aggregation manager runs here.
  type: bool
  returned: success
ports:
  description: The ports of the hosts of this run, each GUID with host and device.
  type: dict
  returned: success
busy:
  description: >-
    With O(load), the hosts that are in use, each with what runs there. A host of the inventory that has C(rdma_rails) and is not in the
    play counts as in use, because it was not read, and so does a host that did not answer.
  type: dict
  returned: success
ports_file:
  description:
    - The C(path) of Debian's file that says on which ports opensm runs, and its text for C(none). It has to be there before the package
      is installed, which would start opensm on every port.
  type: dict
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
