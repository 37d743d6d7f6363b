#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_proofs
version_added: 0.1.0
short_description: Find the pairs that no earlier measurement proves
description:
  - Holds the recorded proofs in C(rdma_run_dir) against the hosts as they are now. A proof holds while driver, firmware, ports and
    intent of both hosts are what they were, and for C(rdma_proof_max_age_hours).
  - Runs on the control node, once for all hosts, and touches none.
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
  measure:
    description: V(auto) for what is not proven, V(true) for everything, V(false) for nothing.
    type: raw
    default: auto
"""

EXAMPLES = r"""
- name: Compare the pairs with the proofs of earlier runs
  rdma.cluster.pair_proofs:
  run_once: true
  register: __pairs_proofs
"""

RETURN = r"""
unproven:
  description: The hosts that have a pair to be measured.
  type: list
  elements: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
