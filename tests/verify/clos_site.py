# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory of a routed Clos network of the lab, and playbooks run with it.

The nodes are reached by a program that runs Python inside them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from lab.clos import Clos
from tests.verify.clos import MANAGEMENT, ROOT

#: A stand-in for a NIC: a veth has no device below it, so no rail is found on it. For the command that is run here, the interface has
#: one, on a bus that is not PCI. All else of its folder in /sys is real. In a node with its own systemd, the mount stays.
NIC = """
folder=/sys/devices/virtual/net/$1
shift
mkdir -p /run/nic
ln -sfn ../../vif-0 /run/nic/device
[ -L "$folder/device" ] || mount -t overlay overlay -o "lowerdir=/run/nic:$folder" "$folder"
exec "$@"
"""


def write_inventory(network: Clos, plane: RoutedPlane, folder: Path, *, nics: bool = False, **variables: Any) -> None:
    """Write hosts.yml: the hosts with the intent of the plan, and the switches. nics: stand-ins for NICs. variables: of all hosts."""
    keys = ("spine_asn", "loopbacks", "host_subnets", "bfd", "hosts_peer")
    routing = {key: value for key, value in plane.settings.items() if key in keys}
    fabric = {"planes": {"fab": {"plan": str(network.folder.cabling), "routing": routing}}, "management": {"subnet": MANAGEMENT}}
    hosts: dict[str, Any] = {}
    for router in plane.routers.values():
        for port in router.host_ports:
            gateway = port.address.partition("/")[0]
            mac = network.run(port.host, "cat", f"/sys/class/net/{port.device}/address").strip()
            rail = {"name": port.device, "nic": {"mac": mac}, "link_layer": "roce", "plane": "fab", "mtu_bytes": 9000}
            hosts[port.host] = {
                "rdma_rails": [{**rail, "address": port.host_address, "gateway": gateway}],
                "rdma_fabric": fabric,
                "rdma_driver": {"stack": "inbox"},
                **_access(network, port.host, folder, port.device if nics else ""),
                **variables,
            }
    switches = {name: _access(network, name, folder) for name in plane.routers}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "children": {"rdma_switches": {"hosts": switches}}}}))


def _access(network: Clos, node: str, folder: Path, rail: str = "") -> dict[str, str]:
    """Return how Ansible reaches a node. rail: the interface that is a NIC there."""
    program = folder / f"python-{node}"
    nic = ["sh", "-euc", NIC, "nic", rail] if rail else []
    words = shlex.join(network.argv(node, [*nic, sys.executable]))
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    return {"ansible_connection": "local", "ansible_python_interpreter": str(program)}


def playbook_argv(name: str, *words: str) -> list[str]:
    """Return the command that runs a playbook of the collection in the folder of an inventory."""
    return [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", str(ROOT / "playbooks" / name), *words]


#: A module is not copied before it runs, and all nodes of a network are served at once.
FAST = {"ANSIBLE_PIPELINING": "1", "ANSIBLE_FORKS": "8"}


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1", **FAST, **more}


def run_playbook(folder: Path, name: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a playbook to its end. more: variables of its environment."""
    argv = playbook_argv(name, *words)
    return subprocess.run(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False, env=environment(**more)
    )
