# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that compare the intents of all hosts: duplicates, differences, and plans that the hardware cannot follow.

Every check passes over the hosts once, so that a thousand of them are compared in about a second.

Hosts with compute rails are alike, and so are hosts with only storage rails. If more than half of them agree, the others are wrong.
Without such a majority the finding is that of the fleet. In a mesh a rail is a cable whose two ends must agree, without a majority.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import (
    ERROR,
    NOT_APPLICABLE,
    OK,
    UNKNOWN,
    WARNING,
    Finding,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import (
    ResolvedRail,
    guid_ports,
    nic_label,
    no_nic_words,
    rail_addresses,
    resolve,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import (
    Claim,
    Found,
    Odd,
    Tie,
    group_by,
    odd_ones,
    some,
    tied,
    undecided,
)

declare(
    {
        "intent.rails": Check(
            "preflight",
            "the rails of a host, and of hosts that should be alike",
            "the inventory",
            "correct the host that differs",
            sources=(reads.INTENT,),
        ),
        "intent.address": Check(
            "preflight",
            "each rail's address: format, subnet, duplicates",
            "the inventory",
            "give every rail of every host its own address",
            sources=(reads.INTENT,),
        ),
        "intent.mtu": Check(
            "preflight",
            "each rail's MTU against the maximum of its NIC",
            "`ip -d address show`",
            "lower `mtu_bytes`, or check which NIC this is",
            sources=(reads.ADDRESSES,),
        ),
        "intent.nic": Check(
            "preflight",
            "each planned NIC, and that no other rail has it",
            "`/sys/class/net`",
            "correct `nic`; the finding lists the NICs of the host",
            sources=(reads.folder("/sys/class/net", absent_means="the interfaces are missing: the driver may not be installed yet"),),
        ),
        "intent.hosts": Check(
            "preflight",
            "the number of hosts in the play",
            "the inventory",
            "add hosts: a pair needs two",
            sources=(reads.INTENT,),
        ),
        "intent.alike": Check(
            "preflight",
            "whether `rdma_gate` and `rdma_pairs` are equal on all hosts, and `rdma_roce` on hosts whose RoCE rails share a plane",
            "the inventory",
            "set the same value for all hosts",
            sources=(reads.INTENT,),
        ),
        "host.identity": Check(
            "preflight",
            "hostname, machine-id, and node GUIDs of InfiniBand rails",
            "`/proc/sys/kernel/hostname`, `/etc/machine-id`, `/sys/class/infiniband/*/node_guid`",
            "for a cloned machine, `systemd-machine-id-setup`; for a duplicate GUID, compare `ibstat` with the labels of the cards",
            sources=(reads.file("/proc/sys/kernel/hostname", about="hostname"), reads.file("/etc/machine-id", about="machine-id")),
        ),
    }
)

STAGE = "preflight"
#: The keys of rdma_roce that both ends of a connection, and the switches between them, must agree on.
ROCE_ALIKE = ("priority", "dscp", "cnp_priority", "cnp_dscp", "pfc", "ecn", "dcqcn")
#: The keys of a rail that must be equal on like hosts.
ALIKE = ("link_layer", "mtu_bytes", "plane")
#: Link layer → the driver without which a NIC has neither interface nor RDMA device, so that a missing NIC proves nothing yet.
DRIVERS = {"roce": "mlx5_core", "infiniband": "mlx5_ib"}


@dataclass(frozen=True)
class Spot:
    """One rail of one host."""

    host: str
    index: int
    rail: Rail

    @property
    def subject(self) -> str:
        return f"rail {self.index} ({self.rail['name']}, {nic_label(self.rail['nic'])})"

    @property
    def vlan(self) -> int | None:
        """The number of its VLAN: hosts of one subnet need the same."""
        vlan = self.rail.get("vlan")
        return None if vlan is None else vlan["id"]

    @property
    def network(self) -> str | None:
        address = self.rail["address"]
        return None if address is None else str(ipaddress.ip_interface(address).network)

    @property
    def families(self) -> list[int]:
        """The versions of IP of its addresses, that of RDMA's first: [6, 4]."""
        return list(dict.fromkeys(ipaddress.ip_interface(text).version for text in rail_addresses(self.rail)))


def check_fleet(hosts: Mapping[str, Known]) -> Found:
    """The findings of every host: intent.hosts, intent.alike, intent.address, intent.rails, intent.nic, intent.mtu
    and host.identity.

    A check that a host passes is one finding `ok`.
    """
    planned = {host: known.intent for host, known in hosts.items() if known.intent is not None}
    mesh = {host: intent for host, intent in planned.items() if intent["fabric"]["topology"] == "mesh"}
    others = {host: intent for host, intent in planned.items() if host not in mesh}
    found: Found = {host: [] for host in hosts}
    for findings in (
        _hosts(planned),
        _run_wide(planned),
        _marked(planned),
        _addresses(planned),
        _switched(others),
        _mesh(mesh),
        _identities(hosts),
        _guids(hosts),
    ):
        for finding in findings:
            found.setdefault(finding.host, []).append(finding)
    for host, known in hosts.items():
        if known.intent is None:
            found[host].append(_no_intent(host))
        else:
            found[host] += _hardware(host, known.intent["rails"], known.facts)
            found[host] += _passed(host, found[host])
    return found


def _no_intent(host: str) -> Finding:
    return Finding(
        STAGE, "intent.rails", host, "rails", UNKNOWN, "no valid intent", "an intent to compare with the other hosts",
        f"Correct the variables of {host}. The first task of the stage reports what is wrong with them.",
    )  # fmt: skip


def _passed(host: str, found: Iterable[Finding]) -> Iterator[Finding]:
    """A finding `ok` for each comparison without a fault."""
    there = {finding.check for finding in found}
    for check, subject, observed in (
        ("intent.alike", "shared variables", "the same for all hosts that share them"),
        ("intent.address", "addresses", "each in its rail's subnet, and on one host only"),
        ("intent.rails", "rails", "agree with those of the other hosts"),
    ):
        if check not in there:
            yield Finding(STAGE, check, host, subject, OK, observed, observed)


def _run_wide(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings on sections that apply to all hosts at once and are read from any of them, so they must not differ."""
    for section in ("gate", "pairs"):
        words = differing(section, planned)
        for host in planned if words else ():
            yield Finding(
                STAGE, "intent.alike", host, f"rdma_{section}", ERROR, words,
                "the same for all hosts", f"Set the same rdma_{section} for all hosts of the run.",
            )  # fmt: skip


def differing(section: str, planned: Mapping[str, Any]) -> str:
    """The keys of a section of the intent that differ, and the hosts; "" if all hosts are equal. planned: intent by host."""
    groups: dict[str, list[str]] = {}
    for host, intent in planned.items():
        groups.setdefault(json.dumps(intent[section], sort_keys=True), []).append(host)
    if len(groups) < 2:
        return ""
    texts = [json.loads(text) for text in groups]
    keys = sorted({key for each in texts for key in each if any(each.get(key) != other.get(key) for other in texts)})
    sets = "; ".join(some(group) for group in itertools.islice(groups.values(), 3))
    return f"{', '.join(keys)} differ between {sets}"[:250]


def _marked(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings on rdma_roce of hosts whose RoCE rails share a plane: they need the same profile. Each different key is one finding."""
    found: dict[tuple[str, str], tuple[Odd, list[str]]] = {}
    ties: dict[str, tuple[Tie, list[str]]] = {}
    roce = [spot for spot in _spots(planned) if spot.rail["link_layer"] == "roce"]
    for plane, spots in group_by(roce, lambda spot: spot.rail["plane"]).items():
        hosts = list(dict.fromkeys(spot.host for spot in spots))
        marking = [host for host in hosts if planned[host]["roce"] is not None]
        given = [Claim(host, "rdma_roce", "set" if host in marking else "not set") for host in hosts]
        keys = [[Claim(host, f"rdma_roce.{key}", _shown(planned[host]["roce"][key])) for host in marking] for key in ROCE_ALIKE]
        for claims in (given, *keys):
            odds, tie = odd_ones(claims)
            for odd in odds:
                found.setdefault((odd.claim.host, odd.claim.subject), (odd, []))[1].append(plane)
            if tie is not None:
                ties.setdefault(tie.subject, (tie, []))[1].append(plane)
    for (host, subject), (odd, planes) in found.items():
        where = _where(planes)
        remedy = f"Set {subject} of {host} as on the other hosts of {where}: they share switches, which have one profile."
        observed = f"{odd.claim.value}; {odd.others}"[:250]
        yield Finding(STAGE, "intent.alike", host, subject, ERROR, observed, f"{odd.usual}, as on most hosts of {where}", remedy)
    for subject, (tie, planes) in ties.items():
        where = _where(planes)
        remedy = f"Set {subject} of all hosts of {where} to it: they share switches, which have one profile."
        expected = f"the same on all hosts of {where}"
        yield tied(STAGE, "intent.alike", subject, ERROR, tie.values[:500], expected, remedy)
        yield from (undecided(STAGE, "intent.alike", host, subject, expected) for host in tie.hosts)


def _where(planes: Sequence[str]) -> str:
    return f"{'planes' if len(planes) > 1 else 'plane'} {some(planes)}"


def _shown(value: Any) -> str:
    """A value in YAML notation; for DCQCN only the parameters that are set."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None) or "the firmware's"
    return json.dumps(value)


def _hosts(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Finding `intent.hosts`: a warning for a single host, which has no partner to measure."""
    for host in planned:
        alone = len(planned) == 1
        yield Finding(
            STAGE, "intent.hosts", host, "hosts", WARNING if alone else OK,
            "a single host, which has no partner to measure a pair" if alone else f"{len(planned)} hosts",
            "at least two hosts",
            "Add hosts to the inventory, or to rdma_hosts." if alone else "",
        )  # fmt: skip


def _spots(planned: Mapping[str, Any]) -> Iterator[Spot]:
    return (Spot(host, index, rail) for host, intent in planned.items() for index, rail in enumerate(intent["rails"]))


def _odd(check: str, what: str, claims: Sequence[Claim]) -> Iterator[Finding]:
    """Findings on the claims that differ from the majority; without a majority on the fleet."""
    odds, tie = odd_ones(claims)
    for odd in odds:
        host, subject, value = odd.claim.host, odd.claim.subject, odd.claim.value
        remedy = f"Correct {what} of {subject} in rdma_rails of {host}."
        yield Finding(STAGE, check, host, subject, ERROR, f"{what} {value}; {odd.others}", f"{what} {odd.usual}", remedy)
    if tie is not None:
        expected = f"the same {what} on all hosts"
        remedy = f"Correct {what} of {tie.subject} in rdma_rails of the other hosts."
        yield tied(STAGE, check, tie.subject, WARNING, f"{what}: {tie.values}", expected, remedy)
        yield from (undecided(STAGE, check, claim.host, claim.subject, expected) for claim in tie.claims)


def _switched(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings on rails in switched fabrics: like hosts have the same rails, and each rail is equal on all its hosts."""
    alike = group_by(planned, lambda host: any(rail["role"] == "compute" for rail in planned[host]["rails"]))
    for hosts in alike.values():
        if len(hosts) == 1:
            yield Finding(
                STAGE, "intent.rails", hosts[0], "rails", NOT_APPLICABLE, "no like host to compare with", "rails as on like hosts"
            )
        yield from _odd("intent.rails", "names", [Claim(host, "rails", _names(planned[host])) for host in hosts])
    for spots in group_by(_spots(planned), lambda spot: spot.rail["name"]).values():
        for key in ALIKE:
            yield from _odd("intent.rails", key, [Claim(spot.host, spot.subject, spot.rail[key]) for spot in spots])
        yield from _further_families(spots)
        if mixed := list(_mixed_families(spots)):
            yield from mixed
            continue
        if any(spot.rail["gateway"] for spot in spots):
            yield from _unrouted(spots, planned)
        else:
            subnets = [Claim(spot.host, spot.subject, spot.network) for spot in spots if spot.network is not None]
            yield from _odd("intent.address", "subnet", subnets)
            yield from _odd("intent.rails", "vlan", [Claim(spot.host, spot.subject, spot.vlan) for spot in spots])


def _further_families(spots: Sequence[Spot]) -> Iterator[Finding]:
    """Findings on further addresses of another family that only some hosts of a rail have: programs would not reach the others by it."""
    addressed = [spot for spot in spots if spot.families]
    if any(len(spot.families) > 1 for spot in addressed) and len({spot.families[0] for spot in addressed}) == 1:
        yield from _odd("intent.address", "families", [Claim(spot.host, spot.subject, _family_words(spot)) for spot in addressed])


def _mixed_families(spots: Sequence[Spot]) -> Iterator[Finding]:
    """Findings on a rail whose hosts use different versions of IP for RDMA: no pair of such hosts can connect."""
    by_family = group_by([spot for spot in spots if spot.families], lambda spot: spot.families[0])
    if len(by_family) < 2:
        return
    most = max(len(group) for group in by_family.values())
    usual = [group for group in by_family.values() if len(group) == most]
    for family, group in by_family.items():
        if len(usual) == 1 and group is usual[0]:
            continue
        others = [each for each in (*usual, *by_family.values()) if each is not group]
        other = others[0][0]
        for spot in group:
            yield Finding(
                STAGE, "intent.address", spot.host, spot.subject, ERROR,
                f"{spot.rail['address']} of {spot.host} is IPv{family}, {other.rail['address']} of {other.host} is IPv{other.families[0]}",
                "one family on all hosts of a rail",
                f"In rdma_rails of {spot.host} or {other.host}, give {spot.rail['name']} an address of the other family. "
                "The present one may stay in `addresses`.",
            )  # fmt: skip


def _family_words(spot: Spot) -> str:
    return " and ".join(f"IPv{version}" for version in spot.families)


def _is_covered(network: str, routes: Sequence[str]) -> bool:
    own = ipaddress.ip_network(network)
    behind = [ipaddress.ip_network(each) for each in routes]
    return any(each.overlaps(own) and each.prefixlen <= own.prefixlen for each in behind)


def _routes(spot: Spot, intent: Intent) -> tuple[str, ...]:
    """Return the routes of a rail, and of the host's other rails in its plane: the main table can have a route once only.

    Packets from the address of a rail with a gateway use the table of that rail, and need no route in the main table.
    """
    if spot.rail["gateway"] is None:
        return tuple(spot.rail["routes"])
    return tuple(route for rail in intent["rails"] if rail["plane"] == spot.rail["plane"] for route in rail["routes"])


def _unrouted(spots: Sequence[Spot], planned: Mapping[str, Intent]) -> Iterator[Finding]:
    """Findings on hosts of a routed rail whose main table would not lead to the subnet of another host."""
    networks: dict[str, list[str]] = defaultdict(list)
    for spot in spots:
        if spot.network is not None:
            networks[spot.network].append(spot.host)
    behind: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for spot in (spot for spot in spots if spot.network is not None):
        routes = _routes(spot, planned[spot.host])
        if routes not in behind:
            behind[routes] = {network: hosts for network, hosts in networks.items() if not _is_covered(network, routes)}
        missing = {network: hosts for network, hosts in behind[routes].items() if not _is_covered(network, [str(spot.network)])}
        if missing:
            seen = "; ".join(f"{network} ({some(hosts)})" for network, hosts in missing.items())
            remedy = f"In rdma_rails of {spot.host}, give {spot.rail['name']} a gateway and routes that contain {', '.join(missing)}."
            yield Finding(
                STAGE,
                "intent.address",
                spot.host,
                spot.subject,
                ERROR,
                f"no route to {seen}",
                "a route to every subnet of the rail",
                remedy,
            )


def _names(intent: Intent) -> str:
    return ", ".join(rail["name"] for rail in intent["rails"])


def _addresses(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings on addresses that two hosts have; the intent already refuses duplicates within one host."""
    held = [(spot, ip_of(text)) for spot in _spots(planned) for text in rail_addresses(spot.rail)]
    for address, group in group_by(held, lambda each: each[1]).items():
        if len(group) > 1:
            who = [f"{spot.rail['name']} of {spot.host}" for spot, _address in group]
            for (spot, _address), own in zip(group, who, strict=True):
                yield Finding(
                    STAGE, "intent.address", spot.host, spot.subject, ERROR,
                    f"{address} is also that of {some(who, own)}", "an address of its own",
                    f"In rdma_rails, give {own} or the other rail another address.",
                )  # fmt: skip


def _mesh(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings on the rails of a mesh: each is a cable with two equal ends and its own subnet."""
    cables = group_by(_spots(planned), lambda spot: spot.rail["name"])
    for name, ends in cables.items():
        where = some([end.host for end in ends])
        for end in ends:
            if len(planned) == 1:
                yield Finding(STAGE, "intent.rails", end.host, end.subject, NOT_APPLICABLE, "no other host", "two ends of each cable")
            elif len(ends) != 2:
                remedy = f"In rdma_rails of {end.host}, name both ends of a cable alike, and no other rail: in a mesh a rail is a cable."
                seen = f"{name} is on {len(ends)} {'host' if len(ends) == 1 else 'hosts'} ({where})"
                yield Finding(STAGE, "intent.rails", end.host, end.subject, ERROR, seen, "two ends of each cable", remedy)
        if len(ends) == 2:
            yield from _ends(*ends)
    if not any(intent["fabric"]["shared_subnet"] for intent in planned.values()):
        yield from _cable_subnets(cables)


def _ends(one: Spot, other: Spot) -> Iterator[Finding]:
    """Findings on the differences between the two ends of a cable."""
    mine, its = dict(one.rail), dict(other.rail)
    pairs = [("intent.rails", key, mine[key], its[key]) for key in ALIKE]
    pairs.append(("intent.rails", "vlan", one.vlan, other.vlan))
    for check, what, *values in (*pairs, ("intent.address", "subnet", one.network, other.network)):
        if values[0] != values[1]:
            for end in (one, other):
                yield Finding(
                    STAGE, check, end.host, end.subject, ERROR,
                    f"{what} {values[0]} on {one.host}, {values[1]} on {other.host}", f"the same {what} at both ends of a cable",
                    f"Correct {what} of {one.rail['name']} in rdma_rails of {one.host} or {other.host}.",
                )  # fmt: skip


def _cable_subnets(cables: Mapping[str, Sequence[Spot]]) -> Iterator[Finding]:
    """Findings on subnets that several cables share: a host could not choose the cable for an address."""
    owners: dict[str, dict[str, None]] = defaultdict(dict)
    for name, ends in cables.items():
        for end in ends:
            if end.network is not None:
                owners[end.network][name] = None
    shared = {network: list(names) for network, names in owners.items() if len(names) > 1}
    for name, ends in cables.items():
        for end in (end for end in ends if end.network in shared):
            yield Finding(
                STAGE, "intent.address", end.host, end.subject, ERROR,
                f"{end.network} is also the subnet of {some(shared[str(end.network)], name)}", "a subnet of its own for each cable",
                f"Give {name} a subnet of its own at both ends, in rdma_rails.",
            )  # fmt: skip


def _identities(hosts: Mapping[str, Known]) -> Iterator[Finding]:
    """Findings on hostnames and machine-ids that two hosts share: a cloned image, or one machine under two names.

    A hostname belongs to the host of that name in the inventory, which is not at fault: otherwise one host could exclude another.
    """
    boots = {host: known.facts.boot if known.facts else None for host, known in hosts.items()}
    hostnames = {host: (boot.hostname or None) if boot else None for host, boot in boots.items()}
    machine_ids = {host: (boot.machine_id or None) if boot else None for host, boot in boots.items()}
    for subject, identities in (("hostname", hostnames), ("machine-id", machine_ids)):
        for value, group in group_by(identities.items(), lambda item: item[1]).items():
            names = [host for host, _value in group]
            owners = [host for host in names if value and subject == "hostname" and len(names) > 1 and _label(host) == _label(value)]
            for host in names:
                yield _hostname(host, value, owners[0], names) if len(owners) == 1 else _identity(host, subject, value, names)


def _label(name: str) -> str:
    return name.partition(".")[0].lower()


def _guids(hosts: Mapping[str, Known]) -> Iterator[Finding]:
    """Findings on node GUIDs of InfiniBand rails that two hosts report: graph and partitions depend on GUIDs."""
    owners: dict[str, dict[str, str]] = defaultdict(dict)
    for host, known in hosts.items():
        if known.intent and known.facts:
            for rail in resolve(known.intent["rails"], known.facts):
                guid = known.facts.devices[rail.device].node_guid if rail.device else None
                if guid and rail.rail["link_layer"] == "infiniband":
                    owners[guid].setdefault(host, rail.subject)
    for guid, claimed in owners.items():
        for host, subject in claimed.items() if len(claimed) > 1 else ():
            yield Finding(
                STAGE, "host.identity", host, subject, ERROR, f"node GUID {guid} is also that of {some(list(claimed), host)}",
                "a GUID of its own",
                f"Compare `ibstat` on {host} with the label of the card. Check whether the inventory has one machine twice.",
            )  # fmt: skip


def _hostname(host: str, value: str | None, owner: str, group: Sequence[str]) -> Finding:
    """Finding `host.identity` of a host whose hostname is the inventory name of another host, or of that other host."""
    expected = "a hostname of its own"
    if host == owner:
        remedy = f"Correct the hostname of {some([each for each in group if each != host])}; nothing is wrong with {host}."
        return Finding(STAGE, "host.identity", host, "hostname", WARNING, f"{value} is also that of {some(group, host)}", expected, remedy)
    return Finding(
        STAGE, "host.identity", host, "hostname", ERROR, f"{value} is the name of another host of the inventory, {owner}", expected,
        f"Check whether the inventory has one machine twice. If {host} is a clone, run `hostnamectl set-hostname NAME` there and reboot.",
    )  # fmt: skip


def _identity(host: str, subject: str, value: str | None, group: Sequence[str]) -> Finding:
    expected = f"a {subject} of its own"
    if value is None:
        return Finding(STAGE, "host.identity", host, subject, UNKNOWN, "not read", expected, f"Check whether {host} can be reached.")
    if len(group) == 1:
        return Finding(STAGE, "host.identity", host, subject, OK, value, expected)
    how = "hostnamectl set-hostname NAME" if subject == "hostname" else "rm /etc/machine-id && systemd-machine-id-setup"
    return Finding(
        STAGE, "host.identity", host, subject, ERROR, f"{value} is also that of {some(group, host)}", expected,
        f"1. Check whether the inventory has one machine twice. 2. If {host} was cloned, run `{how}` there and reboot it.",
    )  # fmt: skip


def _hardware(host: str, rails: Sequence[Rail], facts: Facts | None) -> list[Finding]:
    """Findings `intent.nic` and `intent.mtu` of one host."""
    if facts is None:
        remedy = f"Check whether {host} can be reached."
        return [
            Finding(STAGE, check, host, "NICs", UNKNOWN, "no facts", "NICs as planned", remedy) for check in ("intent.nic", "intent.mtu")
        ]
    resolved = resolve(rails, facts)
    nics = [_no_nic(host, rail, facts) for rail in resolved if rail.netdev is None and rail.device is None]
    nics += _shared_nics(host, resolved)
    mtus = [finding for rail in resolved if (finding := _mtu(host, rail, facts)) is not None]
    every = f"{len(rails)} {'NIC' if len(rails) == 1 else 'NICs'}"
    return [
        *(nics or [Finding(STAGE, "intent.nic", host, every, OK, "present", "present")]),
        *(mtus or [Finding(STAGE, "intent.mtu", host, every, OK, "within the NICs' maximum", "within the NICs' maximum")]),
    ]


def _no_nic(host: str, rail: ResolvedRail, facts: Facts) -> Finding:
    """Finding `intent.nic` of a missing NIC: only a warning while the driver that would show it is not loaded."""
    observed = no_nic_words(rail, facts)
    if guid_ports(rail.rail["nic"].get("guid", ""), facts.devices):
        remedy = f"In rdma_rails of {host}, set `nic` of {rail.name} to the GUID of one of these ports."
        return Finding(STAGE, "intent.nic", host, rail.subject, ERROR, observed, "present", remedy)
    driver = DRIVERS[rail.rail["link_layer"]]
    if not rail.rail["soft"] and driver not in (facts.stack.modules if facts.stack else ()):
        remedy = f"Run the driver stage, which loads it. If it is still missing, correct `nic` of {rail.name} in rdma_rails of {host}."
        return Finding(STAGE, "intent.nic", host, rail.subject, WARNING, f"{observed}; {driver} is not loaded", "present", remedy)
    remedy = f"1. Correct `nic` of {rail.name} in rdma_rails of {host}. 2. If it is right, check the card: run `lspci` on {host}."
    return Finding(STAGE, "intent.nic", host, rail.subject, ERROR, observed, "present", remedy)


def _shared_nics(host: str, rails: Sequence[ResolvedRail]) -> list[Finding]:
    """Findings `intent.nic` of rails whose NIC is also another rail's, which the intent names by its address and by its MAC."""
    found: list[Finding] = []
    taken: dict[str, ResolvedRail] = {}
    for rail in rails:
        for netdev in rail.netdevs:
            first = taken.setdefault(netdev, rail)
            if first is not rail:
                observed = f"{rail.nic} is {netdev}, like {first.nic} of {first.name}"
                remedy = f"In rdma_rails of {host}, set `nic` of {rail.name} to another NIC, or remove it: a NIC has one rail, on one VLAN."
                found.append(Finding(STAGE, "intent.nic", host, rail.subject, ERROR, observed, "a NIC of its own", remedy))
    return found


def _mtu(host: str, rail: ResolvedRail, facts: Facts) -> Finding | None:
    """Finding `intent.mtu` of an MTU above the NIC's maximum, or if that is not known; None if it is within."""
    if rail.rail["mtu_bytes"] is None:
        words = "the intent has no mtu_bytes: the MTU is not changed"
        return Finding(STAGE, "intent.mtu", host, rail.subject, NOT_APPLICABLE, words, "any MTU")
    if rail.netdev is None:
        if rail.device is not None:
            return None
        return Finding(STAGE, "intent.mtu", host, rail.subject, NOT_APPLICABLE, "the NIC is missing", _carries(rail))
    largest = facts.netdevs[rail.netdev].max_mtu_bytes
    if largest is None:
        remedy = f"On {host}, run `ip -d link show {rail.netdev}` and look for maxmtu."
        return Finding(STAGE, "intent.mtu", host, rail.subject, UNKNOWN, "its maximum MTU was not read", _carries(rail), remedy)
    if rail.rail["mtu_bytes"] <= largest:
        return None
    remedy = f"In rdma_rails of all hosts, set `mtu_bytes` of {rail.name} to at most {largest}."
    return Finding(STAGE, "intent.mtu", host, rail.subject, ERROR, f"at most {largest} bytes", _carries(rail), remedy)


def _carries(rail: ResolvedRail) -> str:
    return f"an MTU of {rail.rail['mtu_bytes']} bytes"
