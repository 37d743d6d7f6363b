#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: roce_plan
version_added: 0.1.0
short_description: Plan the RoCE settings of NICs and switches
description:
  - Derives the settings of RoCE NICs and of the switches in C(rdma_roce.switches) from the intents of all hosts of the play. It shows both
    sides next to each other, and writes a file for each switch, for the network team.
  - Uses the intents that M(rdma.cluster.intent) has read in this run. It contacts no host and no switch, and changes nothing.
  - If a RoCE plane has a cabling plan (C(rdma_fabric.planes.NAME.plan)) with several equal paths between leaves, it also shows the share of
    line rate to expect for each number of queue pairs per connection (C(NCCL_IB_QPS_PER_CONNECTION)).
  - Fails if the intents of hosts require different settings of one switch, or a cabling plan cannot be read.
  - Writes C(plan/roce.json), C(plan/roce.txt) and C(plan/switch-NAME.nv) or C(.txt) to the folder of this run. Call it once.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: rdma.cluster.intent
  - plugin: rdma.cluster.roce_profile
    plugin_type: filter
  - plugin: rdma.cluster.switch_config
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:

- name: Plan NICs and switches
  rdma.cluster.roce_plan:
  run_once: true
"""

RETURN = r"""
explained:
  description: The text.
  type: str
  returned: success
stored:
  description: The files on the control node.
  type: list
  elements: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
