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
  - Reads the whole InfiniBand fabric of one port of a host, and returns it as one graph of switches, HCAs, and links between their ports.
    It changes nothing and resets no counter.
  - It uses C(ibnetdiscover), C(iblinkinfo), C(ibqueryerrors), C(sminfo) and C(saquery). If two nodes may share a GUID, it also uses
    C(smpquery).
  - On Ethernet, it reads the neighbors of this host with C(lldpcli). The graphs of all hosts together form the fabric.
  - If a part cannot be read, the graph is incomplete and states why; the task does not fail. An incomplete graph never proves that the
    fabric is healthy.
options:
  source:
    description:
      - V(infiniband) reads the fabric of an InfiniBand port.
      - V(lldp) reads the neighbors of this host on an Ethernet fabric.
    type: str
    choices: [infiniband, lldp]
    default: infiniband
  plane:
    description:
      - The name of the plane, which is returned with the graph.
    type: str
    default: default
  device:
    description:
      - The RDMA device to use, such as V(mlx5_0). By default the tools use the first device with an active port.
    type: str
  port:
    description:
      - The port of the device to use.
    type: int
  graph:
    description:
      - Whether to read the graph. If V(false), O(source=infiniband) reads only the subnet managers, which takes a second.
    type: bool
    default: true
  links:
    description:
      - Whether to read the states of all ports, and the speed and width that their links support.
    type: bool
    default: true
  counters:
    description:
      - V(errors) reads the error counters of all ports, and V(data) their counters of sent and received data.
    type: list
    elements: str
    choices: [errors, data]
    default: [errors]
  node_name_map:
    description:
      - The node-name map on the host, in the format of opensm. Its names replace the node descriptions.
    type: path
  name:
    description:
      - The name of this host with O(source=lldp), for example C(inventory_hostname).
    type: str
    default: localhost
  interfaces:
    description:
      - The interfaces to read with O(source=lldp). By default all are read.
    type: list
    elements: str
  timeout:
    description:
      - The time limit of each tool, in seconds.
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
  - The package infiniband-diags on the host, or lldpd for O(source=lldp), and permission to open C(/dev/infiniband/umad*).
notes:
  - The graph of a fabric of 2048 HCAs is about 2 MB.
"""

EXAMPLES = r"""
- name: Read the fabric of a plane
  rdma.cluster.fabric_facts:
    plane: rail0
    device: mlx5_0
    port: 1
  register: fabric
  become: true

- name: Read the neighbors of this host
  rdma.cluster.fabric_facts:
    source: lldp
    name: "{{ inventory_hostname }}"
  register: neighbors
"""

RETURN = r"""
graph:
  description: The graph. Values that no tool reported are absent. V(null) with O(graph=false).
  returned: success
  type: dict
  contains:
    schema:
      description: The version of this data format.
      type: int
      returned: success
      sample: 1
    plane:
      description: The name of the plane.
      type: str
      returned: success
    source:
      description: V(ibnetdiscover) or V(lldp).
      type: str
      returned: success
    complete:
      description: Whether everything was read and parsed.
      type: bool
      returned: success
    problems:
      description: The parts that could not be read or parsed, as sentences.
      type: list
      elements: str
      returned: success
    doubles:
      description:
        - GUIDs that several nodes share. The tools merge such nodes, so RV(graph.complete) is then V(false). Each node is listed with its
          description, and the GUID and port of the switch that lead to it.
      type: dict
      returned: success
      sample: {"0x506b4b0300000010": [["leaf1", "0x506b4b0300000030", 1], ["leaf2", "0x506b4b0300000030", 2]]}
    counter_names:
      description: Lists of counter names. The C(counters) of a port are the index of its list, and then its values up to the last nonzero
        one.
      type: list
      elements: list
      returned: success
    nodes:
      description:
        - For each GUID, C(kind) (V(switch), V(host), V(router), V(aggregation)), C(name), C(description), C(device), C(system_guid),
          C(vendor_id), C(device_id), C(lid), and C(ports) by number.
        - For each port, C(guid), C(lid), C(lmc), C(state), C(physical), C(width) in lanes, C(speed), C(could_be) with the lanes and the
          speed that both ends support, C(counters), and on Ethernet its C(label).
      type: dict
      returned: success
    links:
      description: The links, each as GUID and port of one end, GUID and port of the other end, lanes, and speed.
      type: list
      elements: list
      returned: success
      sample: [["0x2c5eab0300b87b40", 1, "0xe09d7303007a4bd8", 1, 4, "NDR"]]
subnet_manager:
  description: The master subnet manager of the port. V(null) if none answers, and with O(source=lldp).
  returned: success
  type: dict
  contains:
    lid:
      description: Its LID.
      type: int
      returned: success
    guid:
      description: The GUID of its port.
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
      description: A counter that increases while it runs.
      type: int
      returned: success
    kind:
      description: The kind of its node, V(host) or V(switch). V(null) with O(graph=true), or if the node did not answer.
      type: str
      returned: success
    description:
      description: The description of that node. V(null) in the same cases as RV(subnet_manager.kind).
      type: str
      returned: success
subnet_managers:
  description: All subnet managers of the plane, each as RV(subnet_manager), the master first. V(null) if they are unknown.
  returned: success
  type: list
  elements: dict
no_subnet_manager:
  description: Why RV(subnet_managers) are unknown. V(null) if they are known.
  returned: success
  type: str
read_at:
  description: The time of the reading by the host's clock, in seconds since 1970.
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
