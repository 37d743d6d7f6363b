#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_lint
version_added: 0.1.0
short_description: Say what is wrong with NCCL's variables on a host, and which source of them counts
description:
  - NCCL ignores names that it does not know, reads what it can of a number (V(yes) is 0 before NCCL 2.32), takes names of devices for
    prefixes, and prefers a user's file over the site's. It says nothing of all that.
  - Reads every source of variables in NCCL's order, which is the environment of a process, the file that E(NCCL_CONF_FILE) names or else
    C(.nccl.conf) in its home, and C(/etc/nccl.conf). Compares them with all variables that NCCL reads, with each other, and with the
    devices and interfaces of the host.
  - A container does not see files of the host that are not mounted. For a process in one, its own files are read.
  - Changes nothing. Only variables whose names look like NCCL's are returned.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
    details:
      - It only reads.
  diff_mode:
    support: N/A
    details:
      - It only reads.
options:
  users:
    description:
      - Users whose C(.nccl.conf) is read.
      - A file that a user may not read, as far as its owner and mode say, is not told of, whatever link leads to it.
    type: list
    elements: str
    default: [root]
  services:
    description: Units of systemd that start jobs, such as C(slurmd.service). One that runs is asked for what its main process has.
    type: list
    elements: str
    default: []
  processes:
    description: Processes, such as one of a running job, by their numbers on the host.
    type: list
    elements: int
    default: []
  files:
    description: Environment files that launchers read before they start a job.
    type: list
    elements: path
    default: []
  version:
    description: The version of NCCL that jobs use. Without it, a recent one is taken.
    type: str
  plan:
    description: What the host shall be, as P(rdma.cluster.nccl_lint_plan#filter) makes it. What is not given is not compared.
    type: dict
    default: {}
    suboptions:
      leave_out:
        description: RDMA devices that are not NCCL's, and why.
        type: dict
        default: {}
      traffic_class:
        description: The byte of IP that RoCE shall have.
        type: int
      trust:
        description: What switches and NICs go by.
        type: str
        choices: [dscp, pcp]
      rails_apart:
        description: Whether no network joins the rails.
        type: bool
      gpudirect:
        description: The planned path to GPU memory.
        type: str
        choices: [dmabuf, peermem, none]
      asked_for:
        description: Variables that somebody wants set for every job, though they are for tests.
        type: list
        elements: str
        default: []
      rail_interfaces:
        description: The interfaces of rails, each with the name of its rail. Traffic that sets jobs up should not use them.
        type: dict
        default: {}
seealso:
  - plugin: rdma.cluster.nccl_lint
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Look at NCCL's variables of everybody who starts jobs
  rdma.cluster.nccl_lint:
    users: [root, alice]
    services: [slurmd.service]
    files: [/etc/rdma-cluster/nccl.env]
    version: 2.27.7
    plan: "{{ ansible_facts.rdma_intent | rdma.cluster.nccl_lint_plan(ansible_facts.rdma) }}"
  register: variables

- name: Refuse errors
  ansible.builtin.assert:
    that: variables.problems | selectattr('severity', 'equalto', 'error') | length == 0
"""

RETURN = r"""
problems:
  description: What is wrong, the worst first.
  type: list
  elements: dict
  returned: success
  contains:
    rule:
      description: The name of the rule.
      type: str
    severity:
      description: V(error), V(unknown) where it could not be judged, V(warning) or V(info).
      type: str
    variable:
      description: The variable, or those that contradict each other. Empty where it is about a line or a file.
      type: str
    where:
      description: The file or environment; where nothing sets the variable, whose jobs it is about.
      type: str
    observed:
      description: What is there, and what NCCL makes of it.
      type: str
    expected:
      description: What would be right.
      type: str
    remedy:
      description: What to do.
      type: str
  sample:
    - rule: value_range
      severity: error
      variable: NCCL_IB_TC
      where: /etc/nccl.conf
      observed: "NCCL_IB_TC=300: NCCL takes 300, which is out of range"
      expected: a number from -1 to 255
      remedy: Correct NCCL_IB_TC in /etc/nccl.conf.
jobs:
  description: Whose jobs take their variables from where.
  type: list
  elements: dict
  returned: success
  contains:
    owner:
      description: The user, service, process or file, or V(every other job).
      type: str
    sources:
      description: What NCCL reads for them, in its order.
      type: list
      elements: str
    variables:
      description: Of each variable its C(value), where that is C(from), and what it C(hides), each with C(value) and C(in).
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.lint import lint, winners
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import Plan
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.sources import Asked, read_host, read_sources

PLAN = {
    "leave_out": {"type": "dict", "default": {}},
    "traffic_class": {"type": "int"},
    "trust": {"type": "str", "choices": ["dscp", "pcp"]},
    "rails_apart": {"type": "bool"},
    "gpudirect": {"type": "str", "choices": ["dmabuf", "peermem", "none"]},
    "asked_for": {"type": "list", "elements": "str", "default": []},
    "rail_interfaces": {"type": "dict", "default": {}},
}
ASKED = {
    "users": {"type": "list", "elements": "str", "default": ["root"]},
    "services": {"type": "list", "elements": "str", "default": []},
    "processes": {"type": "list", "elements": "int", "default": []},
    "files": {"type": "list", "elements": "path", "default": []},
}


def main() -> None:
    spec = {**ASKED, "version": {"type": "str"}, "plan": {"type": "dict", "default": {}, "options": PLAN}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    version, system = module.params["version"], SysRoot()
    try:
        sources = read_sources(system, SubprocessRunner(), Asked(**{name: module.params[name] for name in ASKED}))
        problems = lint(sources, read_host(system), version, Plan(**module.params["plan"]))
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, problems=[problem.to_dict() for problem in problems], jobs=winners(sources, version))


if __name__ == "__main__":
    main()
