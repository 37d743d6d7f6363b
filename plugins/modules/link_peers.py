#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: link_peers
version_added: 0.1.0
short_description: Find the hosts at the other ends of cables
description:
  - Sends three IPv6 echo requests to all nodes of the link (C(ff02::1)) on each NIC, and records the MAC addresses that answer. One
    neighbor is a cable, several are a switch. It needs no IP address, only IPv6 on interfaces that are up.
  - Sends on the given NICs only, at most 64, all at once. It takes less than two seconds. It changes nothing, and also runs in check mode.
  - As a task of a play, the action plugin takes the NICs from C(rdma_rails), and stores the answer in C(cables/HOST.json) of the folder of
    this run. The fabric gate of a mesh (check C(mesh.cable)) and M(rdma.cluster.mesh_plan) read it.
  - A host does not answer if IPv6 is disabled on its interface, if its firewall drops the requests, or if
    C(net.ipv6.icmp.echo_ignore_multicast) is 1.
author:
  - the rdma.cluster authors (@rdma-cluster)
extends_documentation_fragment:
  - rdma.cluster._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  nics:
    description: PCI or MAC addresses of the NICs. The action plugin sets it.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Read the intent
  rdma.cluster.intent:

- name: Find the cables of the mesh
  rdma.cluster.link_peers:
"""

RETURN = r"""
ports:
  description: The neighbors of each NIC.
  type: dict
  returned: success
  contains:
    netdev:
      description: Network interface of the NIC, V(null) if there is none.
      type: str
    carrier:
      description: Whether it has a link, V(null) if the interface is down.
      type: bool
    neighbors:
      description: The MAC addresses that answered.
      type: list
      elements: str
    error:
      description: Why nothing was sent, empty otherwise.
      type: str
nics:
  description: The MAC and PCI addresses of all NICs of the host, by interface.
  type: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.link_peers import find_link_peers


def main() -> None:
    module = AnsibleModule(argument_spec={"nics": {"type": "list", "elements": "str", "default": []}}, supports_check_mode=True)
    module.exit_json(changed=False, **find_link_peers(SysRoot("/"), module.params["nics"]).to_dict())


if __name__ == "__main__":
    main()
