#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rails_up
version_added: 0.1.0
short_description: Wait for the rails of a host to come up
description:
  - Reads the ports of the rails of C(rdma_rails) on the host until all requested ports are C(ACTIVE).
  - The option names rails, not devices, because a driver may rename a device.
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
  rails:
    description: The rails to wait for. By default the module does not wait.
    type: list
    elements: str
  timeout_seconds:
    description: How long to wait. After that the task fails, and lists the missing rails with their states.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Record which rails are up
  rdma.cluster.rails_up:
  register: before

- name: Wait for these rails after a reboot
  rdma.cluster.rails_up:
    rails: "{{ before.up }}"
    timeout_seconds: 300
"""

RETURN = r"""
up:
  description: The rails whose port is C(ACTIVE).
  type: list
  elements: str
  returned: always
  sample: [rail0, rail1]
"""
