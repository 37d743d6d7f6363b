#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_proofs
version_added: 0.1.0
short_description: Find the ports without a valid proof
description:
  - Compares the recorded proofs in C(rdma_run_dir) with the current hosts. The proof of a host's rail is valid for
    C(rdma_proof_max_age_hours), while its driver, firmware, port and intent do not change.
  - Returns the hosts to measure. Without any proof these are all hosts. Later they are new and changed hosts, and a few proven partners;
    with C(--limit) the partners may be outside the play.
  - Runs on the control node, once for all hosts, and contacts none.
  - Plans the probe of the path MTU between all hosts of the play if hosts are to be measured.
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
    description: V(auto) measures only what has no valid proof, V(true) measures everything, and V(false) measures nothing.
    type: raw
    default: auto
  path_mtu:
    description: Plan the probe of the path MTU (M(rdma.cluster.path_mtu)) also if nothing is measured.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Compare the ports with the proofs of earlier runs
  rdma.cluster.pair_proofs:
  run_once: true
  register: __pairs_proofs
"""

RETURN = r"""
hosts:
  description: The hosts of the play to measure.
  type: list
  elements: str
  returned: success
path_mtu:
  description: Whether the probe of the path MTU is planned.
  type: bool
  returned: success
outside:
  description: The proven hosts outside the play that serve as partners.
  type: list
  elements: str
  returned: success
"""
