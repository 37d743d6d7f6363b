#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_test
version_added: 0.1.0
short_description: Run one of the nccl-tests and judge it
description:
  - Runs a program of nccl-tests on the GPUs of this host, or of several hosts through Open MPI or Slurm, waits for its end and judges what
    it and NCCL have said. A run over sockets does not pass, however fast it is.
  - NCCL's log is switched on for the run (C(NCCL_DEBUG=INFO)); all other variables are those of the hosts, C(/etc/nccl.conf) among them.
  - A run that lasts too long is ended with all that it has started.
  - Before the run it reads who uses this host. With a GPU process or a job there nothing is run, unless O(load_allowed) is set. Only root
    sees the GPU processes of all users.
  - It puts load on GPUs and network, and changes nothing. What does not pass does not fail the task; see RV(passed).
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is run.
  diff_mode:
    support: N/A
    details:
      - There is no state to compare.
options:
  operation:
    description: What is run.
    type: str
    choices: [all_reduce, all_gather, reduce_scatter, alltoall, sendrecv, broadcast, reduce]
    default: all_reduce
  hosts:
    description:
      - The hosts as the launcher reaches them from this one, by name or IPv4 address.
      - Required unless O(launcher=none), which runs on this host alone.
    type: list
    elements: str
    default: []
  gpus:
    description: GPUs of each host, a rank each.
    type: int
    required: true
  launcher:
    description: V(none) runs one process for all GPUs of this host, and needs no MPI; the others start a process for each GPU.
    type: str
    choices: [none, mpirun, srun]
    default: none
  program:
    description: The path of the launcher, where it is not on the path of the session.
    type: path
  launcher_arguments:
    description: More arguments for the launcher (C(--mpi=pmix), C(--partition=gpu)). They can be read by all users of the host.
    type: list
    elements: str
    default: []
  interface:
    description: The interface of Open MPI's own connections, where it shall not choose.
    type: str
  allow_root:
    description: Whether Open MPI is told that root may run it. Without it a run by root fails.
    type: bool
    default: false
  folder:
    description: Where the programs of nccl-tests are; the same on all hosts. Without it they are looked for on the path of the session.
    type: path
  environment:
    description: Variables for the run beside the host's own, for example C(LD_LIBRARY_PATH). They are no place for secrets.
    type: dict
    default: {}
  min_bytes:
    description: The smallest size.
    type: int
    default: 1073741824
  max_bytes:
    description: The largest size.
    type: int
    default: 8589934592
  step_factor:
    description: Each size is so many times the one before.
    type: int
    default: 2
  iterations:
    description: How often each size is measured.
    type: int
    default: 20
  warmup_iterations:
    description: How often before that.
    type: int
    default: 5
  load_allowed:
    description: Run also while a GPU process or a job uses this host.
    type: bool
    default: false
  timeout_seconds:
    description: After this time the run is ended.
    type: int
    default: 300
  output_file:
    description: Where the raw output of the run is kept on this host; it replaces a file of that name.
    type: path
  host:
    description: The name of this host in the findings; its own where it is absent.
    type: str
  subject:
    description: What the findings call the run.
    type: str
  expected:
    description: What the run is held against.
    type: dict
    default: {}
    suboptions:
      names:
        description: Host in the findings → its name as NCCL prints it. By itself this host.
        type: dict
      gbytes_per_s:
        description: busbw in 10^9 bytes a second.
        type: float
      no_limit:
        description: Why there is no such figure; without one and without this, the rate is judged unknown.
        type: str
        default: ""
      hcas:
        description: Host → the RDMA devices that it should use.
        type: dict
        default: {}
      all_hcas:
        description: Whether a run has to use each of them; else only a device that is not of them is an error.
        type: bool
        default: true
      gdr:
        description: Whether GPUDirect RDMA is planned between hosts; not judged as an error where it is absent.
        type: bool
      fail_below:
        description: Below this fraction of the figure is an error.
        type: float
        default: 0.8
      warn_below:
        description: Below this fraction of it is a warning.
        type: float
        default: 0.9
      large_bytes:
        description: From this size on a rate counts.
        type: int
        default: 268435456
requirements:
  - nccl-tests; with O(launcher) a build with C(MPI=1)
"""

EXAMPLES = r"""
- name: Run on the eight GPUs of this host
  rdma.cluster.nccl_test:
    gpus: 8
    folder: /opt/nccl-tests/build
    expected: {no_limit: no rate of NVLink is known}

- name: Run on two hosts through Open MPI, as a user whose key both know
  rdma.cluster.nccl_test:
    gpus: 8
    hosts: [192.0.2.1, 192.0.2.2]
    launcher: mpirun
    folder: /opt/nccl-tests/build
    interface: eno1
    expected:
      names: {node1: gpu-1, node2: gpu-2}
      gbytes_per_s: 392
      gdr: true
  become: true
  become_user: hpc
  register: run
"""

RETURN = r"""
ran:
  description: Whether something was run; V(false) in check mode, and while the host is in use.
  type: bool
  returned: always
in_use:
  description: Who uses this host, for which nothing was run; empty if nobody does.
  type: str
  returned: always
  sample: GPU process 4711 (python3)
argv:
  description: The command line.
  type: list
  elements: str
  returned: always
variables:
  description: The names of the variables that were set for the run.
  type: list
  elements: str
  returned: always
passed:
  description: Whether none of the findings is an error or unknown.
  type: bool
  returned: when something was run
exit_status:
  description: The status with which it ended, negative for a signal; V(null) if it was not started or had to be ended.
  type: int
  returned: when something was run
seconds:
  description: How long it took.
  type: float
  returned: when something was run
busbw_gbytes_per_s:
  description: The median of busbw over the large sizes, out of place and in place; V(null) where there is none.
  type: float
  returned: when something was run
result:
  description: What nccl-tests printed, V(null) if that cannot be read.
  type: dict
  returned: when something was run
log:
  description: What NCCL's log says in short, V(null) if there is none.
  type: dict
  returned: when something was run
findings:
  description: What was judged, in the form of all findings of this collection.
  type: list
  elements: dict
  returned: when something was run
"""

import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import LAUNCHERS, PROGRAMS, command, environment
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.start import described, expected_of, run_nccl, run_of
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import busy_words, in_use_now, read_load

#: How long the processes of an earlier run may take to end.
ENDING_SECONDS = 10
EXPECTED_SPEC = {
    "names": {"type": "dict"},
    "gbytes_per_s": {"type": "float"},
    "no_limit": {"type": "str", "default": ""},
    "hcas": {"type": "dict", "default": {}},
    "all_hcas": {"type": "bool", "default": True},
    "gdr": {"type": "bool"},
    "fail_below": {"type": "float", "default": 0.8},
    "warn_below": {"type": "float", "default": 0.9},
    "large_bytes": {"type": "int", "default": 2**28},
}
SPEC = {
    "operation": {"type": "str", "choices": list(PROGRAMS), "default": "all_reduce"},
    "hosts": {"type": "list", "elements": "str", "default": []},
    "gpus": {"type": "int", "required": True},
    "launcher": {"type": "str", "choices": list(LAUNCHERS), "default": "none"},
    "program": {"type": "path"},
    "launcher_arguments": {"type": "list", "elements": "str", "default": []},
    "interface": {"type": "str"},
    "allow_root": {"type": "bool", "default": False},
    "folder": {"type": "path"},
    "environment": {"type": "dict", "default": {}},
    "min_bytes": {"type": "int", "default": 2**30},
    "max_bytes": {"type": "int", "default": 2**33},
    "step_factor": {"type": "int", "default": 2},
    "iterations": {"type": "int", "default": 20},
    "warmup_iterations": {"type": "int", "default": 5},
    "load_allowed": {"type": "bool", "default": False},
    "timeout_seconds": {"type": "int", "default": 300},
    "output_file": {"type": "path"},
    "host": {"type": "str"},
    "subject": {"type": "str"},
    "expected": {"type": "dict", "default": {}, "apply_defaults": True, "options": EXPECTED_SPEC},
}


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    try:
        result = apply(module.params, module.check_mode)
    except (ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **result)


def users(sys: SysRoot, *, is_root: bool | None = None, sleep: Callable[[float], None] = time.sleep) -> str:
    """Who uses this host, in words; "" if nobody does. What a run before this one has left gets some seconds to end.

    Another user than root does not see the GPU processes of others, for which it is no reason: the role has looked as root.
    """
    words = ""
    for _attempt in range(ENDING_SECONDS):
        if (os.geteuid() == 0) if is_root is None else is_root:
            words = in_use_now(sys)
        else:
            load = read_load(sys)
            words = busy_words(replace(load, gpu_processes=load.gpu_processes or []))
        if not words:
            return ""
        sleep(1.0)
    return words


def apply(options: dict, check_mode: bool) -> dict:
    run = run_of(options)
    in_use = "" if check_mode or options["load_allowed"] else users(SysRoot())
    told = {"ran": not check_mode and not in_use, "in_use": in_use, "argv": command(run), "variables": sorted(environment(run))}
    if check_mode or in_use:
        return told
    host = options["host"] or os.uname().nodename
    subject = options["subject"] or f"{PROGRAMS[run.operation]} on {run.nhosts} host{'s' if run.nhosts > 1 else ''}"
    expected = expected_of(options["expected"], run, host)
    ran = run_nccl(run, expected, host=host, subject=subject, spooler=SubprocessRunner(), output_file=options["output_file"])
    return {**told, **described(ran, expected), "findings": [asdict(finding) for finding in ran.findings]}


if __name__ == "__main__":
    main()
