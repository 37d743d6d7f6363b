# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's settings for a fabric: whether rails are connected, the P_Key index, and reduction in switches (SHARP)."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, subnet_manager_of
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import STAGE
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import MESH
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import partition_place, partition_words

declare(
    {
        "nccl.pkey": Check(
            "nccl",
            "`NCCL_IB_PKEY`, on InfiniBand",
            "`ports/N/pkeys`, for the partition in which ports are measured",
            "set `index0: true` in `rdma_partitions`",
            sources=(reads.PKEYS,),
        ),
    }
)

PKEY, COLLNET, CROSS_NIC = "NCCL_IB_PKEY", "NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC"
#: The table entry that a queue pair uses by default.
FIRST = 0
#: For values that need a device: one cause is one finding.
SEE_HCA = "see nccl.hca"


def pkey_index(intent: Intent, facts: Facts, rails: Sequence[ResolvedRail]) -> str | None:
    """Return the value of NCCL_IB_PKEY: None if it is the first entry, unknown, or different between rails.

    rails: those for NCCL with a device.
    """
    indexes = set(_indexes(intent, facts, rails).values())
    return str(indexes.pop()) if len(indexes) == 1 and not indexes & {None, FIRST} else None


def collnet(intent: Intent) -> bool:
    """Return whether every rail for NCCL is on a plane whose subnet manager runs SHARP's aggregation manager."""
    planes = {rail["plane"] for rail in intent["rails"] if rail["role"] == "compute"}
    managers = [subnet_manager_of(intent, plane) for plane in planes]
    return bool(managers) and all(manager is not None and manager["sharp"] for manager in managers)


def rails_apart(intent: Intent) -> bool:
    """Return whether no network connects the NICs of different compute rails: they are on different planes, and not mesh cables."""
    return intent["fabric"]["topology"] != MESH and len({rail["plane"] for rail in intent["rails"] if rail["role"] == "compute"}) > 1


def check_pkey(host: str, intent: Intent, facts: Facts, rails: Sequence[ResolvedRail]) -> list[Finding]:
    """Return the finding `nccl.pkey`: NCCL uses one P_Key index for all ports, so the partition must have the same index on each."""
    expected = "the partition at the same index on all InfiniBand rails"

    def found(status: str, observed: str, remedy: str = "") -> list[Finding]:
        return [Finding(STAGE, "nccl.pkey", host, PKEY, status, observed, expected, remedy)]

    planned = [rail for rail in intent["rails"] if rail["role"] == "compute" and rail["link_layer"] == "infiniband"]
    if not planned:
        return found(NOT_APPLICABLE, "no compute rail is InfiniBand")
    if PKEY in intent["nccl"]["variables"]:
        return found(NOT_APPLICABLE, "rdma_nccl.variables sets it")
    indexes = _indexes(intent, facts, rails)
    absent = [rail["name"] for rail in planned if rail["name"] not in {each.name for each in rails}]
    if len(indexes) < len(planned) - len(absent):
        known = ", ".join(indexes) or "none"
        return found(UNKNOWN, f"P_Key tables read: {known}; planned: {len(planned)} rails", f"Run the driver and link stages for {host}.")
    seen = ", ".join(f"{name}: {_words(intent, facts, rail)}" for name, rail in ((rail.name, rail) for rail in rails) if name in indexes)
    if None in indexes.values():
        return found(ERROR, seen, f"Make {host} a full member of a partition (rdma_partitions), and run the link stage.")
    if len(set(indexes.values())) > 1:
        remedy = (
            "Set `index0: true` for that partition in rdma_partitions, and run the link stage: it is then first in the P_Key table of "
            f"every port of {host}."
        )
        return found(ERROR, seen, remedy)
    return found(NOT_APPLICABLE, f"{no_device_words(absent)}: {SEE_HCA}") if absent else found(OK, seen)


def no_device_words(rails: Sequence[str]) -> str:
    """Return words for rails without a device. rails: their names."""
    return f"{', '.join(rails)} {'has' if len(rails) == 1 else 'have'} no RDMA device"


def _words(intent: Intent, facts: Facts, rail: ResolvedRail) -> str:
    port = _port(facts, rail)
    place = partition_place(port, intent) if port else None
    return "not a full member of any partition" if place is None else f"{place.pkey_index} ({partition_words(place.pkey)})"


def _indexes(intent: Intent, facts: Facts, rails: Sequence[ResolvedRail]) -> dict[str, int | None]:
    """Return rail name → the index of its partition in the port's table; None if the port is not a full member of any."""
    tables = {rail.name: _port(facts, rail) for rail in rails}
    return {
        name: place.pkey_index if (place := partition_place(port, intent)) is not None else None
        for name, port in tables.items()
        if port and port.pkeys is not None
    }


def _port(facts: Facts, rail: ResolvedRail) -> Port | None:
    return facts.devices[rail.device].ports[rail.port] if rail.device and rail.port else None
