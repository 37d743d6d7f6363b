#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_rings
version_added: 0.1.0
short_description: Set the ring sizes of rails' NICs, now and at boot
description:
  - Compares the rings of each interface with the request, and sets those that differ with C(ethtool -G).
  - Setting rings resets the interface; with many drivers its link is down for about a second. The module resets one interface after the
    other, and only with O(reset_allowed).
  - Writes one file of C(udev) rules, which set the rings whenever the interface appears, at boot, after a driver reload, and after
    hot-plug.
  - Rings matter only to sockets. The queue pairs of RDMA have their own queues.
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
  rails:
    description: The rails. If empty, the file of rules is removed, and the rings do not change.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The rail's name.
        type: str
        required: true
      nic:
        description: The NIC, named by exactly one of C(pci) (V(0000:21:00.0)) and C(mac).
        type: dict
        required: true
      netdev:
        description: The current interface of this NIC.
        type: str
        required: true
      rx:
        description: Descriptors in a receive ring, at most the hardware maximum. If not set, the ring does not change.
        type: int
      tx:
        description: Descriptors in a transmit ring, as for O(rails[].rx).
        type: int
  reset_allowed:
    description: Whether interfaces may be reset. If V(false), the rules are written and the rings follow at the next boot.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Set long rings
  rdma.cluster.nic_rings:
    rails:
      - name: rail0
        nic:
          pci: "0000:21:00.0"
        netdev: ens1
        rx: 8192
        tx: 8192
    reset_allowed: true
"""

RETURN = r"""
live:
  description: Each interface whose rings were set, or would be in check mode, with the previous and the requested sizes.
  type: dict
  returned: always
  sample:
    ens1: ["rx 1024, tx 1024", "rx 8192, tx 8192"]
withheld:
  description: The interfaces whose rings differ but were not set, because O(reset_allowed) is V(false) or the host is in use.
  type: list
  elements: str
  returned: always
  sample: ["ens1: rx 1024, tx 1024, requested rx 8192, tx 8192 (not allowed)"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import refusal
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import IoctlPort
from ansible_collections.rdma.cluster.plugins.module_utils._net.rings import RailRings, ensure_rings

RAIL_SPEC = {
    "name": {"type": "str", "required": True},
    "nic": {"type": "dict", "required": True},
    "netdev": {"type": "str", "required": True},
    "rx": {"type": "int"},
    "tx": {"type": "int"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "rails": {"type": "list", "elements": "dict", "required": True, "options": RAIL_SPEC},
            "reset_allowed": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    rails = [RailRings(**rail) for rail in module.params["rails"]]
    try:
        result = ensure_rings(
            rails,
            runner=SubprocessRunner(),
            port=IoctlPort(),
            sys=SysRoot(),
            refused=refusal(SysRoot(), SubprocessRunner(), allowed=module.params["reset_allowed"]),
            check_mode=module.check_mode,
        )
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, live=result.live_words, withheld=result.withheld, diff=result.diffs)


if __name__ == "__main__":
    main()
