#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: intent
version_added: 0.1.0
short_description: Read what the inventory says the cluster should be
description:
  - Validates the C(rdma_) variables of a host against a closed schema, fills in the defaults, and sets the normalised
    result as C(ansible_facts.rdma_intent). The first task of every stage.
  - A key that the schema does not have is an error that names its nearest neighbour. All problems are reported at once.
  - Runs on the control node and touches no host.
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
- name: Read the intent
  rdma.cluster.intent:
"""

RETURN = r"""
ansible_facts:
  description: The normalised intent.
  type: dict
  returned: success
  contains:
    rdma_intent:
      description: C(rails), C(fabric), C(driver) and C(pairs), complete with defaults.
      type: dict
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
problems:
  description: What is wrong with the intent, a sentence each.
  type: list
  elements: str
  returned: failure
"""
