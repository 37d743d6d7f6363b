#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: withheld
version_added: 0.1.0
short_description: Report an effect that a role did not apply because it is not allowed
description:
  - Prints one line with the effect, the reason, what the effect would change, and the variable that allows it.
  - Records it in the run folder. The summary at the end of the run groups the hosts that share a reason, and C(summary.json) lists all
    of them under C(withheld).
  - Runs only on the control node, also in check mode. It changes nothing.
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
  effect:
    description:
      - "The effect: the name of the role, V(_), and what it does, for example V(pcie_acs_write)."
      - C(EFFECT_allowed) is the variable that allows it. The task sets the facts C(EFFECT_required) and C(EFFECT_reason) for later tasks.
    type: str
    required: true
  reason:
    description:
      - "Why the role needs the effect: a text, a list of texts, or a dictionary of ports, packages or planes with the reason for each."
    type: raw
    required: true
  touches:
    description: The ports, packages and hosts that the effect would change.
    type: list
    elements: str
    default: []
  allow:
    description:
      - "The step that allows the effect. The default is C(EFFECT_allowed: true)."
      - Set it if another step is necessary, for example V(end job 4711 on node3, then rerun).
    type: str
"""

EXAMPLES = r"""
- name: Report that the ACS change is not allowed
  rdma.cluster.withheld:
    effect: pcie_acs_write
    reason: 0000:64:01.0 redirects traffic between GPUs and NICs to the root complex
    touches: ["0000:64:01.0"]
"""

RETURN = r"""
msg:
  description: The line.
  type: str
  returned: always
  sample: >-
    pcie_acs_write_required: 0000:64:01.0 redirects traffic between GPUs and NICs to the root complex. It would change: 0000:64:01.0.
    To allow it: pcie_acs_write_allowed: true
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
