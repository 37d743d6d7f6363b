#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rails_up
version_added: 0.1.0
short_description: Which rails of a host are up, and waiting for them
description:
  - Reads the ports of the rails of C(rdma_rails) on the host, again and again until those asked for are C(ACTIVE).
  - Rails are named, and not their devices, because a driver may give a device another name.
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
    description: The rails that are waited for; none unless given.
    type: list
    elements: str
  timeout_seconds:
    description: How long; after that it fails, and says in which state those are that are missing.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Note which rails are up
  rdma.cluster.rails_up:
  register: before

- name: Wait for them after a reboot
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
