#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: observe
version_added: 0.1.0
short_description: Read the facts of a host and store them in the run folder
description:
  - Runs M(rdma.cluster.rdma_facts) on the host, stores the full tree as C(facts/HOST.json) in the folder of this run, and
    keeps a digest of it as C(ansible_facts.rdma).
  - Derives from the intent and the facts the plan of the roles for this host, and stores it as C(plan/HOST.json). The lookup
    P(rdma.cluster.plan#lookup) returns it.
  - Keeps facts that this run has read before if they are not older than O(max_age_seconds). The intent must be read first.
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
  max_age_seconds:
    description:
      - The maximum age of kept facts of this run. V(0) always reads the host, for example after a change.
      - The default is C(rdma_facts_max_age_seconds).
    type: float
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
read:
  description: Whether the task read the host; V(false) if the facts of this run were kept.
  type: bool
  returned: success
users:
  description:
    - The users of the host, which are GPU processes, jobs, and holders of queue pairs. Empty for an idle host.
    - A source that cannot be read counts as a user.
  type: str
  returned: when the host was read
  sample: 2 queue pairs of ib_write_bw (pid 4711) on mlx5_0/1
stored:
  description: The file with the full tree on the control node.
  type: str
  returned: when the host was read
"""
