# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading who the subnet managers of a plane are, from one of its hosts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_tools import Tools
from ansible_collections.rdma.cluster.plugins.module_utils._saquery import parse_manager_ports
from ansible_collections.rdma.cluster.plugins.module_utils._sminfo import SmInfo, parse_sminfo
from ansible_collections.rdma.cluster.plugins.module_utils._smpquery import parse_nodedesc, parse_nodeinfo


@dataclass(frozen=True)
class Managers:
    """master: the one that the port knows, None if none answers; known: all of the plane, the master first, None if that is not known.

    why_not: why they are not known, None if they are.
    """

    master: SmInfo | None
    known: list[SmInfo] | None
    why_not: str | None


def read_managers(tools: Tools, *, identify: bool = False) -> Managers:
    """Two commands, one more for each manager beside the master, and two for the node of each where it is to be identified.

    Never raises for what the fabric or the tools do.

    If the master disappears between the two, sminfo is run again, so that the reason says which one disappeared or took over.
    """
    before = len(tools.problems)
    master = tools.run("sminfo", [], parse_sminfo)
    lids = tools.run("saquery", ["-s"], parse_manager_ports) if master is not None else None
    if master is not None and lids is None:
        again = tools.run("sminfo", [], parse_sminfo)
        if again is not None and again.guid != master.guid:
            tools.problems.append(f"the master was at LID {master.lid} and is now at LID {again.lid}: another has taken over in between")
    known = [] if master is None else [master]
    for lid in lids or ():
        if master is not None and lid != master.lid and (other := tools.run("sminfo", [str(lid)], parse_sminfo)) is not None:
            known.append(other)
    why_not = "; ".join(tools.problems[before:]) or None
    known = [identified(tools, each) for each in known] if identify else known
    return Managers(known[0] if known else None, known if why_not is None else None, why_not)


def identified(tools: Tools, manager: SmInfo) -> SmInfo:
    """The manager with kind and description of its node, as far as that node answers; one that does not is no problem of theirs."""
    if manager.lid is None:
        return manager
    before = len(tools.problems)
    info = tools.run("smpquery", ["nodeinfo", str(manager.lid)], parse_nodeinfo)
    description = tools.run("smpquery", ["nodedesc", str(manager.lid)], parse_nodedesc)
    del tools.problems[before:]
    return replace(manager, kind=info.kind if info is not None else None, description=description or None)
