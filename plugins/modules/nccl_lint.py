#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_lint
version_added: 0.1.0
short_description: Find mistakes in NCCL's variables on a host
description:
  - NCCL reports none of these mistakes. It ignores unknown names, parses numbers partially (V(yes) is 0 before NCCL 2.32), matches device
    names as prefixes, and prefers a user's file to the site's file.
  - Reads every source of variables in NCCL's order. These are the environment of a process, the file of E(NCCL_CONF_FILE) or else
    C(.nccl.conf) in the user's home, and C(/etc/nccl.conf).
  - Compares the variables with all variables that NCCL reads, with each other, and with the devices and interfaces of the host. It also
    returns the source that sets each variable.
  - A container sees only mounted files of the host. For a process in a container, the module reads the container's files.
  - Changes nothing. It returns only variables whose names look like NCCL's.
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
      - A file that its owner and mode make unreadable for the user is not reported, even if a link leads to it.
    type: list
    elements: str
    default: [root]
  services:
    description: systemd units that start jobs, such as C(slurmd.service). If a unit runs, the environment of its main process is read.
    type: list
    elements: str
    default: []
  processes:
    description: Process IDs on the host, for example of a running job.
    type: list
    elements: int
    default: []
  files:
    description: Environment files that launchers read before they start a job.
    type: list
    elements: path
    default: []
  version:
    description: The version of NCCL that jobs use. By default a recent version is assumed.
    type: str
  plan:
    description: The expected state of the host, as P(rdma.cluster.nccl_lint_plan#filter) returns it. Absent values are not compared.
    type: dict
    default: {}
    suboptions:
      leave_out:
        description: The RDMA devices that NCCL must not use, with the reasons.
        type: dict
        default: {}
      traffic_class:
        description: The traffic class byte of the IP header that RoCE uses.
        type: int
      trust:
        description: The header field that switches and NICs trust.
        type: str
        choices: [dscp, pcp]
      service_level:
        description: The PCP of the VLANs of the rails.
        type: int
      rails_apart:
        description: Whether the rails are separate networks.
        type: bool
      gpudirect:
        description: The planned path to GPU memory.
        type: str
        choices: [dmabuf, peermem, none]
      asked_for:
        description: Variables that the intent sets for every job, although they are meant for tests.
        type: list
        elements: str
        default: []
      rail_interfaces:
        description: The interfaces of rails, each with the name of its rail. Bootstrap traffic of jobs should not use them.
        type: dict
        default: {}
seealso:
  - plugin: rdma.cluster.nccl_lint
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Check NCCL's variables of all users and services that start jobs
  rdma.cluster.nccl_lint:
    users: [root, alice]
    services: [slurmd.service]
    files: [/etc/rdma-cluster/nccl.env]
    version: 2.27.7
    plan: "{{ ansible_facts.rdma_intent | rdma.cluster.nccl_lint_plan(ansible_facts.rdma) }}"
  register: variables

- name: Fail on errors
  ansible.builtin.assert:
    that: variables.problems | selectattr('severity', 'equalto', 'error') | length == 0
"""

RETURN = r"""
problems:
  description: The problems, the most severe first.
  type: list
  elements: dict
  returned: success
  contains:
    rule:
      description: The name of the rule.
      type: str
    severity:
      description: V(error), V(unknown) if it could not be judged, V(warning) or V(info).
      type: str
    variable:
      description: The variable, or the variables that contradict each other. Empty if the problem concerns a line or a file.
      type: str
    where:
      description: The file or environment. If nothing sets the variable, the owner of the affected jobs.
      type: str
    observed:
      description: The current value, and how NCCL interprets it.
      type: str
    expected:
      description: The correct value.
      type: str
    remedy:
      description: The remedy.
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
  description: The sources from which each owner's jobs get their variables.
  type: list
  elements: dict
  returned: success
  contains:
    owner:
      description: The user, service, process or file, or V(every other job).
      type: str
    sources:
      description: The sources that NCCL reads for these jobs, in its order.
      type: list
      elements: str
    variables:
      description: For each variable, its C(value), the source it is C(from), and the values that it C(hides), each with C(value) and C(in).
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
    "service_level": {"type": "int"},
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
