#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_network
version_added: 0.1.0
short_description: Give rails their address and MTU, now and at boot
description:
  - Writes one file a rail for the network manager of the host and compares the live interface with it.
  - Only an interface that differs is reconfigured, never the whole host's network; the result is read back.
  - Files of ours for rails that are no longer O(planned) are removed.
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
  manager:
    description: The network manager that owns the rails.
    type: str
    choices: [networkd]
    default: networkd
  rails:
    description: The rails.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The rail's name; part of the file's name.
        type: str
        required: true
      nic:
        description: The NIC, named by exactly one of C(pci) (V(0000:21:00.0)) and C(mac).
        type: dict
        required: true
      netdev:
        description: The interface that this NIC has now.
        type: str
        required: true
      address:
        description: IPv4 address with prefix length, V(192.168.100.1/24).
        type: str
      mtu_bytes:
        description: MTU of the interface in bytes.
        type: int
        required: true
      ipoib:
        description: IP over InfiniBand, where it is more than an address on the default partition.
        type: dict
        suboptions:
          mode:
            description: Its mode; drivers of ConnectX-4 and later have only V(datagram).
            type: str
            choices: [datagram, connected]
            default: datagram
          children:
            description: Interfaces on other partitions.
            type: list
            elements: dict
            default: []
            suboptions:
              key:
                description: The partition's key, without the bit for full membership.
                type: int
                required: true
              address:
                description: IPv4 address with prefix length.
                type: str
              mtu_bytes:
                description: MTU of the interface in bytes.
                type: int
                required: true
  planned:
    description: The names of all rails of the host, also those whose NIC is not there now; the files of others are removed.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Address and jumbo frames for a rail
  rdma.cluster.rail_network:
    rails:
      - name: rail0
        nic:
          pci: "0000:21:00.0"
        netdev: ens1
        address: 192.168.100.1/24
        mtu_bytes: 9000
    planned: [rail0]
"""

RETURN = r"""
live:
  description: What differed on each interface before it was reconfigured, pairs of what was seen and what was wished.
  type: dict
  returned: always
  sample:
    ens1:
      - [MTU 1500 bytes, MTU 9000 bytes]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils import _networkd
from ansible_collections.rdma.cluster.plugins.module_utils._command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, CommandError, ParseError

MANAGERS = {"networkd": _networkd}
CHILD_SPEC = {
    "key": {"type": "int", "required": True, "no_log": False},
    "address": {"type": "str"},
    "mtu_bytes": {"type": "int", "required": True},
}
RAIL_SPEC = {
    "name": {"type": "str", "required": True},
    "nic": {"type": "dict", "required": True},
    "netdev": {"type": "str", "required": True},
    "address": {"type": "str"},
    "mtu_bytes": {"type": "int", "required": True},
    "ipoib": {
        "type": "dict",
        "options": {
            "mode": {"type": "str", "choices": ["datagram", "connected"], "default": "datagram"},
            "children": {"type": "list", "elements": "dict", "default": [], "options": CHILD_SPEC},
        },
    },
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "manager": {"type": "str", "choices": list(MANAGERS), "default": "networkd"},
            "rails": {"type": "list", "elements": "dict", "required": True, "options": RAIL_SPEC},
            "planned": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        rails = [_networkd.make_rail(rail) for rail in module.params["rails"]]
        manager = MANAGERS[module.params["manager"]]
        result = manager.ensure(rails, module.params["planned"], runner=SubprocessRunner(), check_mode=module.check_mode)
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=result.changed, live=result.live, diff=result.diffs)


if __name__ == "__main__":
    main()
