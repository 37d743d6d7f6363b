#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_files
version_added: 0.1.0
short_description: Write the repository of the driver stack, and the hook that builds it for later kernels
description:
  - Runs on the control node, and contacts the host only if the facts show a difference.
  - For DOCA-OFED, writes the repository of the release and its excluded packages. The repository accepts only the key whose checksum is in
    C(rdma_driver.repository) (C(signed-by), C(gpgcheck=1)).
  - For every stack that builds modules, writes the hook that builds them for each newly installed kernel.
  - Removes files that the planned stack does not need.
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
  plan:
    description: The plan that M(rdma.cluster.driver_plan) returned.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Plan the changes of the driver
  rdma.cluster.driver_plan:
  register: decided

- name: Write the repository and the hook
  rdma.cluster.driver_files:
    plan: "{{ decided.plan }}"
"""

RETURN = r"""
written:
  description: The files that differed from the plan.
  type: list
  elements: str
  returned: success
"""
