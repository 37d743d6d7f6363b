#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_test
version_added: 0.1.0
short_description: Run one of the nccl-tests and judge its result
description:
  - Runs a program of nccl-tests on the GPUs of this host, or of several hosts with Open MPI or Slurm. It waits for the end and judges the
    output of the program and of NCCL. A run over sockets does not pass, regardless of its speed.
  - Enables NCCL's log for the run (C(NCCL_DEBUG=INFO)). All other variables are those of the hosts, including C(/etc/nccl.conf).
  - If a run exceeds the time limit, the module ends it with all its processes.
  - Before the run it reads who uses this host. If a GPU process or a job uses it, the module runs nothing unless O(load_allowed) is set.
    Only root sees the GPU processes of all users.
  - It puts load on GPUs and network, and changes nothing. A run that does not pass does not fail the task; see RV(passed).
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - Runs nothing.
  diff_mode:
    support: N/A
    details:
      - There is no state to compare.
options:
  operation:
    description: The collective operation to run.
    type: str
    choices: [all_reduce, all_gather, reduce_scatter, alltoall, sendrecv, broadcast, reduce]
    default: all_reduce
  hosts:
    description:
      - The names or IPv4 addresses by which the launcher on this host reaches the hosts.
      - Required unless O(launcher=none), which runs only on this host.
    type: list
    elements: str
    default: []
  gpus:
    description: The number of GPUs of each host. Each GPU is one rank.
    type: int
    required: true
  launcher:
    description: V(none) runs one process for all GPUs of this host, and needs no MPI. The other launchers start a process for each GPU.
    type: str
    choices: [none, mpirun, srun]
    default: none
  program:
    description: The path of the launcher, if it is not in E(PATH).
    type: path
  launcher_arguments:
    description: More arguments for the launcher (C(--mpi=pmix), C(--partition=gpu)). All users of the host can read them.
    type: list
    elements: str
    default: []
  interface:
    description: The interface of Open MPI's own connections. By default Open MPI chooses it.
    type: str
  allow_root:
    description: Whether Open MPI may be run by root. If V(false), a run by root fails.
    type: bool
    default: false
  folder:
    description: The folder of the nccl-tests programs, the same on all hosts. By default they are searched in E(PATH).
    type: path
  environment:
    description: Additional variables for the run, for example C(LD_LIBRARY_PATH). Do not put secrets in them.
    type: dict
    default: {}
  min_bytes:
    description: The smallest size in bytes.
    type: int
    default: 1073741824
  max_bytes:
    description: The largest size in bytes.
    type: int
    default: 8589934592
  step_factor:
    description: The factor between one size and the next.
    type: int
    default: 2
  iterations:
    description: The number of measured iterations of each size.
    type: int
    default: 20
  warmup_iterations:
    description: The number of warm-up iterations of each size.
    type: int
    default: 5
  load_allowed:
    description: Whether to run even if a GPU process or a job uses this host.
    type: bool
    default: false
  timeout_seconds:
    description: The time limit of the run.
    type: int
    default: 300
  output_file:
    description: The file on this host for the raw output of the run. An existing file is replaced.
    type: path
  host:
    description: The name of this host in the findings. The default is its host name.
    type: str
  subject:
    description: The name of the run in the findings.
    type: str
  expected:
    description: The expected result of the run.
    type: dict
    default: {}
    suboptions:
      names:
        description: Maps a host in the findings to its name in NCCL's output. The default is only this host.
        type: dict
      gbytes_per_s:
        description: The expected busbw in 10^9 bytes per second.
        type: float
      no_limit:
        description: Why no busbw is expected. If neither this nor a busbw is set, the rate is judged unknown.
        type: str
        default: ""
      hcas:
        description: Maps a host to the RDMA devices that it should use.
        type: dict
        default: {}
      all_hcas:
        description: Whether a run must use each of them. If V(false), only the use of any other device is an error.
        type: bool
        default: true
      gdr:
        description: Whether GPUDirect RDMA is planned between hosts. If not set, it is not judged as an error.
        type: bool
      fail_below:
        description: A busbw below this fraction of the expected one is an error.
        type: float
        default: 0.8
      warn_below:
        description: A busbw below this fraction of the expected one is a warning.
        type: float
        default: 0.9
      large_bytes:
        description: The smallest size whose rate is judged.
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

- name: Run on two hosts with Open MPI, as a user whose SSH key works on both
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
  description: Whether a test was run. V(false) in check mode, and while the host is in use.
  type: bool
  returned: always
in_use:
  description: Who uses this host, which is why nothing was run. Empty if nothing uses it.
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
  returned: when a test was run
exit_status:
  description: The exit status, negative for a signal. V(null) if the test was not started or exceeded the time limit.
  type: int
  returned: when a test was run
seconds:
  description: The duration of the run.
  type: float
  returned: when a test was run
busbw_gbytes_per_s:
  description: The median busbw of the large sizes, out of place and in place. V(null) if there is none.
  type: float
  returned: when a test was run
result:
  description: The parsed output of nccl-tests. V(null) if it cannot be parsed.
  type: dict
  returned: when a test was run
log:
  description: A summary of NCCL's log. V(null) if there is none.
  type: dict
  returned: when a test was run
findings:
  description: The findings, in the format of all findings of this collection.
  type: list
  elements: dict
  returned: when a test was run
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

#: Time limit for the processes of an earlier run to end.
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
    """The users of this host in words; "" if there are none. Processes of an earlier run get some seconds to end.

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
    answer = {"ran": not check_mode and not in_use, "in_use": in_use, "argv": command(run), "variables": sorted(environment(run))}
    if check_mode or in_use:
        return answer
    host = options["host"] or os.uname().nodename
    subject = options["subject"] or f"{PROGRAMS[run.operation]} on {run.nhosts} host{'s' if run.nhosts > 1 else ''}"
    expected = expected_of(options["expected"], run, host)
    ran = run_nccl(run, expected, host=host, subject=subject, spooler=SubprocessRunner(), output_file=options["output_file"])
    return {**answer, **described(ran, expected), "findings": [asdict(finding) for finding in ran.findings]}


if __name__ == "__main__":
    main()
