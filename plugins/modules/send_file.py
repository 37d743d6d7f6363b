#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: send_file
version_added: 0.1.0
short_description: Send a file of the control node that the intent names to a host
description:
  - Copies a file only if the inventory's intent of the host names it as C(source.file), and only if its SHA-256 on the control node is
    the C(checksum) beside it. Both are compared before anything is sent.
  - The intent is that of the run folder, which hosts cannot change. Facts of a host cannot name a file.
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
  src:
    description: The file, as C(source.file) in the intent names it.
    type: str
    required: true
  dest:
    description: Where the host gets it.
    type: path
    required: true
  mode:
    description: Its permission bits on the host.
    type: str
    default: "0600"
"""

EXAMPLES = r"""
- name: Copy the bundle to the host
  rdma.cluster.send_file:
    src: "{{ ansible_facts.rdma_intent.driver.source.file }}"
    dest: /var/lib/rdma-cluster/ofed/bundle.tgz
"""

RETURN = r"""
dest:
  description: Where the host has it.
  type: str
  returned: success
  sample: /var/lib/rdma-cluster/ofed/bundle.tgz
"""
