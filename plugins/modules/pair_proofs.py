#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_proofs
version_added: 0.1.0
short_description: Find the ports that no earlier measurement proves
description:
  - Holds the recorded proofs in C(rdma_run_dir) against the hosts as they are now. The proof of a host's rail holds while its driver,
    firmware, port and intent are what they were, and for C(rdma_proof_max_age_hours).
  - Says who is to be measured. While nothing is proven that is every host. Later it is those that are new or have changed, against a few
    that are proven; with C(--limit) those may be hosts outside of the play.
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
- name: Compare the ports with the proofs of earlier runs
  rdma.cluster.pair_proofs:
  run_once: true
  register: __pairs_proofs
"""

RETURN = r"""
hosts:
  description: The hosts of the play that are to be measured.
  type: list
  elements: str
  returned: success
outside:
  description: The proven hosts outside of the play that are to be measured against.
  type: list
  elements: str
  returned: success
"""
