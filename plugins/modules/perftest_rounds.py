#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: perftest_rounds
version_added: 0.1.0
short_description: Run a host's share of a sweep of pairwise measurements
description:
  - Starts, collects and removes the pair runner of this collection on a host. The runners of all hosts meet each other in
    rounds and measure every pair on every rail with perftest; the control node takes no part in that.
  - The runner works as the transient systemd unit C(rdma-pairs-SWEEP.service), so it goes on when the control node is lost.
    Its files are in C(/run/rdma-cluster/pairs/SWEEP) and are removed with the collection of a finished sweep.
  - Measuring leaves nothing on a host, therefore O(state=started) and O(state=collected) are never reported as changed.
    They do put load on the fabric.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is started, waited for or removed.
  diff_mode:
    support: N/A
    details:
      - There is no lasting state to compare.
options:
  state:
    description:
      - V(started) starts the sweep in the background. If the same sweep runs or has ended on this host already, it is adopted;
        while another one runs, the module fails and names it.
      - V(collected) returns what has been measured, and removes the sweep's files if the runner has come to its end.
        A sweep that this host does not know, or has given away already, is an error.
      - V(absent) stops the sweep and removes its files.
    type: str
    choices: [started, collected, absent]
    default: started
  sweep:
    description:
      - The name of the sweep, of letters, digits and hyphens.
    type: str
    required: true
  plan:
    description:
      - The plan of the sweep, the same for every host. Its key C(sweep) has to be the O(sweep).
      - Required for O(state=started).
    type: dict
  host:
    description:
      - The name that the plan has for this host.
      - Required for O(state=started).
    type: str
  token:
    description:
      - The secret by which the runners of this sweep know each other.
      - Required for O(state=started).
    type: str
  wait_seconds:
    description:
      - How long O(state=collected) waits for the end of the sweep.
    type: int
    default: 0
  runtime_max_seconds:
    description:
      - After this time systemd ends the runner.
    type: int
    default: 3600
requirements:
  - systemd
  - perftest
"""

EXAMPLES = r"""
- name: Start the sweep
  rdma.cluster.perftest_rounds:
    state: started
    sweep: "{{ plan.sweep }}"
    plan: "{{ plan }}"
    host: "{{ inventory_hostname }}"
    token: "{{ token }}"
    runtime_max_seconds: 600

- name: Collect what was measured
  rdma.cluster.perftest_rounds:
    state: collected
    sweep: "{{ plan.sweep }}"
    wait_seconds: 600
  register: sweep

- name: End a sweep that is no longer wanted
  rdma.cluster.perftest_rounds:
    state: absent
    sweep: 20261120T120000-123
"""

RETURN = r"""
started:
  description: Whether this call started the runner, or would have in check mode. V(false) if the sweep was adopted.
  type: bool
  returned: when O(state=started)
running:
  description: Whether the runner still works.
  type: bool
  returned: when O(state=collected)
finished:
  description: Whether the runner has come to its end, so that RV(results) are complete.
  type: bool
  returned: when O(state=collected)
reason:
  description: Why the sweep is not finished.
  type: str
  returned: when O(state=collected)
  sample: the sweep still runs
results:
  description: What this host saw of its measurements, one for each rail and round. They are not judged.
  type: list
  elements: dict
  returned: when O(state=collected)
  contains:
    rail:
      description: The rail's name.
      type: str
      returned: always
    round:
      description: The number of the round, from 0.
      type: int
      returned: always
    server:
      description: The host with perftest's server.
      type: str
      returned: always
    client:
      description: The host with perftest's client.
      type: str
      returned: always
    role:
      description: V(server) or V(client), whichever this host was.
      type: str
      returned: always
    argv:
      description: The command line.
      type: list
      elements: str
      returned: always
    exit_code:
      description: The exit code of perftest, negative if a signal ended it, V(null) if it was not started.
      type: int
      returned: always
    started:
      description: When perftest was started, in seconds since 1970.
      type: float
      returned: always
    seconds:
      description: How long perftest took.
      type: float
      returned: always
    waited_seconds:
      description: How long the partner was waited for.
      type: float
      returned: always
    stdout:
      description: What perftest printed, without the middle if it is longer than 64 KiB.
      type: str
      returned: always
    stderr:
      description: What perftest complained about.
      type: str
      returned: always
    error:
      description:
        - V(null), or why there is no measurement, with C(detail), a sentence, and C(class), one of C(dead), C(refused), C(token),
          C(plan), C(timeout), C(listen), C(start) and C(signal).
      type: dict
      returned: always
"""

import sys

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pair_unit import PairUnit, SweepError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "collected", "absent"], "default": "started"},
            "sweep": {"type": "str", "required": True},
            "plan": {"type": "dict"},
            "host": {"type": "str"},
            "token": {"type": "str", "no_log": True},
            "wait_seconds": {"type": "int", "default": 0},
            "runtime_max_seconds": {"type": "int", "default": 3600},
        },
        required_if=[("state", "started", ("plan", "host", "token"))],
        supports_check_mode=True,
    )
    try:
        result = apply(module.params, module.check_mode)
    except (SweepError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def apply(options: dict, check_mode: bool) -> dict:
    unit = PairUnit(options["sweep"], SubprocessRunner())
    if options["state"] == "absent":
        return {"changed": unit.remove(check_mode)}
    if options["state"] == "collected":
        found = unit.collect(options["wait_seconds"], check_mode)
        return {"changed": False, **vars(found)}
    started = unit.start(
        options["plan"],
        options["token"],
        options["host"],
        python=sys.executable,
        runtime_max_seconds=options["runtime_max_seconds"],
        check_mode=check_mode,
    )
    return {"changed": False, "started": started}


if __name__ == "__main__":
    main()
