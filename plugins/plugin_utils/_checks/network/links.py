# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the network gate on the interfaces that rails are on beside their NIC: their VLANs and bonds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import BondIntent, Rail, VlanIntent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import (
    BONDS,
    LACP,
    NO_PARTNER,
    Bond,
    SeenBond,
    bond_differences,
    bond_name,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import VLANS, SeenVlan, Vlan, egress_text
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, nic_label, resolve
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
        "network.bond": Check(
            "network",
            "for each rail on a bond: its mode, its members and their carrier, its hash; with LACP one aggregator and one partner for all "
            "members",
            f"`{BONDS}/IF`",
            "correct the LACP group of the switch ports; run the network stage for a bond that is missing",
            follows=NO_NIC,
            sources=(reads.file(f"{BONDS}/*", absent_means="the bond is missing, which is an error"),),
        ),
    }
)

STAGE = "network"


def missing_words(rail: ResolvedRail, name: str) -> str:
    """Return a sentence that an interface of a rail is missing, with the check that reports it."""
    return f"no interface {name}: see {'network.bond' if rail.rail.get('vlan') is None else 'network.vlan'}"


def check_vlans(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `network.vlan` for each planned rail on a VLAN; none for other rails."""
    return [_vlan(host, rail, vlan, facts) for rail in resolve(rails, facts) if (vlan := rail.rail.get("vlan")) is not None]


def _vlan(host: str, rail: ResolvedRail, intent: VlanIntent, facts: Facts) -> Finding:
    planned = Vlan(rail.bond or rail.netdev or "its NIC", intent["id"], intent["pcp"])

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
    if not planned.is_that(seen):
        look = "1. On {host}, see what made it: `networkctl status {name}`. 2. Remove it there."
        return f"{name} is VLAN {seen.id} on {seen.parent}", look
    return (f"{name} has {egress_text(seen.egress)}" if planned.egress_differs(seen.egress) else ""), ""


def check_bonds(host: str, rails: Sequence[Rail], facts: Facts) -> list[Finding]:
    """Finding `network.bond` for each planned rail on a bond; none for other rails."""
    return [_bond(host, rail, bond, facts) for rail in resolve(rails, facts) if (bond := rail.rail.get("bond")) is not None]


def _bond(host: str, rail: ResolvedRail, intent: BondIntent, facts: Facts) -> Finding:
    missing = [nic_label(nic) for nic, name in zip(intent["members"], rail.members, strict=True) if name is None]
    planned = Bond(intent["mode"], intent["lacp_rate"], intent["hash"], tuple(name or "?" for name in rail.members))

    def finding(status: str, observed: str, remedy: str = "") -> Finding:
        return Finding(STAGE, "network.bond", host, rail.subject, status, observed, planned.words, remedy)

    if missing:
        return finding(ERROR, f"no NIC {' and no NIC '.join(missing)}", f"Correct `bond.members` of {rail.name} in rdma_rails of {host}.")
    name = str(rail.bond)
    if facts.bonds is None:
        return finding(UNKNOWN, "the bonds were not read", f"Run `cat {BONDS}/{name}` on {host} as root.")
    seen = facts.bonds.get(name)
    if seen is None:
        return finding(ERROR, *_no_bond(host, rail, facts))
    whose = "" if name == bond_name(rail.name) else ", made by others and left as it is"
    faults = [*(current for current, _planned in bond_differences(planned, seen)), *_member_faults(seen)]
    if faults:
        remedy = (
            f"1. On {host}, run `cat {BONDS}/{name}`. 2. Correct the cables and the LACP group of the switch ports of "
            f"{', '.join(seen.members)}. 3. Options of a bond are set by the file that makes it: `networkctl status {name}`."
        )
        return finding(ERROR, f"{name}{whose}: {'; '.join(faults)}", remedy)
    return finding(OK, f"{name}{whose}: {', '.join(seen.members)} in mode {seen.mode}")


def _no_bond(host: str, rail: ResolvedRail, facts: Facts) -> tuple[str, str]:
    """What is seen without a bond of exactly these members, and the remedy."""
    in_others = [f"{name} is in {master}" for name in rail.netdevs if (master := facts.netdevs[name].master) is not None]
    stage = f"`ansible-playbook rdma.cluster.network --limit {host} -e network_change_allowed=true` on the control node"
    if in_others:
        return f"no bond of exactly these members; {', '.join(in_others)}", f"Correct `bond.members` of {rail.name}, or the bond on {host}."
    return f"no bond {rail.bond}", f"While {host} is idle, run {stage}: the members go down for a moment."


def _member_faults(seen: SeenBond) -> Iterator[str]:
    """Yield what is wrong with the members of a bond, each with the name of its interface."""
    down = [name for name, member in seen.members.items() if not member.up]
    yield from (f"{name} has no carrier" for name in down)
    if seen.mode != LACP:
        return
    up = {name: member for name, member in seen.members.items() if member.up}
    yield from (f"{name} hears no LACP partner" for name, member in up.items() if member.partner in (None, NO_PARTNER))
    for what, values in (
        ("aggregator", {name: member.aggregator for name, member in up.items()}),
        ("LACP partner", {name: member.partner for name, member in up.items() if member.partner not in (None, NO_PARTNER)}),
    ):
        if len(set(values.values())) > 1:
            yield f"several {what}s: {', '.join(f'{value} on {name}' for name, value in values.items())}"
