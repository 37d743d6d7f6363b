#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: path_mtu
version_added: 0.1.0
short_description: Probe the path MTU between the rails of hosts
description:
  - Sends one ICMP echo request of the interfaces' MTU to each partner of each rail, with the bit "do not fragment". Requests without an
    answer are repeated at most twice.
  - If a partner answers only smaller packets, it finds the largest size with an answer, and by UDP whether larger packets arrive there.
    These are about 100 packets for each of at most eight partners. A router that reports a smaller MTU is named.
  - As a task of a play, the action plugin takes the rails and partners from the plan of the run (M(rdma.cluster.pair_proofs)), and stores
    the results for the gate (check C(network.path_mtu)).
  - A rail has at most 64 partners. Changes nothing. In check mode it sends nothing.
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
  rails:
    description: The rails to probe. The action plugin sets it.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the rail.
        type: str
        required: true
      netdev:
        description: Network interface of the rail.
        type: str
        required: true
      address:
        description: IP address of that interface, from which packets are sent.
        type: str
        required: true
      peers:
        description: The partners.
        type: list
        elements: dict
        required: true
        suboptions:
          host:
            description: Name of the partner.
            type: str
            required: true
          address:
            description: IP address of the partner on this rail.
            type: str
            required: true
          bytes:
            description: Size of the IP packet.
            type: int
            required: true
"""

EXAMPLES = r"""
- name: Compare the ports with the proofs of earlier runs
  rdma.cluster.pair_proofs:
    path_mtu: true
  run_once: true

- name: Probe the path MTU between the rails
  rdma.cluster.path_mtu:
"""

RETURN = r"""
rails:
  description: The result of each rail.
  type: dict
  returned: success
  contains:
    peers:
      description: The number of partners.
      type: int
    bad:
      description:
        - The partners that the whole size does not reach, or from which it does not return.
        - C(bytes) is the largest size with an answer (0 without any answer). C(sent) is whether the whole size arrives there, V(null) if
          that is not known. C(hop) is the address and the MTU of a router that reported a smaller MTU.
      type: dict
    unstable:
      description: The partners that answer some packets of a size and not others.
      type: list
      elements: str
    error:
      description: Why nothing was probed, empty otherwise.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.path_mtu import probe

PEER_SPEC = {
    "host": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
    "bytes": {"type": "int", "required": True},
}
RAIL_SPEC = {
    "name": {"type": "str", "required": True},
    "netdev": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
    "peers": {"type": "list", "elements": "dict", "required": True, "options": PEER_SPEC},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"rails": {"type": "list", "elements": "dict", "default": [], "options": RAIL_SPEC}},
        supports_check_mode=True,
    )
    rails = {} if module.check_mode else {name: result.to_dict() for name, result in probe(module.params["rails"]).items()}
    module.exit_json(changed=False, rails=rails)


if __name__ == "__main__":
    main()
