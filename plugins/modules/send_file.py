#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: send_file
version_added: 0.1.0
short_description: Copy a file that the intent names from the control node to a host
description:
  - Copies a file only if the host's intent names it as C(source.file), and only if its SHA-256 on the control node is the C(checksum) next
    to that name. Both are verified before the copy.
  - The intent comes from the run folder, which hosts cannot change. Facts of a host cannot name a file.
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
    description: The path on the host.
    type: path
    required: true
  mode:
    description: The permission bits of the file on the host.
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
  description: The path on the host.
  type: str
  returned: success
  sample: /var/lib/rdma-cluster/ofed/bundle.tgz
"""
