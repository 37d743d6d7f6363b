#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: diagnose
version_added: 0.1.0
short_description: Diagnose a failed job from its log
description:
  - Reads the log of a job for the error lines of NCCL, CUDA, PyTorch, nccl-tests, Open MPI, UCX, Slurm and the kernel. It reports which
    error came first, and which errors followed from it.
  - Each kind of line has a list of likely causes. The module checks each cause against the facts and the intent of the affected hosts. A
    cause is C(confirmed), C(excluded) or C(not checkable), with the observed values, the remedy, and the hosts to fix.
  - It uses the facts that M(rdma.cluster.observe) or M(rdma.cluster.rdma_facts) have read in this run. They show the current state, not the
    state when the job failed. They describe hosts, not containers.
  - What was true when the job failed is known from hosts with a recorder (M(rdma.cluster.recorder)) and from their journals.
  - Unknown NCCL warnings are shown as C(unknown), grouped by their text.
  - Stores the text and the data in the folder of this run, as C(diagnosis.txt) and C(diagnosis.json). It changes nothing. A log with
    failures does not fail the task.
  - Runs only on the control node, once for all hosts. A log of a million lines takes a few seconds; the memory use does not depend on its
    length.
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
    description:
      - With V(time) it only finds when the job failed. M(rdma.cluster.recorder_read) then reads what the hosts recorded around that time,
        and a second call with V(diagnosed) uses it.
    type: str
    choices: [time, diagnosed]
    default: diagnosed
  time:
    description:
      - When the job failed, with its time zone, like C(2026-11-23 14:05 UTC). Without it, the time of the first error in the log, in the
        time zone of the host that wrote it. Only for O(state=time).
    type: str
  log:
    description:
      - The log file on the control node, as the launcher wrote it. Any prefix of the lines is allowed.
      - The result is best with the output of all ranks in one file, and with C(NCCL_DEBUG=INFO).
      - Without it, the diagnosis has only what the hosts recorded.
    type: str
  hosts:
    description:
      - Maps a name in the log to the host's name in the inventory. Use it for names that are neither in the inventory nor the host's own
        name, for example names of containers.
    type: dict
    default: {}
  problems:
    description:
      - The problems of each host's intent as M(rdma.cluster.intent) returns them, host → list of texts. Such an intent is not used.
      - The text names the rejected intents at its top. A host without any intent is not rejected.
    type: dict
    default: {}
seealso:
  - module: rdma.cluster.recorder_read
  - module: rdma.cluster.explain
  - module: rdma.cluster.observe
"""

EXAMPLES = r"""
- name: Read the hosts
  rdma.cluster.rdma_facts:

- name: Diagnose the failed job
  rdma.cluster.diagnose:
    log: job.log
    hosts:
      trainer-0: node1
      trainer-1: node2
  run_once: true
"""

RETURN = r"""
known:
  description: With O(state=time), whether the time of the failure is known, at least in the time zone of a host.
  type: bool
  returned: success
seconds:
  description: With O(state=time), the time of the failure in seconds since 1970; V(null) if it is known only in the time zone of a host.
  type: float
  returned: success
local:
  description: With O(state=time), the time of the log's first error, in the time zone of its host; V(null) with O(time).
  type: str
  returned: success
words:
  description: With O(state=time), where the time comes from, or why it is not known.
  type: str
  returned: success
explained:
  description: The diagnosis as text.
  type: str
  returned: success
first_cause:
  description: The kind of line that is likely to have caused the others; V(null) for a log without failures.
  type: str
  returned: success
  sample: memory.locked
confirmed:
  description: The confirmed causes, the most important first.
  type: list
  elements: str
  returned: success
  sample: [memlock]
findings:
  description:
    - Each kind of line, the most important first. C(is) is C(error), C(symptom), C(unknown), C(remark) or C(consequence).
    - Unknown NCCL warnings have the kind C(nccl.unknown), with one entry for each text.
  type: list
  elements: dict
  returned: success
  contains:
    kind:
      description: The stable name of the kind of line.
      type: str
    is:
      description: The role of the line in the failure.
      type: str
    says:
      description: The meaning of the line.
      type: str
    first_cause:
      description: Whether the line is likely to have caused the others.
      type: bool
    source:
      description: The program that writes such lines.
      type: str
    count:
      description: The number of such lines.
      type: int
    first_line:
      description: The first such line, with host, rank, number and time if the line contains them.
      type: dict
    hosts:
      description: The hosts that wrote such lines, by the names in the log.
      type: list
      elements: str
    ranks:
      description: The ranks that wrote such lines.
      type: list
      elements: int
    fields:
      description: The fields of such lines, each with its first values.
      type: dict
    causes:
      description: The likely causes, confirmed ones first, with the verdict, the observations of each host, and the remedy.
      type: list
      elements: dict
unknown_hosts:
  description: Names in the log that match no host of the play.
  type: list
  elements: str
  returned: success
refused_intents:
  description: The hosts whose intent is refused, each with its problems. Their causes are checked against facts alone.
  type: dict
  returned: success
stored:
  description: The file with the complete diagnosis on the control node.
  type: str
  returned: success
run_folder:
  description: The folder of this run on the control node.
  type: str
  returned: always
"""
