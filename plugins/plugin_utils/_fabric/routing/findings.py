# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the routers of a plane with their plan: sessions, routes, paths, leaks, BFD, kernel settings. One cause is one finding."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import RouterState
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.judge import APPLY, Judge, State
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.routes import check_leaks, check_routes
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.sessions import check_identities, check_sessions
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.settings import check_bfd, check_kernel, check_mtu
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some


def check_routers(
    plane: RoutedPlane,
    states: Mapping[str, State],
    mtu_bytes: int | None = None,
    management: Sequence[str] = (),
    *,
    hosts: Collection[str] | None = None,
    elsewhere: Collection[str] = (),
) -> list[Finding]:
    """Return the findings fabric.bgp of a plane.

    states: switch, or host with BGP → its state, or why it could not be read; one that is missing was not read. mtu_bytes: the largest MTU
    of the plane's rails, None if none is planned. management: subnets of the management network. hosts: those of this run, None for all;
    others are judged by their leaves alone. elsewhere: the prefixes of other planes, which hosts may have too.
    """
    judge = Judge(plane, states, mtu_bytes, management, elsewhere)
    wanted = [*plane.routers, *(host for host in plane.hosts if hosts is None or host in hosts)]
    unread = {name: states.get(name, "it was not read in this run") for name in wanted if not isinstance(states.get(name), RouterState)}
    for reason, peers in dict.fromkeys((why, name in plane.hosts) for name, why in unread.items()):
        names = some([name for name, each in unread.items() if (each, name in plane.hosts) == (reason, peers)])
        group = "Add the switch to the group rdma_switches of the inventory, by its name in the cabling plan."
        first = "On the host: `systemctl status frr`." if peers else f"{group} 2. On the switch: `systemctl status frr`."
        judge.add(UNKNOWN, names, str(reason), "read", f"1. {first} {2 if peers else 3}. Apply the plan: {APPLY}.")
    check_identities(judge)
    check_sessions(judge)
    check_leaks(judge)
    check_routes(judge)
    check_bfd(judge)
    check_kernel(judge)
    check_mtu(judge)
    if not judge.findings:
        speakers = f"{len(plane.routers)} switches{f' and {len(plane.hosts)} hosts' if plane.hosts else ''}"
        judge.add(
            OK,
            "routing",
            f"{len(judge.up)} sessions between {speakers} are Established, and all prefixes have all their paths",
            "route",
            "",
        )
    return judge.findings
