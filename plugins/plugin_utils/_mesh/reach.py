# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of a mesh's intent: hosts without a common cable, rails beside the planned cables, and other networks in the pool."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import nic_label, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import Pool
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import MESH, relays
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.given import cables_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.shape import Shape, shape_of

declare(
    {
        "mesh.reach": Check(
            "preflight",
            "in a mesh, whether each two hosts with compute rails share a cable; if no path of cables connects them, an error with "
            "`rdma_fabric.mesh`, else a warning",
            "the inventory",
            "add a cable, or set `NCCL_MESH_ENABLE_RELAY: 1` with the mesh plugin of NCCL",
            sources=(reads.INTENT,),
        ),
        "mesh.rails": Check(
            "preflight",
            "whether the rails are those of the cables in `rdma_fabric.mesh`",
            "the inventory",
            "plan the rails again: `plan.yml --tags mesh`",
            sources=(reads.INTENT,),
        ),
        "mesh.pool": Check(
            "preflight",
            "whether other networks of a host are in the pool of `rdma_fabric.mesh`",
            "`ip address show`, `/proc/net/route`",
            "choose another pool",
            sources=(reads.ADDRESSES, reads.file("/proc/net/route")),
        ),
    }
)

STAGE = "preflight"
REPLAN = "Run `ansible-playbook rdma.cluster.plan --tags mesh` on the control node, and put the proposed inventory behind yours."


def check_mesh(hosts: Mapping[str, Known]) -> dict[str, list[Finding]]:
    """Return host → its findings mesh.reach and mesh.rails; nothing for hosts that are not in a mesh."""
    planned = {host: each.intent for host, each in hosts.items() if each.intent and each.intent["fabric"]["topology"] == MESH}
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in (*_reach(planned), *_rails(planned)):
        found[finding.host].append(finding)
    return found


def _reach(planned: Mapping[str, Intent]) -> Iterator[Finding]:
    """Findings on pairs of hosts without a common cable, each at its lower host; if no path connects them, on each host apart."""
    rails: dict[str, list[str]] = defaultdict(list)
    for host, intent in planned.items():
        for rail in intent["rails"]:
            if rail["role"] == "compute":
                rails[rail["name"]].append(host)
    members = [host for host, intent in planned.items() if any(rail["role"] == "compute" for rail in intent["rails"])]
    shape = shape_of(members, [(ends[0], ends[1]) for ends in rails.values() if len(ends) == 2])
    # With --limit, cables lead to hosts outside of the play, by which the islands may be connected.
    is_whole = all(len(ends) == 2 for ends in rails.values())
    for host in members:
        yield from _of_host(host, shape, planned[host], is_whole=is_whole)


def _of_host(host: str, shape: Shape, intent: Intent, *, is_whole: bool) -> Iterator[Finding]:
    expected = "a common cable of each two hosts"
    own = next((island for island in shape.islands if host in island), [host])
    others, apart = shape.islands[0], [b for a, b in shape.apart if a == host]
    if len(shape.islands) == len(own) == 1:
        yield Finding(STAGE, "mesh.reach", host, "cables", NOT_APPLICABLE, "no other host", expected)
    elif own != others:
        # Without rdma_fabric.mesh the hosts may be several clusters with one inventory.
        status = ERROR if is_whole and intent["fabric"].get("mesh") is not None else WARNING
        words = f"no path of cables connects {host} with {some(others)}"
        remedy = f"Connect {own[0]} and {others[0]} by a cable, and plan it. If they are two clusters, run the build for each with --limit."
        yield Finding(STAGE, "mesh.reach", host, "cables", status, words, "a path of cables between all hosts", remedy)
    elif apart and not relays(intent):
        words = f"{host} has no common cable with {some(apart)}: NCCL does not relay, so they cannot reach each other by RDMA"
        remedy = (
            f"1. Connect {host} and {apart[0]} by a cable. 2. Or use NCCL's mesh plugin: `rdma_nccl.plugin: {{kind: mesh, …}}` with "
            "`variables: {NCCL_MESH_ENABLE_RELAY: 1}`. 3. Or run jobs only on hosts that all share cables."
        )
        yield Finding(STAGE, "mesh.reach", host, "cables", WARNING, words, expected, remedy)
    else:
        yield Finding(STAGE, "mesh.reach", host, "cables", OK, shape.words, expected)


def _rails(planned: Mapping[str, Intent]) -> Iterator[Finding]:
    """Findings on hosts whose rails are not those of the planned cables."""
    rails = {(host, nic_label(rail["nic"])): rail["name"] for host, intent in planned.items() for rail in intent["rails"]}
    for host, intent in planned.items():
        mesh = intent["fabric"].get("mesh")
        cables = None if mesh is None else cables_of(mesh)
        if cables is None:
            continue
        wrong = []
        own = {end.nic for cable in cables for end in cable if end.host == host}
        for cable in cables:
            for end, far in (cable, cable[::-1]):
                names = rails.get((host, end.nic)), rails.get((far.host, far.nic))
                if end.host == host and names[0] is None:
                    wrong.append(f"no rail for the cable {end.nic} to {far}")
                elif end.host == host and far.host in planned and names[0] != names[1]:
                    wrong.append(f"{names[0]} ({end.nic}) is named {names[1] or 'nothing'} at the other end of its cable, {far}")
        wrong += [f"{rails[host, nic]} ({nic}) has no cable" for at, nic in rails if at == host and nic not in own]
        status, observed = (ERROR, some(wrong)) if wrong else (OK, f"{len(own)} cables, each with its rail")
        expected = "one rail for each cable of rdma_fabric.mesh, with the same name at both ends"
        yield Finding(STAGE, "mesh.rails", host, "rails", status, observed, expected, REPLAN if wrong else "")


def check_pool(host: str, intent: Intent, facts: RunFacts) -> list[Finding]:
    """Return the finding mesh.pool: networks of interfaces that are not rails, and of routes through them; nothing without a pool."""
    mesh = intent["fabric"].get("mesh")
    if mesh is None:
        return []
    pool = Pool.of(mesh["pool"], mesh["prefix_length"])
    interfaces, routed = facts.interfaces, facts.planes.networks if facts.planes is not None else None

    def found(status: str, observed: str, remedy: str = "") -> list[Finding]:
        return [Finding(STAGE, "mesh.pool", host, "pool", status, observed, f"no other network in {pool}", remedy)]

    if not interfaces or routed is None or all(each.ipv4 is None for each in interfaces.values()):
        return found(UNKNOWN, "the addresses or routes of the host were not read", f"Run the preflight stage for {host}.")
    rails = {name for rail in resolve(intent["rails"], facts) for name in rail.interfaces}
    nics = {end.nic for cable in cables_of(mesh) or () for end in cable if end.host == host}
    rails |= {name for name, netdev in facts.netdevs.items() if {netdev.pci, (netdev.mac or "").lower()} & nics}
    networks = [(text, name) for name, each in interfaces.items() for text in each.ipv4 or () if name not in rails]
    networks += [(route.network, route.netdev) for route in routed if route.netdev not in rails]
    wrong = [f"{text} of {name}" for text, name in networks if _is_in(text, pool)]
    if wrong:
        remedy = f"Choose a pool in rdma_fabric.mesh without the networks of {host}, or change those. Then plan the cables again."
        return found(ERROR, f"{some(wrong)} {'is' if len(wrong) == 1 else 'are'} in it", remedy)
    return found(OK, f"{len(networks)} other networks, none in it")


def _is_in(text: str, pool: Pool) -> bool:
    network = ipaddress.ip_interface(text).network
    return network.prefixlen > 0 and pool.overlaps(network)
