#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: exporter_plan
version_added: 0.1.0
short_description: Plan the collector of RDMA metrics of a host
description:
  - Returns the settings of the collector that M(rdma.cluster.exporter) installs, from C(rdma_metrics) of the intent, the planned rails, and
    what the runs of this control node have found about the host. These are the verdict of each stage's gate, findings, drift and proofs.
  - Uses the intent and the facts that were read in this run. Run M(rdma.cluster.intent) and M(rdma.cluster.observe) before. It contacts no
    host, and changes nothing.
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
  - module: rdma.cluster.exporter
"""

EXAMPLES = r"""
- name: Plan the collector
  rdma.cluster.exporter_plan:
  register: exporter
"""

RETURN = r"""
config:
  description: The settings of the collector, as the text of its file.
  type: str
  returned: success
interval_seconds:
  description: Time between two runs of the collector.
  type: int
  returned: success
  sample: 60
packages:
  description: The packages of node_exporter; empty if C(rdma_metrics.textfile_dir) names the folder of another one.
  type: list
  elements: str
  returned: success
  sample: [prometheus-node-exporter]
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
