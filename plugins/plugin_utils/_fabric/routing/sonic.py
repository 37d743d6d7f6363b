# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A planned router for SONiC: parts of config_db.json, and frr.conf for the routing mode split-unified.

The tables and keys are those of SONiC's YANG models (sonic-device_metadata, sonic-loopback-interface, sonic-interface, sonic-port).
With bgpcfgd, ConfigDB cannot express our route-maps and prefix lists, multipath-relax or the maximum of prefixes, and BGP_PEER_RANGE needs
addresses. So BGP is in frr.conf, and BGP_NEIGHBOR and BGP_PEER_RANGE must be empty. None of it was loaded into a switch.
"""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr import head_of, routing_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane, Router

LOOPBACK = "Loopback0"
#: FRR's configuration is not generated from ConfigDB, and is one file.
MODE = "split-unified"
STEPS = """\
! For SONiC with docker_routing_config_mode split-unified, for the network team. Nothing was applied.
! 1. BGP_NEIGHBOR and BGP_PEER_RANGE of ConfigDB must be empty: SONiC writes them to FRR in this mode too.
! 2. `config load` this switch's config_db.json. It adds to ConfigDB and removes nothing. Save it with `config save`.
! 3. Copy this file to /etc/sonic/frr/frr.conf. Then `systemctl restart bgp`, which ends all sessions of the switch.
! SONiC sets the addresses of the interfaces from ConfigDB, so they are not in this file."""


def render_config_db(router: Router) -> str:
    """Return the parts of config_db.json of a router, with a final line break. Values are strings, as SONiC writes them."""
    tables: dict[str, Any] = {
        "DEVICE_METADATA": {
            "localhost": {"bgp_asn": str(router.asn), "docker_routing_config_mode": MODE, "hostname": router.name},
        },
        "LOOPBACK_INTERFACE": {LOOPBACK: {}, f"{LOOPBACK}|{router.loopback}/32": {}},
        "INTERFACE": {
            **{each.port: {"ipv6_use_link_local_only": "enable"} for each in router.neighbors},
            **{key: {} for port in router.host_ports for key in (port.port, f"{port.port}|{port.address}")},
        },
        "PORT": {
            **{each.port: _port(f"{each.name} {each.its_port}") for each in router.neighbors},
            **{port.port: _port(f"{port.host} {port.device}") for port in router.host_ports},
        },
    }
    return json.dumps(tables, indent=4) + "\n"


def _port(description: str) -> dict[str, str]:
    return {"admin_status": "up", "description": description}


def render_sonic_frr(plane: RoutedPlane, router: Router) -> str:
    """Return frr.conf of a router, with a final line break."""
    return "\n".join([head_of(plane), STEPS, *routing_lines(plane, router), ""])
