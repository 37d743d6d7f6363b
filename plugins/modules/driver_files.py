#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_files
version_added: 0.1.0
short_description: The repository of the driver stack, and the hook that builds it for later kernels
description:
  - Runs on the control node, and asks the host only for what the facts say differs.
  - For DOCA-OFED the repository of the release, bound to the key that C(rdma_driver.repository) names by its checksum
    (C(signed-by), C(gpgcheck=1)), and what of it is kept out.
  - For every stack that builds modules the hook that builds them for a kernel when that is installed.
  - What the planned stack does not want is removed.
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
    description: What M(rdma.cluster.driver_plan) returned.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Decide
  rdma.cluster.driver_plan:
  register: decided

- name: Keep the repository
  rdma.cluster.driver_files:
    plan: "{{ decided.plan }}"
"""

RETURN = r"""
written:
  description: The files that were not as they shall be.
  type: list
  elements: str
  returned: success
"""
