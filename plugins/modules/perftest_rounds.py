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
  - Starts, collects, stops and removes the pair runner of this collection on a host. The runners of all hosts meet each other in
    rounds and measure every pair on every rail with perftest; the control node takes no part in that.
  - The runner works as the transient systemd unit C(rdma-pairs-SWEEP.service), so it goes on when the control node is lost.
    Its files are in C(/run/rdma-cluster/pairs/SWEEP) and stay there until O(state=absent), or until another sweep starts.
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
      - Nothing is started, waited for, stopped or removed.
  diff_mode:
    support: N/A
    details:
      - There is no lasting state to compare.
options:
  state:
    description:
      - V(started) starts the sweep in the background. If the same sweep runs by the same O(plan), or has ended here without a failure,
        it is adopted; if it was stopped, its runner died, or something failed, it goes on and does not repeat what it has measured well.
        While another one runs, or the same one by another plan, the module fails and names it; what an earlier sweep or plan has left
        is removed.
      - Before V(started) starts anything, it reads who uses this host. With a GPU process or a job there, or if that cannot be read, it
        starts nothing and returns RV(in_use), unless O(load_allowed) is set. A sweep that runs already is adopted all the same.
      - V(collected) returns what has been measured after O(from_byte), and removes nothing. A sweep that this host does not know is an
        error.
      - V(stopped) ends the runner and keeps its files, so that V(started) goes on with the sweep.
      - V(absent) ends the runner and removes its files. What a sweep that has come to its end has left is not reported as a change.
    type: str
    choices: [started, collected, stopped, absent]
    default: started
  sweep:
    description:
      - The name of the sweep, of letters, digits and hyphens.
      - Required unless O(state=stopped), which without it ends whichever sweep runs.
    type: str
  plan:
    description:
      - The plan of the sweep, the same for every host, as JSON packed by gzip and base64. Its key C(sweep) has to be the O(sweep).
      - Required for O(state=started). It is kept out of logs, for its size.
    type: str
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
  from_byte:
    description:
      - Where O(state=collected) begins to read the runner's records, which is RV(next_byte) of the call before.
    type: int
    default: 0
  load_allowed:
    description:
      - Start also on a host that a GPU process or a job uses.
    type: bool
    default: false
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
    plan: "{{ packed_plan }}"
    host: "{{ inventory_hostname }}"
    token: "{{ token }}"
    runtime_max_seconds: 600

- name: Collect what was measured
  rdma.cluster.perftest_rounds:
    state: collected
    sweep: "{{ plan.sweep }}"
    wait_seconds: 600
  register: sweep

- name: Leave the fabric alone for a while, whichever sweep runs
  rdma.cluster.perftest_rounds:
    state: stopped

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
in_use:
  description: Who uses the host, for which nothing was started; empty if it was, or if the sweep was adopted.
  type: str
  returned: when O(state=started)
  sample: job process 815 (slurmstepd)
stopped:
  description: The sweeps that were running.
  type: list
  elements: str
  returned: when O(state=stopped)
running:
  description: Whether the runner still works.
  type: bool
  returned: when O(state=collected)
finished:
  description: Whether the runner has come to its end and everything has been given out.
  type: bool
  returned: when O(state=collected)
reason:
  description: Why the sweep is not finished.
  type: str
  returned: when O(state=collected)
  sample: the sweep still runs
next_byte:
  description: Where the next call begins to read.
  type: int
  returned: when O(state=collected)
more:
  description: Whether there are more records already than one answer takes.
  type: bool
  returned: when O(state=collected)
results:
  description:
    - What this host has measured, one list for each measurement of which it was the client and for each one that failed.
    - The positions of rail, server, client and test in the plan, and the number of the round come first, in the order rail, round, server,
      client, test; then the role of this host (0 client, 1 server), the value (10^9 bit/s, or microseconds of a latency test; V(null) if it
      failed), the seconds that perftest took, and those that the partner was waited for.
    - Of a failure follow its kind and the line that says so. They are not judged.
  type: list
  elements: list
  returned: when O(state=collected)
  sample: [[0, 0, 1, 0, 0, 0, 392.1, 6.2, 0.01], [0, 1, 2, 0, 0, 0, null, 0.0, 5.0, dead, "node3 at 192.168.100.3 port 18600: timed out"]]
failures:
  description: The command line and raw output of what failed, of 32 measurements at most, and each output without its middle beyond 4 KiB.
  type: list
  elements: dict
  returned: when O(state=collected)
unreadable:
  description: How many records were none, or of no meeting of the plan. They are in RV(failures), as C(record), and not in RV(results).
  type: int
  returned: when O(state=collected)
strangers:
  description: How often another process than its client had connected to a perftest server of this host. These were measured again.
  type: int
  returned: when O(state=collected)
seconds:
  description: How long the runner has worked, by its last word.
  type: float
  returned: when O(state=collected); V(null) while it works
counters:
  description:
    - For each rail the C(seconds) since the start and C(risen), the counters of errors and events of its port that went up by then.
    - With them C(netdev), its interface, and by how much since then C(priorities), the bytes, pause frames and discards of each priority
      (V(null) for a counter that the driver does not have, no priority where it has none), and C(cnps), the congestion notifications, rose.
    - V(null) while the runner works, and where they cannot be read.
  type: dict
  returned: when O(state=collected)
  sample:
    rail0:
      seconds: 61.2
      risen: {symbol_error: 12}
      netdev: ens1
      priorities:
        "3":
          rx_bytes: 8000
          tx_bytes: 9000
          rx_pause: 0
          tx_pause: 2
          rx_discards: 0
          rx_buffer_discards: null
          rx_congestion_discards: null
      cnps: {np_cnp_sent: 4}
"""

import sys

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import in_use_now
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.unit import PairUnit, SweepError, running_sweeps


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "collected", "stopped", "absent"], "default": "started"},
            "sweep": {"type": "str"},
            # No secret, but AnsibleModule writes its other arguments into the journal, and this one has up to a megabyte.
            "plan": {"type": "str", "no_log": True},
            "host": {"type": "str"},
            "token": {"type": "str", "no_log": True},
            "wait_seconds": {"type": "int", "default": 0},
            "from_byte": {"type": "int", "default": 0},
            "load_allowed": {"type": "bool", "default": False},
            "runtime_max_seconds": {"type": "int", "default": 3600},
        },
        required_if=[
            ("state", "started", ("sweep", "plan", "host", "token")),
            ("state", "collected", ("sweep",)),
            ("state", "absent", ("sweep",)),
        ],
        supports_check_mode=True,
    )
    try:
        result = apply(module.params, module.check_mode)
    except (SweepError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def apply(options: dict, check_mode: bool) -> dict:
    runner = SubprocessRunner()
    if options["state"] == "stopped":
        sweeps = running_sweeps(runner) if options["sweep"] is None else [options["sweep"]]
        stopped = [sweep for sweep in sweeps if PairUnit(sweep, runner).stop(check_mode)]
        return {"changed": bool(stopped), "stopped": stopped}
    unit = PairUnit(options["sweep"], runner)
    if options["state"] == "absent":
        return {"changed": unit.remove(check_mode)}
    if options["state"] == "collected":
        found = unit.collect(options["wait_seconds"], options["from_byte"], check_mode)
        return {"changed": False, **vars(found)}

    def start(*, check_mode: bool) -> bool:
        return unit.start(
            options["plan"],
            options["token"],
            options["host"],
            python=sys.executable,
            runtime_max_seconds=options["runtime_max_seconds"],
            check_mode=check_mode,
        )

    # A job may have begun since the plan was made. What runs here already, or has ended, is adopted.
    in_use = in_use_now(SysRoot()) if not options["load_allowed"] and start(check_mode=True) else ""
    return {"changed": False, "started": not in_use and start(check_mode=check_mode), "in_use": in_use}


if __name__ == "__main__":
    main()
