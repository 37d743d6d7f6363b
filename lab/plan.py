# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a lab: names, ports, MACs, PCI and IP addresses, all derived from the lab's name, size and NIC prefix.

Pure: nothing here reads the machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass
from typing import Any

from lab.clos_plan import ClosShape, rail_address, shape_of
from lab.errors import LabError
from lab.mesh import Cable, End, end_name

RAILS = 2
MAX_NODES = 200
MTU_BYTES = 9000
#: The PCI bus number of each rail's expander bridge; its root port is there, and the NIC is on the next bus.
PCI_BUSES = (0x20, 0x40)
#: A device has up to eight functions, each a NIC: those of a mesh that are behind one root port, like the ports of a card.
FUNCTIONS = 8
MOST_PORTS = len(PCI_BUSES) * FUNCTIONS
KINDS = ("machine", "container")
#: The value of `up --fabric` for two leaves and two spines between the nodes, instead of a bridge for each rail.
CLOS = "clos"
#: The third and fourth byte of the MAC addresses of a lab's rails, unless `up` draws others; those of management begin with 52:54:00:fe.
NIC_PREFIX = 0x001A
NIC_PREFIXES = range(0x0100, 0x10000)
#: rdma_pairs of a lab. Its machines are emulated on few cores: the results of a pair show only that the path works.
PAIRS = {
    "size_bytes": 65536,
    "queue_pairs": 1,
    "iterations": 200,
    "qp_timeout": 20,
    "deadline_seconds": 25,
    "latency_command": "none",
    "floor_gbps": 0.005,
    "software_fail_below": 0.4,
}
#: rdma_host of a lab. QEMU's bridges and NICs do not keep values that are written to their PCIe registers.
HOST = {"pcie": {"mrrs_bytes": "leave", "acs": "leave"}}
#: rdma_fabric.mesh.pool of a lab without switches.
POOL = "192.168.100.0/16"


@dataclass(frozen=True)
class Rail:
    """One NIC of a node, and its cable.

    bridge: what the cable is plugged into: the rail's switch, or in a mesh the rest of the cable. address: empty in a mesh, whose
    addresses are planned from its cables, and in a routed Clos from a given cabling plan. far: in a mesh, the other end of the cable
    ("node2/0"), unless cables were swapped. uplink: in a routed Clos, the cable's end that leads to the port of the leaf. gateway,
    routes: of a rail behind a leaf that routes.
    """

    index: int
    mac: str
    pci: str
    address: str
    cable: str
    bridge: str
    far: str = ""
    uplink: str = ""
    gateway: str = ""
    routes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"rail{self.index}"


@dataclass(frozen=True)
class Node:
    """One host of the lab; `ssh_port` is on 127.0.0.1."""

    index: int
    name: str
    ssh_port: int
    machine_id: str
    management_mac: str
    rails: tuple[Rail, ...]


@dataclass(frozen=True)
class Plan:
    """A whole lab.

    `kernel_arguments`: for the command line of each machine's kernel, after the lab's own. `nic_prefix`: see NIC_PREFIX; every new lab has
    another one, as new hosts have other NICs, so that proofs of an earlier lab do not hold for it. `mesh`: the cables between the nodes;
    none if each rail has a switch. `clos`: the routed network between the nodes, None if each rail has a switch.
    """

    name: str
    kind: str
    port_base: int
    nodes: tuple[Node, ...]
    kernel_arguments: str = ""
    nic_prefix: int = NIC_PREFIX
    mesh: tuple[Cable, ...] = ()
    clos: ClosShape | None = None

    @property
    def is_cabled(self) -> bool:
        """Whether a bridge of the data plane is a cable, not a switch."""
        return bool(self.mesh or self.clos)

    @property
    def namespace(self) -> str:
        return f"rdma-{self.name}"

    @property
    def bridges(self) -> tuple[str, ...]:
        """The bridges of the data plane: one for each rail, or for each cable of a mesh."""
        return tuple(dict.fromkeys(rail.bridge for node in self.nodes for rail in node.rails))

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise LabError(f"Lab '{self.name}' has no node '{name}'; it has {', '.join(n.name for n in self.nodes)}.")

    def rail(self, node_name: str, index: int) -> Rail:
        """Return a rail of a node. Raises LabError if there is none."""
        node = self.node(node_name)
        if not 0 <= index < len(node.rails):
            raise LabError(f"{node.name} has rails 0 to {len(node.rails) - 1}; got {index}.")
        return node.rails[index]

    def end(self, cable: str) -> tuple[Node, Rail]:
        """Return the node and the rail of a cable's end ("n1r0")."""
        return {rail.cable: (node, rail) for node in self.nodes for rail in node.rails}[cable]


def make_plan(
    name: str,
    kind: str,
    nodes: int,
    port_base: int,
    kernel_arguments: str = "",
    *,
    nic_prefix: int = NIC_PREFIX,
    mesh: tuple[Cable, ...] = (),
    fabric: str | None = None,
) -> Plan:
    """Return the whole plan. Raises LabError for an invalid name, kind or size.

    mesh: valid (lab/mesh.py). fabric: CLOS, or the text of a cabling plan whose switches are between the nodes.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]{0,9}", name):
        raise LabError(f"A lab's name is 1 to 10 lower-case letters and digits, beginning with a letter; got '{name}'.")
    if kind not in KINDS:
        raise LabError(f"A lab is made of {' or '.join(KINDS)}s; got '{kind}'.")
    if not 1 <= nodes <= MAX_NODES:
        raise LabError(f"A lab has 1 to {MAX_NODES} nodes; got {nodes}.")
    if not 1024 <= port_base <= 65535 - MAX_NODES:
        raise LabError(f"The first SSH port lies between 1024 and {65535 - MAX_NODES}; got {port_base}.")
    if kernel_arguments and kind != "machine":
        raise LabError("Only a machine has a kernel of its own to give arguments to; a container has this computer's.")
    if not re.fullmatch(r"[!-~ ]{0,512}", kernel_arguments):
        raise LabError("Kernel arguments are at most 512 printable ASCII characters.")
    if mesh and fabric:
        raise LabError("A lab has a mesh of cables or a fabric of switches: give --mesh or --fabric, not both.")
    clos = shape_of(nodes, RAILS, "" if fabric == CLOS else fabric) if fabric else None
    made = tuple(_node(name, index, port_base, _rails_of(index, nic_prefix, mesh, clos)) for index in range(1, nodes + 1))
    return Plan(name, kind, port_base, made, kernel_arguments, nic_prefix, mesh, clos)


def _node(lab: str, index: int, port_base: int, rails: tuple[Rail, ...]) -> Node:
    name = f"node{index}"
    return Node(
        index=index,
        name=name,
        ssh_port=port_base + index,
        machine_id=hashlib.sha256(f"{lab}/{name}".encode()).hexdigest()[:32],
        management_mac=f"52:54:00:fe:00:{index:02x}",
        rails=rails,
    )


def _rails_of(node: int, nic_prefix: int, mesh: tuple[Cable, ...], clos: ClosShape | None) -> tuple[Rail, ...]:
    if clos:
        return tuple(_behind_leaf(clos, (node, rail), nic_prefix) for rail in range(RAILS))
    if not mesh:
        rails = range(RAILS)
        return tuple(_rail((node, rail), nic_prefix, _rail_bridge(rail), address=f"192.168.{100 + rail}.{node}/24") for rail in rails)
    ends = {end: (number, far) for number, cable in enumerate(mesh) for end, far in (cable, cable[::-1]) if end[0] == node}
    return tuple(_rail(end, nic_prefix, _cable_bridge(number), far=end_name(far)) for end, (number, far) in sorted(ends.items()))


def _rail(end: End, nic_prefix: int, bridge: str, *, address: str = "", far: str = "") -> Rail:
    node, rail = end
    return Rail(
        index=rail,
        mac=f"52:54:{nic_prefix >> 8:02x}:{nic_prefix & 0xFF:02x}:{rail:02x}:{node:02x}",
        pci=f"0000:{PCI_BUSES[rail % len(PCI_BUSES)] + 1:02x}:00.{rail // len(PCI_BUSES)}",
        address=address,
        cable=f"n{node}r{rail}",
        bridge=bridge,
        far=far,
    )


def _behind_leaf(clos: ClosShape, end: End, nic_prefix: int) -> Rail:
    node, rail = end
    plain = _rail(end, nic_prefix, _cable_bridge((node - 1) * RAILS + rail))
    plain = dataclasses.replace(plain, uplink=f"u{plain.cable}")
    if clos.given:
        return plain
    at = rail_address(clos, node - 1, rail)
    return dataclasses.replace(plain, address=at.address, gateway=at.gateway, routes=at.routes)


def _rail_bridge(rail: int) -> str:
    return f"rail{rail}"


def _cable_bridge(number: int) -> str:
    return f"cable{number}"


def inventory(plan: Plan, key_file: str, known_hosts: str) -> dict[str, Any]:
    """Return the Ansible inventory of a lab as data: the hosts, their connections, and the intent."""
    return {
        "all": {
            "vars": {
                "ansible_host": "127.0.0.1",
                "ansible_user": "root",
                "ansible_python_interpreter": "/usr/bin/python3",
                "ansible_ssh_pipelining": True,
                "ansible_ssh_private_key_file": key_file,
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={known_hosts} -o GlobalKnownHostsFile=/dev/null",
                "rdma_fabric": _fabric(plan),
                "rdma_driver": {"stack": "inbox"},
                "rdma_host": HOST,
                "sysctl_replace_allowed": True,
                "rdma_pairs": PAIRS,
            },
            "hosts": {node.name: {"ansible_port": node.ssh_port, "rdma_rails": _rails(plan, node)} for node in plan.nodes},
        }
    }


def _fabric(plan: Plan) -> dict[str, Any]:
    if not plan.mesh:
        return {"topology": "switched", "planes": {"lab": {}}}
    cables = [[f"node{node}/{_nic(plan, plan.rail(f'node{node}', port))}" for node, port in cable] for cable in plan.mesh]
    return {"topology": "mesh", "planes": {"lab": {}}, "mesh": {"pool": POOL, "cables": cables}}


def _nic(plan: Plan, rail: Rail) -> str:
    return rail.pci if plan.kind == "machine" else rail.mac


def _rails(plan: Plan, node: Node) -> list[dict[str, Any]]:
    key = "pci" if plan.kind == "machine" else "mac"
    return [
        {
            # In a mesh the name at both ends of a cable is planned, and no port has it before.
            "name": rail.cable if plan.mesh else rail.name,
            "nic": {key: _nic(plan, rail)},
            "link_layer": "roce",
            "plane": "lab",
            **({"address": rail.address} if rail.address else {}),
            **({"gateway": rail.gateway, "routes": list(rail.routes)} if rail.gateway else {}),
            "mtu_bytes": MTU_BYTES,
            "soft": True,
        }
        for rail in node.rails
    ]
