#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: changed
version_added: 0.1.0
short_description: Show what changed on the hosts between two times
description:
  - With O(state=window) it parses the two times. With O(state=shown) it merges the records that M(rdma.cluster.recorder_read) has stored in
    this run into one list of events, by the clock of the control node.
  - Stores the text and the data in the folder of this run, as C(changed.txt) and C(changed.json). It changes nothing.
  - Runs only on the control node, once for all hosts.
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
  state:
    description: V(window) returns the two times, V(shown) shows the events.
    type: str
    choices: [window, shown]
    required: true
  since:
    description: >-
        The first time, with its time zone, like C(2026-11-23 14:05 UTC), a time before now like C(2h), or the ID of a run, like
        C(20261123T140501Z-4711), for the end of that run.
    type: str
    required: true
  to:
    description: The last time, in the same forms. Without it, now.
    type: str
seealso:
  - module: rdma.cluster.recorder_read
"""

EXAMPLES = r"""
- name: Parse the times
  rdma.cluster.changed:
    state: window
    since: 2h
  run_once: true
  register: window

- name: Read the records
  rdma.cluster.recorder_read:
    time: "{{ window.until }}"
    before_seconds: "{{ window.seconds }}"
    after_seconds: 0

- name: Show what changed
  rdma.cluster.changed:
    state: shown
    since: "@{{ window.since }}"
    to: "@{{ window.until }}"
  run_once: true
"""

RETURN = r"""
since:
  description: With O(state=window), the first time in seconds since 1970.
  type: float
  returned: success
until:
  description: With O(state=window), the last time.
  type: float
  returned: success
seconds:
  description: With O(state=window), the time between them.
  type: float
  returned: success
explained:
  description: With O(state=shown), the text.
  type: str
  returned: success
changes:
  description: With O(state=shown), the number of events.
  type: int
  returned: success
stored:
  description: With O(state=shown), the file with all events on the control node.
  type: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
