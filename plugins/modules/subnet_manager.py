#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: subnet_manager
version_added: 0.1.0
short_description: Run opensm on ports of a host, now and at boot
description:
  - Writes the configuration and partitions of opensm, a set of files for each plane, and runs opensm with the distribution's service.
  - Compares files and service with the plan, and the files with those that the running opensm has read. On a signal, opensm reads changes
    of partitions, and of most settings. Settings that it reads only at its start require O(restart_allowed).
  - Before it starts or changes anything, it reads which subnet manager is master of the plane (C(sminfo)).
  - Without O(takeover_allowed) it starts and changes nothing if the master is not one of O(instances[].managers), is one of
    O(instances[].unconfigured), or cannot be read.
  - Without O(partition_change_allowed) it does not make a change that removes a P_Key or full membership from any port of the fabric.
    RV(losses) names the ports.
  - It refuses an allowed effect while one of the affected hosts is in use (O(busy)). It refuses a change of partitions if the losses of any
    port are unknown.
  - It refuses a takeover if the distribution has a single unit for opensm, and that unit runs opensm on another or an unknown port.
  - RV(foreign) lists the units of opensm that this module did not configure. They are not stopped or changed.
  - On a converged host it does not read the fabric. After a start the module waits for the port to become active.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  flavor:
    description: The vendor of opensm, which determines the names of its services.
    type: str
    choices: [debian, rhel, ofed]
    required: true
  instances:
    description: The subnet managers, one for each plane.
    type: list
    elements: dict
    required: true
    suboptions:
      plane:
        description: The name of the plane.
        type: str
        required: true
      guid:
        description: The GUID of the port, V(0x0002c9030002fb05).
        type: str
        required: true
      device:
        description: The RDMA device of the port.
        type: str
        required: true
      number:
        description: The number of the port.
        type: str
        required: true
      priority:
        description: The priority from 0 to 15. The subnet manager with the highest priority is the master.
        type: int
        required: true
      config:
        description: The text of opensm.conf.
        type: str
        required: true
      partitions:
        description: The text of partitions.conf.
        type: str
        required: true
      diags:
        description: The text of the file with the keys of the plane for infiniband-diags. If not set, that file is removed.
        type: str
      default_given:
        description: >-
          Whether the intent sets the membership of the default partition. If V(false), limited members of the default partition in the
          current file stay limited.
        type: bool
        default: true
      managers:
        description: The ports of the hosts that may be master of the plane. Maps each GUID to the name of its host.
        type: dict
        default: {}
      lids:
        description: The LIDs of these ports, as text.
        type: list
        elements: str
        default: []
      unread:
        description: The hosts that may be master of the plane but whose ports are unknown.
        type: list
        elements: str
        default: []
      unconfigured:
        description: >-
          The hosts that may be master of the plane but do not have the opensm.conf of this role for it. An opensm there is foreign.
        type: list
        elements: str
        default: []
  sharp:
    description: Whether NVIDIA's aggregation manager runs.
    type: bool
    default: false
  ports:
    description: The ports of the inventory's hosts. Maps each GUID to host and device, V(node3 mlx5_0).
    type: dict
    default: {}
  busy:
    description: The hosts that are in use, each with its users, or why they are unknown.
    type: dict
    default: {}
  restart_allowed:
    description: Whether a running opensm may be restarted. opensm then computes all routes again, under running jobs.
    type: bool
    default: false
  takeover_allowed:
    description: Whether opensm may be started or changed if another subnet manager is master, or if the master could not be read.
    type: bool
    default: false
  partition_change_allowed:
    description: >-
      Whether ports may lose a P_Key or full membership, or may keep a P_Key with a different index, service level, MTU or IP over
      InfiniBand setting.
    type: bool
    default: false
  settings_change_allowed:
    description:
      - Whether the keys (M_Key, SM_Key, SA_Key), the M_Key protection or the QoS settings of a running opensm may change.
      - opensm applies them on a signal or in any heavy sweep, and writes them to the ports of the fabric.
    type: bool
    default: false
  stop_allowed:
    description: Whether an opensm of this role may be stopped and removed if it is no longer in O(instances).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run the subnet managers of this host
  rdma.cluster.subnet_manager:
    flavor: "{{ managers.flavor }}"
    instances: "{{ managers.instances }}"
"""

RETURN = r"""
steps:
  description: The actions other than file changes that were taken, or would be in check mode.
  type: list
  elements: str
  returned: always
  sample: ["reload opensm@0x0002c9030002fb05.service"]
withheld:
  description: >-
    The effects that were not allowed, or were refused because hosts are in use. Each effect (V(restart), V(takeover),
    V(partition_change), V(settings_change), V(stop)) has the planes that need it, with the reasons.
  type: dict
  returned: always
  sample:
    restart:
      compute: ["routing_engine (null) → ftree"]
    takeover: {}
    partition_change: {}
    settings_change: {}
    stop: {}
losses:
  description: The ports of each plane that lose a P_Key or full membership with the planned partitions, whether or not the change was made.
  type: dict
  returned: always
  sample:
    compute: ["node3 mlx5_0 (0xa088c20300000031): loses 0x0101 (full)"]
foreign:
  description: Running units of opensm that this module did not configure.
  type: list
  elements: str
  returned: always
  sample: ["opensm@0x0002c9030002fb06.service"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.ensure import EFFECTS, ManagerHost, ensure_managers
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.guard import Fleet
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.service import FLAVORS, Instance

INSTANCE = {
    **{name: {"type": "str", "required": True} for name in ("plane", "guid", "device", "number", "config", "partitions")},
    "priority": {"type": "int", "required": True},
    "diags": {"type": "str"},
    "default_given": {"type": "bool", "default": True},
    "managers": {"type": "dict", "default": {}},
    "lids": {"type": "list", "elements": "str", "default": []},
    "unread": {"type": "list", "elements": "str", "default": []},
    "unconfigured": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "flavor": {"type": "str", "choices": list(FLAVORS), "required": True},
            "instances": {"type": "list", "elements": "dict", "required": True, "options": INSTANCE},
            "sharp": {"type": "bool", "default": False},
            "ports": {"type": "dict", "default": {}},
            "busy": {"type": "dict", "default": {}},
            **{f"{effect}_allowed": {"type": "bool", "default": False} for effect in EFFECTS},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        result = ensure_managers(
            [Instance(**each) for each in options["instances"]],
            options["flavor"],
            ManagerHost(SysRoot(), SubprocessRunner()),
            sharp=options["sharp"],
            fleet=Fleet(options["ports"], options["busy"]),
            allowed=[effect for effect in EFFECTS if options[f"{effect}_allowed"]],
            check_mode=module.check_mode,
        )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=result.changed,
        steps=result.steps,
        withheld=result.withheld,
        losses=result.losses,
        foreign=result.foreign,
        diff=result.diffs,
    )


if __name__ == "__main__":
    main()
