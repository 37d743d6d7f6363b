# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The planned HCAs of the hosts in each plane, by intent and facts."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict


def expected_hcas(hosts: Mapping[str, Known], link_layer: str = "infiniband") -> dict[str, list[Expected]]:
    """Return plane → the rails of this link layer that the hosts plan there. A host without facts has them without GUID and device.

    Virtual functions are omitted: the node in the fabric is the physical function, which its machine may plan.
    """
    found: dict[str, list[Expected]] = {}
    for host, known in hosts.items():
        facts = known.facts or from_dict(None)
        for each in resolve(known.intent["rails"], facts) if known.intent else ():
            if each.rail["link_layer"] != link_layer or each.rail.get("soft"):
                continue
            device = facts.devices.get(each.device or "")
            if is_virtual(device):
                continue
            plane = str(each.rail.get("plane") or "default")
            found.setdefault(plane, []).append(
                Expected(
                    host,
                    each.name,
                    graph_guid(device.node_guid if device else None),
                    each.device,
                    int(each.port or 1),
                    each.rail.get("rate_gbps"),
                    plane,
                    str(each.rail.get("role") or "compute"),
                )
            )
    return found


def is_virtual(device: Device | None) -> bool:
    """Return whether an RDMA device in the facts is a virtual function.

    It is not an InfiniBand node, and may not send directed-route queries.
    """
    return device is not None and device.function == "vf"


def graph_guid(guid: str | None) -> str | None:
    """Return a GUID of the facts ("0002:c903:00f9:bfa0") in the form of graphs ("0x0002c90300f9bfa0")."""
    return None if guid is None else "0x" + guid.replace(":", "").lower()
