#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
version_added: 0.1.0
short_description: Write a run as one HTML page, or compare two runs
description:
  - Writes C(report.html) into the folder of a run. It has the verdict, gates, findings, a heat map of all pairs, the fabric, collectives,
    drift, proofs, versions and trends.
  - Every run writes this page at its end. Use the module for an old run, or for a run that was killed.
  - With O(compare), writes C(report-vs-RUN.html), which also compares each pair with the other run. It reports which changes are
    significant, and which findings are new or fixed.
  - The page is one file that makes no request. It shows the same without JavaScript, except for the heat map.
  - Runs only on the control node, contacts no host, and has no run folder of its own. It adds the run to the history if it is missing
    there.
  - Fails if there is no such run, or if its files have another schema than this version reads.
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
  folder:
    description:
      - The folder of all runs, V(artifacts) by default.
    type: str
  run:
    description:
      - ID of the run, for example V(20261120T120501Z-4711). V(latest) is the newest run that has read an intent.
    type: str
    default: latest
  compare:
    description:
      - ID of the run to compare it with, empty for none.
    type: str
    default: ""
seealso:
  - module: rdma.cluster.gate
"""

EXAMPLES = r"""
- name: Compare the newest run with an older one
  rdma.cluster.report:
    compare: 20261120T120501Z-4711
"""

RETURN = r"""
explained:
  description: The path of the page as a line of text.
  type: str
  returned: success
stored:
  description: The files on the control node.
  type: list
  elements: str
  returned: success
"""
