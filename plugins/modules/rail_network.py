#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_network
version_added: 0.1.0
short_description: Set the address and MTU of rails, now and at boot
description:
  - Changes with C(ip) only the settings of a live interface that differ, and reads the result back. A missing address is added to the
    existing ones.
  - Writes the files of each rail for the network manager of the host, which configures the rail at boot. A rail without address, MTU and
    O(rails[].ipoib) has no file. Another manager that runs on the host gets a file by which it leaves the rail alone.
  - Removes its files for other managers, so that a rail has one manager.
  - While a rail is in use, the module does not make a change that harms a running job, and returns it in RV(withheld). Such a change
    removes an address, changes an MTU, or makes the network manager load a file, start, or reconfigure the interface.
  - A rail is in use while a process or a kernel module holds queue pairs on its port. It is also in use while the host has a GPU process
    or a job. The module reads this on the host when it runs. If the users cannot be read, the rail counts as in use.
  - If the change of a rail is not made, its file does not change either.
  - systemd-networkd loads all changed files at once. If another changed file applies or may apply to an interface that is not a rail,
    the files are not loaded until the next boot. Live settings then change with C(ip) alone.
  - NetworkManager loads single profiles. If another profile is active on a rail, ours replaces it, which drops the addresses of the
    interface for a moment. The module does not start NetworkManager.
  - netplan renders a copy of the host's files. If netplan refuses one of them, the module names the file and the line, and writes nothing.
    The module never runs C(netplan apply).
  - Makes the bond of a rail only on an idle host, and only with O(change_allowed), because its members go down.
  - Creates the VLAN interface of a rail, and removes it if the rail no longer has it. It does not remove one that has an address which no
    file of the collection gave it.
  - Removes its own files of rails that are no longer O(planned).
  - Removes rules and routes that are no longer planned, if its own files of the last run record them.
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
    description: The network manager that configures the rails at boot. V(netplan) needs systemd-networkd as its renderer.
    type: str
    choices: [networkd, networkmanager, netplan]
    default: networkd
  rails:
    description: The rails.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The rail's name, which is part of the file's name.
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
      device:
        description: The RDMA device of the rail. Its queue pairs show whether the rail is in use.
        type: str
      port:
        description: The port of O(rails[].device).
        type: int
      mac:
        description: The hardware address of O(rails[].netdev).
        type: str
      link_layer:
        description: The link layer of the rail.
        type: str
        choices: [roce, infiniband]
        default: roce
      address:
        description:
          - IPv4 or IPv6 address with prefix length, V(192.168.100.1/24) or V(2001:db8:100::1/64), which RDMA uses. O(rails[].table) and
            O(rails[].gateway) are of its family.
          - An IPv6 address is added without duplicate address detection. Router advertisements are off on a rail with such an address.
        type: str
      addresses:
        description: Further addresses of the interface, of any family.
        type: list
        elements: str
        default: []
      table:
        description: The number of the rail's own routing table, which a rule selects by the rail's address. Without it, the rail has none.
        type: int
      gateway:
        description: The router of the rail's subnet, the default route of O(rails[].table).
        type: str
      routes:
        description: Subnets behind O(rails[].gateway), which the main table gets as well.
        type: list
        elements: str
        default: []
      mtu_bytes:
        description: MTU of the interface in bytes. Without it, the interface keeps its MTU.
        type: int
      bond:
        description: The bond of which O(rails[].netdev) is the first member. It carries the address of the rail, or the VLAN.
        type: dict
        suboptions:
          interface:
            description: The name of the bond's interface.
            type: str
            required: true
          mode:
            description: The mode of the bond.
            type: str
            choices: [802.3ad, active-backup]
            default: 802.3ad
          lacp_rate:
            description: How often LACP is sent.
            type: str
            choices: [fast, slow]
            default: fast
          hash:
            description: What chooses the member for a packet.
            type: str
            default: layer3+4
          members:
            description: The members, each with C(nic), C(netdev) and C(mac) as in O(rails).
            type: list
            elements: dict
            required: true
      vlan:
        description: The VLAN that carries the address of the rail. O(rails[].netdev) then gets the MTU, and no address.
        type: dict
        suboptions:
          interface:
            description: The name of the VLAN's interface.
            type: str
            required: true
          id:
            description: The number of the VLAN.
            type: int
            required: true
          pcp:
            description: The priority in the tag of all frames of the VLAN. Without it, the priority is not changed.
            type: int
      ipoib:
        description: Settings of IP over InfiniBand, if it is more than an address on the default partition.
        type: dict
        suboptions:
          mode:
            description: The mode. Drivers of ConnectX-4 and later have only V(datagram).
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
                description: The P_Key without the bit for full membership.
                type: int
                required: true
              address:
                description: IPv4 address with prefix length.
                type: str
              mtu_bytes:
                description: MTU of the interface in bytes.
                type: int
                required: true
  session:
    description:
      - Our own SSH session, from C(ansible_facts.rdma.session). The module does not make a change that would harm it, even if
        O(change_allowed) is set. Such a change removes the session's address, changes the MTU of its interface, or loads that interface's
        file.
    type: dict
    suboptions:
      address:
        description: The address of this host that the session uses.
        type: str
      netdev:
        description: The interface that has this address.
        type: str
  change_allowed:
    description: Whether to make changes that harm a running job while a rail is in use.
    type: bool
    default: false
  planned:
    description: The names of all rails of the host, including those whose NIC is missing. The files of other rails are removed.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Set an address and jumbo frames on a rail
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
  description:
    - The changes of each interface, as pairs of previous and planned value. In check mode, all differences.
    - The rules and routes of a rail that is no longer planned are under its name.
  type: dict
  returned: always
  sample:
    ens1:
      - [MTU 1500 bytes, MTU 9000 bytes]
withheld:
  description: The changes that were not made because a rail is in use.
  type: list
  elements: dict
  returned: always
  contains:
    rail:
      description: The name of the rail.
      type: str
    netdev:
      description: The name of the interface; V(null) for a rail that is no longer planned.
      type: str
    change:
      description: The change in words.
      type: str
    users:
      description: The users of the rail in words.
      type: str
  sample:
    - rail: rail0
      netdev: ens1
      change: MTU 1500 bytes → MTU 9000 bytes (restarts the interface's queues)
      users: 1 queue pair of ib_write_bw (pid 4711) on mlx5_0/1
reason:
  description: The same changes as one text. Empty if there are none.
  type: str
  returned: always
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_links import make_rails
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NO_SESSION
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session

CHILD_SPEC = {
    "key": {"type": "int", "required": True, "no_log": False},
    "address": {"type": "str"},
    "mtu_bytes": {"type": "int", "required": True},
}
RAIL_SPEC = {
    "name": {"type": "str", "required": True},
    "nic": {"type": "dict", "required": True},
    "netdev": {"type": "str", "required": True},
    "device": {"type": "str"},
    "port": {"type": "int"},
    "mac": {"type": "str"},
    "link_layer": {"type": "str", "choices": ["roce", "infiniband"], "default": "roce"},
    "address": {"type": "str"},
    "addresses": {"type": "list", "elements": "str", "default": []},
    "table": {"type": "int"},
    "gateway": {"type": "str"},
    "routes": {"type": "list", "elements": "str", "default": []},
    "mtu_bytes": {"type": "int"},
    "bond": {
        "type": "dict",
        "options": {
            "interface": {"type": "str", "required": True},
            "mode": {"type": "str", "choices": ["802.3ad", "active-backup"], "default": "802.3ad"},
            "lacp_rate": {"type": "str", "choices": ["fast", "slow"], "default": "fast"},
            "hash": {"type": "str", "default": "layer3+4"},
            "members": {"type": "list", "elements": "dict", "required": True},
        },
    },
    "vlan": {
        "type": "dict",
        "options": {
            "interface": {"type": "str", "required": True},
            "id": {"type": "int", "required": True},
            "pcp": {"type": "int"},
        },
    },
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
            "manager": {"type": "str", "choices": list(choice.CHANGES), "default": "networkd"},
            "rails": {"type": "list", "elements": "dict", "required": True, "options": RAIL_SPEC},
            "planned": {"type": "list", "elements": "str", "required": True},
            "change_allowed": {"type": "bool", "default": False},
            "session": {"type": "dict", "options": {"address": {"type": "str"}, "netdev": {"type": "str"}}},
        },
        supports_check_mode=True,
    )
    given = module.params["session"]
    session = NO_SESSION if given is None else Session(given["address"], given["netdev"])
    try:
        rails = make_rails(module.params["rails"])
        result = choice.ensure(
            module.params["manager"], rails, module.params["planned"],
            runner=SubprocessRunner(), sys=SysRoot(), check_mode=module.check_mode,
            change_allowed=module.params["change_allowed"], session=session,
        )  # fmt: skip
    except (ApplyError, CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    reason = "; ".join(each.words for each in result.withheld)
    withheld = [asdict(each) for each in result.withheld]
    module.exit_json(changed=result.changed, live=result.live, diff=result.diffs, withheld=withheld, reason=reason)


if __name__ == "__main__":
    main()
