#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: observe
version_added: 0.1.0
short_description: Read a host and keep what was read in the run folder
description:
  - Runs M(rdma.cluster.rdma_facts) on the host, stores the full tree as C(facts/HOST.json) in the folder of this run, and
    keeps a digest without counters as C(ansible_facts.rdma).
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Read the host
  rdma.cluster.observe:
"""

RETURN = r"""
ansible_facts:
  description: The digest, see M(rdma.cluster.rdma_facts).
  type: dict
  returned: success
  contains:
    rdma:
      description: The facts without counters.
      type: dict
stored:
  description: The file with the full tree on the control node.
  type: str
  returned: success
"""
