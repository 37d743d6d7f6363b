#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate
version_added: 0.1.0
short_description: Ask what must hold before the next stage may start
description:
  - Makes findings from intent and facts, records them in the run folder, and fails the hosts that do not pass.
  - An C(error) stops a host, and so does an C(unknown), since what could not be checked is not known to be well.
  - In check mode a gate records and prints and never fails a host.
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
  stage:
    description: The stage that ends here.
    type: str
    required: true
    choices: [driver, link, network, pairs]
  scope:
    description:
      - V(fleet) makes the findings that compare hosts; it runs once and fails nobody.
      - V(host) judges one host.
    type: str
    required: true
    choices: [fleet, host]
"""

EXAMPLES = r"""
- name: Link gate
  rdma.cluster.gate:
    stage: link
    scope: host
"""

RETURN = r"""
status:
  description: The worst status of the host's findings.
  type: str
  returned: with O(scope=host)
  sample: ok
offenders:
  description: The findings that stop the host.
  type: list
  elements: dict
  returned: with O(scope=host)
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
stage:
  description: The stage.
  type: str
  returned: always
"""
