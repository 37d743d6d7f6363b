# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the network gate on the interfaces that rails are on beside their NIC: their VLANs."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail, VlanIntent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import VLANS, SeenVlan, Vlan, egress_text, wanted_egress
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import NO_NIC, Check, declare

declare(
    {
        "network.vlan": Check(
            "network",
            "for each rail on a VLAN: its interface, the NIC that carries it, the number, and the priority in the tag",
            f"`{VLANS}/IF`",
            "run the network stage; find what removes it: `ip monitor link`",
            follows=NO_NIC,
            sources=(reads.file(f"{VLANS}/*", absent_means="the interface is missing, which is an error"),),
        ),
    }
)

STAGE = "network"


def check_vlans(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `network.vlan` for each planned rail on a VLAN; none for other rails."""
    return [_vlan(host, rail, vlan, facts) for rail in resolve(rails, facts) if (vlan := rail.rail.get("vlan")) is not None]


def _vlan(host: str, rail: ResolvedRail, intent: VlanIntent, facts: Facts) -> Finding:
    planned = Vlan(rail.netdev or "its NIC", intent["id"], intent["pcp"])

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "network.vlan", host, rail.subject, status, observed, planned.words, remedy)

    if rail.netdev is None:
        return finding(NOT_APPLICABLE, "no interface: see driver.nic")
    name, stage = str(rail.interface), f"Run `ansible-playbook rdma.cluster.network --limit {host}` on the control node."
    if facts.vlans is None:
        return finding(UNKNOWN, "the VLANs were not read", f"Run `cat {VLANS}/{name}` on {host} as root.")
    seen = facts.vlans.get(name)
    fault, steps = _fault(name, planned, seen, is_there=name in (facts.interfaces or {}))
    if fault or seen is None:
        return finding(ERROR, fault, f"{steps.format(host=host, name=name)} 3. {stage}" if steps else stage)
    return finding(OK, f"{name}" + (f", {egress_text(seen.egress)}" if seen.egress else ""))


def _fault(name: str, planned: Vlan, seen: SeenVlan | None, *, is_there: bool) -> tuple[str, str]:
    """What is wrong with a VLAN, "" if nothing is, and the steps before the network stage can correct it, "" if it needs none."""
    if seen is None:
        look = "1. On {host}, see what it is: `ip -d link show {name}`. 2. Rename or remove it."
        return (f"{name} is another interface, not a VLAN", look) if is_there else (f"no interface {name}", "")
    if (seen.parent, seen.id) != (planned.parent, planned.id):
        look = "1. On {host}, see what made it: `networkctl status {name}`. 2. Remove it there."
        return f"{name} is VLAN {seen.id} on {seen.parent}", look
    differs = planned.pcp is not None and seen.egress != wanted_egress(planned)
    return (f"{name} has {egress_text(seen.egress)}" if differs else ""), ""
