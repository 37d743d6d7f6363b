#!/usr/bin/python
# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_facts
short_description: Read the graph of a fabric
version_added: 0.1.0
author:
  - the rdma.cluster authors (@rdma-cluster)
description:
  - Asks one host for the whole InfiniBand fabric that one of its ports is on, by C(ibnetdiscover), C(iblinkinfo), C(ibqueryerrors),
    C(sminfo) and C(saquery), and C(smpquery) where two nodes may have one GUID, and returns it as one graph of switches, HCAs, and links
    between their ports. Nothing is changed and no counter is reset.
  - On Ethernet, asks C(lldpcli) for the neighbours of this host; the graphs of all hosts together are the fabric.
  - What could not be read leaves a graph that is not complete and says why. It never fails for that, and a graph that is not complete
    never means that the fabric is well.
options:
  source:
    description:
      - V(infiniband) for the fabric of an InfiniBand port.
      - V(lldp) for what this host sees of an Ethernet fabric.
    type: str
    choices: [infiniband, lldp]
    default: infiniband
  plane:
    description:
      - Name of the plane, which is returned with the graph.
    type: str
    default: default
  device:
    description:
      - RDMA device to ask from, such as V(mlx5_0). Without it, the tools take the first one with an active port.
    type: str
  port:
    description:
      - Port of the device to ask from.
    type: int
  graph:
    description:
      - Whether to read the graph; without it O(source=infiniband) tells the subnet managers alone, which takes a second.
    type: bool
    default: true
  links:
    description:
      - Whether to read the states of all ports, and what their links could be.
    type: bool
    default: true
  counters:
    description:
      - V(errors) for the error counters of all ports, V(data) for what they sent and received.
    type: list
    elements: str
    choices: [errors, data]
    default: [errors]
  node_name_map:
    description:
      - Node-name map on the host, in the form of opensm, whose names go before the descriptions that nodes give of themselves.
    type: path
  name:
    description:
      - What to call this host with O(source=lldp), where C(inventory_hostname) fits.
    type: str
    default: localhost
  interfaces:
    description:
      - With O(source=lldp), the interfaces that count; without it, all do.
    type: list
    elements: str
  timeout:
    description:
      - How many seconds each tool may take.
    type: float
    default: 120.0
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
requirements:
  - The package infiniband-diags on the host, or lldpd for O(source=lldp), and the right to open C(/dev/infiniband/umad*).
notes:
  - A fabric of 2048 HCAs is some 2 MB.
"""

EXAMPLES = r"""
- name: Read the fabric of a plane
  rdma.cluster.fabric_facts:
    plane: rail0
    device: mlx5_0
    port: 1
  register: fabric
  become: true

- name: Ask what this host is plugged into
  rdma.cluster.fabric_facts:
    source: lldp
    name: "{{ inventory_hostname }}"
  register: neighbours
"""

RETURN = r"""
graph:
  description: The graph. What was not told is left out. V(null) with O(graph=false).
  returned: success
  type: dict
  contains:
    schema:
      description: Version of this form.
      type: int
      returned: success
      sample: 1
    plane:
      description: Name of the plane.
      type: str
      returned: success
    source:
      description: V(ibnetdiscover) or V(lldp).
      type: str
      returned: success
    complete:
      description: Whether all that is there was read and understood.
      type: bool
      returned: success
    problems:
      description: What could not be read or understood, as sentences.
      type: list
      elements: str
      returned: success
    doubles:
      description:
        - GUIDs that several nodes have, which the tools take for one node; RV(graph.complete) is then V(false). Each node as what it calls
          itself, and GUID and port of the switch that lead to it.
      type: dict
      returned: success
      sample: {"0x506b4b0300000010": [["leaf1", "0x506b4b0300000030", 1], ["leaf2", "0x506b4b0300000030", 2]]}
    counter_names:
      description: Lists of names of counters. The C(counters) of a port are the number of its list and then its values, up to the last one
        that is not zero.
      type: list
      elements: list
      returned: success
    nodes:
      description:
        - Of each GUID C(kind) (V(switch), V(host), V(router), V(aggregation)), C(name), C(description), C(device), C(system_guid),
          C(vendor_id), C(device_id), C(lid), and C(ports) by number.
        - Of each port C(guid), C(lid), C(lmc), C(state), C(physical), C(width) in lanes, C(speed), C(could_be) with the lanes and the speed
          that both ends could do, C(counters), and on Ethernet its C(label).
      type: dict
      returned: success
    links:
      description: Links, each as GUID and port of one end, GUID and port of the other, lanes, and speed.
      type: list
      elements: list
      returned: success
      sample: [["0x2c5eab0300b87b40", 1, "0xe09d7303007a4bd8", 1, 4, "NDR"]]
subnet_manager:
  description: The master that the port knows. V(null) if none answers, and with O(source=lldp).
  returned: success
  type: dict
  contains:
    lid:
      description: Its LID.
      type: int
      returned: success
    guid:
      description: GUID of its port.
      type: str
      returned: success
    state:
      description: V(MASTER), V(STANDBY), V(DISCOVER) or V(NOTACT).
      type: str
      returned: success
    priority:
      description: Its priority.
      type: int
      returned: success
    activity:
      description: A count that grows while it lives.
      type: int
      returned: success
    kind:
      description: The kind of node that it runs on, V(host) or V(switch). V(null) with O(graph=true), and where the node did not answer.
      type: str
      returned: success
    description:
      description: The description of that node. V(null) as RV(subnet_manager.kind).
      type: str
      returned: success
subnet_managers:
  description: All that take part in the plane, each as RV(subnet_manager), the master first. V(null) if that is not known.
  returned: success
  type: list
  elements: dict
no_subnet_manager:
  description: Why RV(subnet_managers) are not known, V(null) if they are.
  returned: success
  type: str
read_at:
  description: When it was read, in seconds since 1970, of the host's clock.
  returned: success
  type: float
"""

import time
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.lldp import read_lldp
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import read_managers
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Asked, Tools


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "str", "choices": ["infiniband", "lldp"], "default": "infiniband"},
            "plane": {"type": "str", "default": "default"},
            "device": {"type": "str"},
            "port": {"type": "int"},
            "graph": {"type": "bool", "default": True},
            "links": {"type": "bool", "default": True},
            "counters": {"type": "list", "elements": "str", "choices": ["errors", "data"], "default": ["errors"]},
            "node_name_map": {"type": "path"},
            "name": {"type": "str", "default": "localhost"},
            "interfaces": {"type": "list", "elements": "str"},
            "timeout": {"type": "float", "default": 120.0},
        },
        supports_check_mode=True,
    )
    params, read_at = module.params, time.time()
    if params["source"] == "lldp":
        graph = read_lldp(SubprocessRunner(), params["plane"], params["name"], params["timeout"], params["interfaces"])
        module.exit_json(graph=graph.to_dict(), subnet_manager=None, subnet_managers=None, no_subnet_manager=None, read_at=read_at)
    asked = Asked(
        plane=params["plane"],
        device=params["device"],
        port=params["port"],
        links=params["links"],
        errors="errors" in params["counters"],
        data="data" in params["counters"],
        node_name_map=params["node_name_map"],
        timeout_seconds=params["timeout"],
    )
    graph: dict[str, Any] | None = None
    if params["graph"]:
        facts = read_fabric(SubprocessRunner(), SysRoot("/"), asked)
        graph, managers = facts.graph.to_dict(), facts.managers
    else:
        managers = read_managers(Tools(SubprocessRunner(), SysRoot("/"), asked), identify=True)
    module.exit_json(
        graph=graph,
        subnet_manager=asdict(managers.master) if managers.master is not None else None,
        subnet_managers=[asdict(each) for each in managers.known] if managers.known is not None else None,
        no_subnet_manager=managers.why_not,
        read_at=read_at,
    )


if __name__ == "__main__":
    main()
