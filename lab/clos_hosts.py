# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A routed Clos network between the nodes of a lab: its switches with FRR, the cables to the nodes, and their part of the inventory.

The switches begin as Linux switches do after `apt-get install frr`: the daemons run, and nothing is configured. `rdma.cluster.routed`
configures them.
"""

from __future__ import annotations

import os
from typing import Any

from lab import clos, namespace
from lab.clos import Clos
from lab.clos_plan import HOST_SUBNETS, LOOPBACKS, MTU_BYTES, namespace_of
from lab.errors import LabError
from lab.paths import ClosFolder
from lab.plan import Plan, Rail

#: frr.conf of a new switch. The profile is that of the collection's plan, because daemons that run do not change theirs.
NEW_CONF = "frr defaults datacenter\nlog syslog informational\n"
PYTHON = "/usr/bin/python3"


def refuse_other(plan: Plan) -> None:
    """Raise LabError if a Clos network of the lab's name is up that does not belong to the lab."""
    if plan.clos and ClosFolder.of(plan.name).path.exists():
        raise LabError(f"There is a Clos network '{plan.name}' already: lab clos down --name {plan.name}, or give the lab another --name.")


def create(plan: Plan) -> None:
    """Make the switches of a lab, join their ports to the cables of the nodes, and start FRR on them."""
    if plan.clos is None:
        return
    network = clos.up(plan.name, plan.clos)
    for switch in network.shape.switches:
        _write_python(network, switch)
    ports = {cable.b: cable.a for cable in network.shape.cables}
    for node in plan.nodes:
        for rail in node.rails:
            leaf, port = ports[node.name, rail.name]
            _join(plan, rail, namespace_of(plan.name, leaf), port)
    clos.route(network, dict.fromkeys(network.shape.switches, NEW_CONF))


def _join(plan: Plan, rail: Rail, leaf: str, port: str) -> None:
    """Plug a port of a leaf into the bridge of a rail's cable. leaf: the leaf's namespace."""
    namespace.ip(plan.namespace, "link", "add", rail.uplink, "type", "veth", "peer", "name", port, "netns", leaf)
    namespace.silence(plan.namespace, rail.uplink)
    namespace.ip(plan.namespace, "link", "set", rail.uplink, "mtu", str(namespace.SWITCH_MTU_BYTES), "master", rail.bridge, "up")
    namespace.ip(leaf, "link", "set", port, "mtu", str(MTU_BYTES), "up")


def with_switches(plan: Plan, inventory: dict[str, Any]) -> dict[str, Any]:
    """Return the inventory of a lab with the routing of its plane, and the switches in the group rdma_switches.

    Ansible reaches a switch by a program that runs Python inside it, as root. With a given cabling plan, the inventory has neither fabric
    nor rails: those are in the inventory that was planned with the cables.
    """
    if plan.clos is None:
        return inventory
    folder, everything = ClosFolder.of(plan.name), inventory["all"]
    root = {"ansible_become": True} if "SUDO_UID" in os.environ else {}
    access = {"ansible_connection": "local", **root}
    switches = {name: {**access, "ansible_python_interpreter": str(folder.python(name))} for name in plan.clos.switches}
    children = {"rdma_switches": {"hosts": switches}}
    if plan.clos.given:
        shared = {name: value for name, value in everything["vars"].items() if name != "rdma_fabric"}
        hosts = {host: {"ansible_port": of["ansible_port"]} for host, of in everything["hosts"].items()}
        return {"all": {"vars": shared, "hosts": hosts, "children": children}}
    routing = {"loopbacks": LOOPBACKS, "host_subnets": str(HOST_SUBNETS), "spine_asn": "own"}
    fabric = {"topology": "switched", "planes": {"lab": {"plan": str(folder.cabling), "routing": routing}}}
    return {"all": {**everything, "vars": {**everything["vars"], "rdma_fabric": fabric}, "children": children}}


def _write_python(network: Clos, switch: str) -> None:
    program = network.folder.python(switch)
    words = " ".join(network.argv(switch, [PYTHON]))
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
