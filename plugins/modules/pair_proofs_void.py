#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pair_proofs_void
version_added: 0.1.0
short_description: Remove the proofs of a host's pairs
description:
  - Removes the host's records from C(proofs/pairs.json) beside the runs, so that the pairs stage measures the host again.
  - Runs only on the control node. In check mode it removes nothing.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options: {}
"""

EXAMPLES = r"""
- name: Remove the proofs of the host's pairs
  rdma.cluster.pair_proofs_void:
"""

RETURN = r"""
rails:
  description: The rails whose proofs were removed, or would be in check mode.
  type: list
  elements: str
  returned: always
  sample: [rail0, rail1]
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
