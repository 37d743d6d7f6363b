#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: roce_qos
version_added: 0.1.0
short_description: Set up RoCE quality of service on NICs, now and at boot
description:
  - Reads the settings of each NIC's interface, compares them with the profile, writes only the differences, and reads them back.
  - Uses C(mlnx_qos) and OFED's files if they work for an interface, otherwise C(dcb) of iproute2 and the kernel's own files; never both.
    Settings that an interface does not support are skipped; the gate of the QoS stage reports them.
  - Installs one file with the profile, one program, and C(rdma-qos@INTERFACE.service). The service applies the same file with the same
    code at boot, after a reload of the driver, and when a NIC is plugged in.
  - Configures several NICs one after the other. If one fails, the module finishes the others and then reports the failure.
  - Disables the units of interfaces that are no longer planned. Without O(profile) or O(nics), it removes all units, the file, the program
    and the unit's template. In both cases the NICs keep their settings until the next boot or reload of the driver.
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
  profile:
    description: The profile that the filter P(rdma.cluster.roce_profile#filter) derives from the intent. If not set, nothing is planned.
    type: dict
  nics:
    description: The NICs, each named by exactly one of C(pci) (V(0000:21:00.0)) and C(mac).
    type: list
    elements: dict
    required: true
  change_allowed:
    description:
      - Whether settings change while a GPU process, a job or a user's queue pairs use the host. If V(false), the module writes nothing
        on such a host, and RV(waits) names the settings. If the users cannot be read, the host counts as in use.
    type: bool
    default: false
  toggle_allowed:
    description:
      - Whether a link may go down for a moment. This happens if PFC or global pause changes. The next NIC waits until the link is
        ACTIVE again. While the host is in use, the module refuses such a change.
      - If the change is not made, the module writes no setting of that interface. Traffic that moves to a priority without PFC is lossy.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Apply the profile to two NICs
  rdma.cluster.roce_qos:
    profile: "{{ ansible_facts.rdma_intent | rdma.cluster.roce_profile }}"
    nics:
      - pci: "0000:21:00.0"
      - pci: "0000:41:00.0"
    toggle_allowed: true
"""

RETURN = r"""
written:
  description: The settings that were written, by interface. In check mode, all differences.
  type: dict
  returned: always
  sample: {"ens1": ["trust", "pfc", "np cnp_dscp"]}
withheld:
  description: The settings that were not written because they would take a link down, by interface.
  type: dict
  returned: always
  sample: {"ens1": ["pfc"]}
refused:
  description: Why the settings in RV(withheld) were not written, V(not allowed) or the processes that use the host.
  type: str
  returned: always
  sample: GPU process 4711 (python3)
waits:
  description: The other settings that were not written, by interface.
  type: dict
  returned: always
  sample: {"ens1": ["dscp 26", "ets"]}
in_use:
  description: Who uses the host, if that is why nothing was written. Empty if the settings in RV(waits) wait for those in RV(withheld).
  type: str
  returned: always
  sample: 2 queue pairs of ib_write_bw (pid 4711) on mlx5_0/1
missing:
  description: The NICs that were not found.
  type: list
  elements: str
  returned: always
  sample: []
waiting:
  description: The interfaces of NICs that have no RDMA device yet, which were skipped.
  type: list
  elements: str
  returned: always
  sample: []
removed:
  description: Whether units and files of earlier runs were removed, or would be in check mode, because nothing is planned any more.
  type: bool
  returned: always
  sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import idle_refusal, refusal
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import IoctlPort
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import QosHost
from ansible_collections.rdma.cluster.plugins.module_utils._qos.service import ensure_service
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import Configfs


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "profile": {"type": "dict"},
            "nics": {"type": "list", "elements": "dict", "required": True},
            "change_allowed": {"type": "bool", "default": False},
            "toggle_allowed": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    given = module.params
    host = QosHost(SysRoot("/"), SubprocessRunner(), IoctlPort(), Configfs())
    try:
        refused = refusal(host.sys, host.runner, allowed=given["toggle_allowed"])
        in_use = idle_refusal(host.sys, host.runner, allowed=given["change_allowed"])
        result = ensure_service(
            given["profile"], given["nics"], host, check_mode=module.check_mode, change_allowed=not in_use, toggle_allowed=not refused
        )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=result.changed,
        written=result.written,
        withheld=result.withheld,
        refused=refused if result.withheld else "",
        waits=result.waits,
        in_use=in_use if result.waits or result.withheld else "",
        missing=result.ports.missing,
        waiting=result.ports.waiting,
        removed=result.removed,
        diff=result.diffs,
    )


if __name__ == "__main__":
    main()
