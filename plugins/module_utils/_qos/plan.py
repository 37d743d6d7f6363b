# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host's RoCE file: the profile, its NICs, and the names of its units.

Module, boot unit and gate read the same file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import QosPort
from ansible_collections.rdma.cluster.plugins.module_utils._qos.state import roce_interfaces
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import read_devices
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import find_netdev

CONFIG = "/etc/rdma-cluster/roce.json"
#: The unit of each interface is an instance of this template.
TEMPLATE = "rdma-qos@.service"
#: The prefix of its unit names.
UNIT_PREFIX = TEMPLATE.partition(".")[0]
SCHEMA = 1
Nic = Mapping[str, str]


@dataclass(frozen=True)
class QosPlan:
    """profile: as returned by roce_profile; nics: each {"pci": "0000:3d:00.0"} or {"mac": "02:00:00:00:01:02"}."""

    profile: dict[str, Any]
    nics: list[dict[str, str]]


def unit_of(interface: str) -> str:
    """Return the name of an interface's unit; of the characters in interface names, systemd escapes only "-"."""
    return TEMPLATE.replace("@", "@" + interface.replace("-", "\\x2d"))


def write_plan(profile: Mapping[str, Any], nics: Sequence[Nic]) -> str:
    """Return the file's text."""
    return json.dumps({"schema": SCHEMA, "profile": dict(profile), "nics": [dict(nic) for nic in nics]}, indent=2, sort_keys=True) + "\n"


def parse_plan(text: str) -> QosPlan:
    """Parse the text of write_plan. Raises ParseError for any other."""
    try:
        plan = json.loads(text)
        schema, profile, nics = plan["schema"], plan["profile"], plan["nics"]
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ParseError(f"not a plan of RoCE: {quoted(text)}, expected an object with schema, profile and nics") from exc
    if schema != SCHEMA or not isinstance(profile, dict) or not isinstance(nics, list):
        raise ParseError(f"a plan of RoCE of schema {schema!r}, expected {SCHEMA}: run the QoS stage again")
    return QosPlan(profile, nics)


@dataclass(frozen=True)
class QosPorts:
    """found: interface → its port, in the order of the NICs. waiting: interfaces without an RDMA device. missing: NICs not found."""

    found: dict[str, QosPort]
    waiting: list[str]
    missing: list[str]


def find_ports(sys: SysRoot, nics: Sequence[Mapping[str, str]]) -> QosPorts:
    """Find the ports of the NICs. nics: each named by pci or mac."""
    netdevs = read_netdevs(sys)
    ports = roce_interfaces(netdevs, read_devices(sys, netdevs, PciReader(sys), counters=False))
    names = [(nic, find_netdev(nic, netdevs)) for nic in nics]
    there = [name for _nic, name in names if name is not None]
    return QosPorts(
        found={name: QosPort(name, *ports[name]) for name in there if name in ports},
        waiting=[name for name in there if name not in ports],
        missing=[next(iter(nic.values())) for nic, name in names if name is None],
    )
