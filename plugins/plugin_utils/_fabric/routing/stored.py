# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the run folder has of routers: the planned files of each switch, and its answer, untrusted until router_state has parsed it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import router_state
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.findings import check_routers
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.judge import State
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

FOLDER, PLAN = "fabric/routers", "plan"
#: frr.conf, daemons, and the kernel settings.
SUFFIXES = (".frr.conf", ".daemons", ".sysctl")
#: The files of switches whose operating system has its own form. The network team applies them.
VENDOR_SUFFIXES = {"nvue": (".routing.nv",), "sonic": (".config_db.json", ".frr.conf")}


def plan_file(switch: str, suffix: str) -> str:
    return RunFolder.host_file(PLAN, f"switch-{switch}", suffix)


def plan_suffixes(syntax: str) -> tuple[str, ...]:
    """Return the suffixes of a switch's files."""
    return VENDOR_SUFFIXES.get(syntax, SUFFIXES)


def vendor_files(folder: RunFolder, switch: str) -> list[str]:
    """Return the planned files of a switch that the network team applies; none of a switch with FRR, or without a plan."""
    found = ([plan_file(switch, suffix) for suffix in suffixes] for suffixes in VENDOR_SUFFIXES.values())
    return next((names for names in found if all((folder.path / name).exists() for name in names)), [])


def host_plan_file(host: str, suffix: str) -> str:
    """Return the name of a file of a host that speaks BGP."""
    return RunFolder.host_file(PLAN, f"host-{host}", suffix)


def planned_texts(folder: RunFolder, name: str) -> dict[str, Any] | None:
    """Return {"conf", "daemons", "sysctls"} of a switch or of a host that speaks BGP, None if this run has not planned it."""
    places = ([folder.path / of(name, suffix) for suffix in SUFFIXES] for of in (plan_file, host_plan_file))
    files = next((each for each in places if all(file.exists() for file in each)), None)
    if files is None:
        return None
    conf, daemons, sysctls = (file.read_text(encoding="utf-8") for file in files)
    return {"conf": conf, "daemons": daemons, "sysctls": dict(line.split(" = ") for line in sysctls.splitlines())}


def stored_name(switch: str) -> str:
    return RunFolder.host_file(FOLDER, switch)


def stored_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a module's answer that are stored. A module that failed is a router that was not read."""
    if answer.get("failed"):
        return {"texts": {}, "sysctls": {}, "problem": clean(str(answer.get("msg") or "router_facts failed"))}
    return {key: answer.get(key) for key in ("texts", "sysctls", "problem", "kernel", "kernel_problem")}


def stored_states(folder: RunFolder, switches: Mapping[str, object]) -> dict[str, State]:
    """Return switch → its state, or why there is none. Switches that were not read in this run are not in the result."""
    found: dict[str, State] = {}
    for switch in switches:
        try:
            answer = folder.read_if_there(stored_name(switch))
            if answer is not None:
                found[switch] = router_state(answer)
        except (ParseError, AttributeError) as error:
            found[switch] = str(error)
    return found


def routing_findings(
    folder: RunFolder,
    plane: RoutedPlane,
    planes: Sequence[RoutedPlane],
    intents: Mapping[str, Intent],
    hosts: Collection[str] | None = None,
) -> list[Finding]:
    """Return the findings fabric.bgp of a plane, from the answers of its switches and hosts in this run.

    planes: all routed planes. intents: of the hosts of the run. hosts: those with BGP that must be read, None for all of the run.
    """
    subnets = {(intent["fabric"]["management"] or {}).get("subnet") for intent in intents.values()}
    rails = (rail for intent in intents.values() for rail in intent["rails"] if rail["plane"] == plane.name)
    mtu_bytes = max((rail["mtu_bytes"] or 0 for rail in rails), default=0) or None
    management, states = sorted(each for each in subnets if each), stored_states(folder, plane.speakers)
    others = (each.own_prefixes.values() for each in planes if each.name != plane.name)
    elsewhere = {prefix for prefixes in others for each in prefixes for prefix in each}
    return check_routers(plane, states, mtu_bytes, management, hosts=intents if hosts is None else hosts, elsewhere=elsewhere)
