#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_read
version_added: 0.1.0
short_description: Let one host of each plane read its fabric
description:
  - Reads each InfiniBand plane with M(rdma.cluster.fabric_facts) on the first host of the play that has a port on it whose cable carries,
    and keeps what it told in the folder of this run. A second task reads on the next host the planes of which the first one was not told
    all; otherwise it asks nobody.
  - With O(what=graphs) each host that has RoCE rails of hardware is asked for its neighbours by LLDP.
  - A host without such rails is not asked for anything, and no connection to it is made.
  - Needs M(rdma.cluster.intent) and M(rdma.cluster.observe) before. Changes nothing; what could not be read is told by the gate.
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
  what:
    description:
      - V(graphs) for the graph of each plane with its counters.
      - V(managers) for the subnet managers of the planes whose subnet manager is planned.
      - V(loaded) for the graph of each InfiniBand plane with its counters once more, after the load of this run; nothing is read where no
        pairs were measured in it.
    type: str
    choices: [graphs, managers, loaded]
    required: true
seealso:
  - module: rdma.cluster.fabric_facts
  - module: rdma.cluster.gate
"""

EXAMPLES = r"""
- name: Read the fabric of each plane
  rdma.cluster.fabric_read:
    what: graphs
"""

RETURN = r"""
stored:
  description: The files on the control node that hold what this host has read.
  type: list
  elements: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
