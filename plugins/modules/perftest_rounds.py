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
  - Starts, collects, stops and removes the pair runner of this collection on a host. The runners of all hosts measure every pair on every
    rail in rounds with perftest. The control node does not take part.
  - The runner works as the transient systemd unit C(rdma-pairs-SWEEP.service), so it continues if the control node is lost.
    Its files are in C(/run/rdma-cluster/pairs/SWEEP) and stay there until O(state=absent), or until another sweep starts.
  - Measurements leave nothing on a host, so O(state=started) and O(state=collected) never report a change. They do put load on the fabric.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Starts, stops and removes nothing, and waits for nothing.
  diff_mode:
    support: N/A
    details:
      - There is no lasting state to compare.
options:
  state:
    description:
      - V(started) starts the sweep in the background. If the same sweep runs with the same O(plan), or has ended here without a failure,
        the module adopts it. If it was stopped, its runner died, or a measurement failed, the module continues it and does not repeat
        successful measurements.
      - If another sweep runs, or the same sweep with another plan, V(started) fails and names it. Files of an earlier sweep or plan are
        removed.
      - Before V(started) starts anything, it reads who uses this host. If a GPU process or a job uses it, or the users cannot be read, it
        starts nothing and returns RV(in_use), unless O(load_allowed) is set. A running sweep is adopted in any case.
      - V(collected) returns the measurements after O(from_byte), and removes nothing. A sweep that is unknown on this host is an error.
      - V(stopped) ends the runner and keeps its files, so that V(started) can continue the sweep.
      - V(absent) ends the runner and removes its files. The removal of a finished sweep is not reported as a change.
    type: str
    choices: [started, collected, stopped, absent]
    default: started
  sweep:
    description:
      - The name of the sweep. It consists of letters, digits and hyphens.
      - Required unless O(state=stopped). Without it, O(state=stopped) ends any running sweep.
    type: str
  plan:
    description:
      - The plan of the sweep, the same for every host, as JSON packed with gzip and base64. Its key C(sweep) must equal O(sweep).
      - Required for O(state=started). It is not logged because of its size.
    type: str
  host:
    description:
      - The name of this host in the plan.
      - Required for O(state=started).
    type: str
  token:
    description:
      - The secret with which the runners of this sweep authenticate to each other.
      - Required for O(state=started).
    type: str
  wait_seconds:
    description:
      - How long O(state=collected) waits for the end of the sweep.
    type: int
    default: 0
  from_byte:
    description:
      - The offset at which O(state=collected) begins to read the runner's records. It is RV(next_byte) of the previous call.
    type: int
    default: 0
  load_allowed:
    description:
      - Whether to start even if a GPU process or a job uses the host.
    type: bool
    default: false
  queue_pairs:
    description:
      - Whether a process with queue pairs on an RDMA device counts as a user of this host. Queue pairs of the kernel and of services that
        an idle host has do not count.
    type: bool
    default: false
  runtime_max_seconds:
    description:
      - The time limit of the runner, after which systemd ends it.
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

- name: Collect the measurements
  rdma.cluster.perftest_rounds:
    state: collected
    sweep: "{{ plan.sweep }}"
    wait_seconds: 600
  register: sweep

- name: Stop any running sweep
  rdma.cluster.perftest_rounds:
    state: stopped

- name: Remove a sweep
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
  description: Who uses the host, which is why nothing was started. Empty if the sweep was started or adopted.
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
  description: Whether the runner has ended and all results were returned.
  type: bool
  returned: when O(state=collected)
reason:
  description: Why the sweep is not finished.
  type: str
  returned: when O(state=collected)
  sample: the sweep still runs
next_byte:
  description: The offset at which the next call begins to read.
  type: int
  returned: when O(state=collected)
more:
  description: Whether there are more records than fit into one result.
  type: bool
  returned: when O(state=collected)
results:
  description:
    - The measurements of this host, one list for each measurement in which it was the client, and for each failed one.
    - The first values are rail, round, server, client and test, as positions in the plan and the number of the round. The role of this host
      follows (0 client, 1 server), and then the value (10^9 bit/s, or microseconds of a latency test; V(null) after a failure).
    - The last values are the seconds that perftest took, and the seconds of waiting for the partner. After a failure, its kind and the line
      that reports it follow. The results are not judged.
  type: list
  elements: list
  returned: when O(state=collected)
  sample: [[0, 0, 1, 0, 0, 0, 392.1, 6.2, 0.01], [0, 1, 2, 0, 0, 0, null, 0.0, 5.0, dead, "node3 at 192.168.100.3 port 18600: timed out"]]
failures:
  description: The command line and raw output of at most 32 failed measurements. The middle of an output longer than 4 KiB is cut.
  type: list
  elements: dict
  returned: when O(state=collected)
unreadable:
  description: The number of records that were invalid or did not belong to the plan. They are in RV(failures) as C(record).
  type: int
  returned: when O(state=collected)
strangers:
  description: How often a process other than its client connected to a perftest server of this host. These pairs were re-measured.
  type: int
  returned: when O(state=collected)
seconds:
  description: How long the runner has worked, by its last record.
  type: float
  returned: when O(state=collected); V(null) while it works
counters:
  description:
    - For each rail, the C(seconds) since the start, its interface (C(netdev)), and C(risen), the error and event counters of its port that
      have increased.
    - C(priorities) is the increase of bytes, pause frames and discards of each priority. It is V(null) for a counter that the driver
      lacks, and has no priorities if the driver has none. C(cnps) is the increase of the congestion notifications.
    - C(packets) is the increase of the RDMA packets that the port sent and received. C(counted) is the number of counters that could be
      compared. C(uncounted) lists those that could not, because they were cleared, disappeared or are full.
    - V(null) while the runner works, or if the counters cannot be read.
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
      packets: {sent: 9000, received: 8000}
      counted: 21
      uncounted: []
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
            # Not a secret, but AnsibleModule writes other arguments to the journal, and this one is up to a megabyte.
            "plan": {"type": "str", "no_log": True},
            "host": {"type": "str"},
            "token": {"type": "str", "no_log": True},
            "wait_seconds": {"type": "int", "default": 0},
            "from_byte": {"type": "int", "default": 0},
            "load_allowed": {"type": "bool", "default": False},
            "queue_pairs": {"type": "bool", "default": False},
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

    # A job may have started since the plan was made. A sweep that runs here already, or has ended, is adopted.
    users_from = runner if options["queue_pairs"] else None
    in_use = in_use_now(SysRoot(), users_from) if not options["load_allowed"] and start(check_mode=True) else ""
    return {"changed": False, "started": not in_use and start(check_mode=check_mode), "in_use": in_use}


if __name__ == "__main__":
    main()
