# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What only shows when hosts are laid side by side: duplicates, the odd one out, and a plan that the hardware cannot have.

Every check passes over the hosts once, so that a thousand of them are compared in about a second.

Like hosts are those that have compute rails, and those that have only storage rails. Where more than half of them agree, the
others are wrong; without such a majority nobody can tell who is, and all get a warning. In a mesh a rail is a cable: it has two
ends, which must agree, and there is no majority to ask.
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
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, nic_label, no_nic_words, rail_ip, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import Claim, Found, Odd, group_by, odd_ones, some

declare(
    {
        "intent.rails": Check(
            "preflight",
            "the rails of a host, and of hosts that should be alike",
            "the inventory",
            "correct the odd one out",
            sources=(reads.INTENT,),
        ),
        "intent.address": Check(
            "preflight",
            "each rail's address: form, subnet, given twice",
            "the inventory",
            "give every rail of every host its own address",
            sources=(reads.INTENT,),
        ),
        "intent.mtu": Check(
            "preflight",
            "each rail's MTU against what its NIC takes",
            "`ip -d address show`",
            "lower `mtu_bytes`, or see which NIC this is",
            sources=(reads.ADDRESSES,),
        ),
        "intent.nic": Check(
            "preflight",
            "each planned NIC",
            "`/sys/class/net`",
            "correct `nic`; those that are there are named",
            sources=(reads.folder("/sys/class/net", absent_means="the interfaces are not there: the driver may be missing yet"),),
        ),
        "intent.hosts": Check(
            "preflight",
            "the hosts of the play",
            "the inventory",
            "add hosts: one alone has no pair",
            sources=(reads.INTENT,),
        ),
        "intent.alike": Check(
            "preflight",
            "`rdma_gate` and `rdma_pairs`, which hold for all hosts at once; `rdma_roce` of hosts whose RoCE rails share a plane",
            "the inventory",
            "set them for all hosts alike",
            sources=(reads.INTENT,),
        ),
        "host.identity": Check(
            "preflight",
            "hostname, machine-id, and node GUIDs of InfiniBand rails",
            "`/proc/sys/kernel/hostname`, `/etc/machine-id`, `/sys/class/infiniband/*/node_guid`",
            "a cloned machine: `systemd-machine-id-setup`; a GUID that two hosts claim: compare `ibstat` with the labels of the cards",
            sources=(reads.file("/proc/sys/kernel/hostname", about="hostname"), reads.file("/etc/machine-id", about="machine-id")),
        ),
    }
)

STAGE = "preflight"
#: What like hosts have alike on a rail.
#: What of rdma_roce both ends of a connection, and the switches between them, must agree on.
ROCE_ALIKE = ("priority", "dscp", "cnp_priority", "cnp_dscp", "pfc", "ecn", "dcqcn")
ALIKE = ("link_layer", "mtu_bytes", "plane")
#: Without it there is neither interface nor RDMA device, so that a missing NIC proves nothing yet.
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
    def address(self) -> str | None:
        """Without its prefix length."""
        return rail_ip(self.rail)

    @property
    def network(self) -> str | None:
        address = self.rail["address"]
        return None if address is None else str(ipaddress.IPv4Interface(address).network)


def check_fleet(hosts: Mapping[str, Known]) -> Found:
    """The findings of every host: intent.hosts, intent.alike, intent.address, intent.rails, intent.nic, intent.mtu
    and host.identity.

    A check that a host passes is one `ok`.
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
            found[finding.host].append(finding)
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
        f"Mend the variables of {host}; the first task of the stage says what is wrong with them.",
    )  # fmt: skip


def _passed(host: str, found: Iterable[Finding]) -> Iterator[Finding]:
    """What the comparisons did not find fault with."""
    there = {finding.check for finding in found}
    for check, subject, observed in (
        ("intent.alike", "shared variables", "the same for all hosts that share them"),
        ("intent.address", "addresses", "each in its rail's subnet, and on one host only"),
        ("intent.rails", "rails", "agree with those of the other hosts"),
    ):
        if check not in there:
            yield Finding(STAGE, check, host, subject, OK, observed, observed)


def _run_wide(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """What holds for all hosts at once and is taken from any of them: it must not differ."""
    for section in ("gate", "pairs"):
        words = differing(section, planned)
        for host in planned if words else ():
            yield Finding(
                STAGE, "intent.alike", host, f"rdma_{section}", ERROR, words,
                "the same for all hosts", f"Set rdma_{section} for all hosts of the run alike.",
            )  # fmt: skip


def differing(section: str, planned: Mapping[str, Any]) -> str:
    """Which keys of a section of the intent differ, and between which hosts; "" if all hosts have the same. planned: intent by host."""
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
    """rdma_roce of hosts whose RoCE rails meet: what one marks and pauses the others must know. A key that differs is one finding."""
    found: dict[tuple[str, str], tuple[Odd, list[str]]] = {}
    roce = [spot for spot in _spots(planned) if spot.rail["link_layer"] == "roce"]
    for plane, spots in group_by(roce, lambda spot: spot.rail["plane"]).items():
        hosts = list(dict.fromkeys(spot.host for spot in spots))
        marking = [host for host in hosts if planned[host]["roce"] is not None]
        given = [Claim(host, "rdma_roce", "given" if host in marking else "not given") for host in hosts]
        keys = [[Claim(host, f"rdma_roce.{key}", _said(planned[host]["roce"][key])) for host in marking] for key in ROCE_ALIKE]
        for odd in (each for claims in (given, *keys) for each in odd_ones(claims)):
            found.setdefault((odd.claim.host, odd.claim.subject), (odd, []))[1].append(plane)
    for (host, subject), (odd, planes) in found.items():
        where = f"{'planes' if len(planes) > 1 else 'plane'} {some(planes)}"
        expected = f"{odd.usual}, as on most hosts of {where}" if odd.has_majority else f"the same on all hosts of {where}"
        observed = f"{odd.claim.value}; {odd.others}" if odd.has_majority else f"{odd.claim.value}; there are {odd.others}"
        remedy = f"Give {subject} to {host} as to the other hosts of {where}: they share switches, which know one profile."
        yield Finding(STAGE, "intent.alike", host, subject, ERROR, observed[:250], expected, remedy)


def _said(value: Any) -> str:
    """A value as YAML has it; of DCQCN what is set, the rest is the firmware's."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None) or "the firmware's"
    return json.dumps(value)


def _hosts(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """One host alone has nobody to be measured with."""
    for host in planned:
        alone = len(planned) == 1
        yield Finding(
            STAGE, "intent.hosts", host, "hosts", WARNING if alone else OK,
            "one host alone: there is nothing to measure a pair with" if alone else f"{len(planned)} hosts",
            "two hosts at least",
            "Add hosts to the inventory, or to rdma_hosts." if alone else "",
        )  # fmt: skip


def _spots(planned: Mapping[str, Any]) -> Iterator[Spot]:
    return (Spot(host, index, rail) for host, intent in planned.items() for index, rail in enumerate(intent["rails"]))


def _odd(check: str, what: str, claims: Sequence[Claim]) -> Iterator[Finding]:
    """The claims that are not as most of them are; all of them where there is no majority."""
    for odd in odd_ones(claims):
        host, subject, value = odd.claim.host, odd.claim.subject, odd.claim.value
        if odd.has_majority:
            remedy = f"Correct {what} of {subject} in rdma_rails of {host}."
            yield Finding(STAGE, check, host, subject, ERROR, f"{what} {value}; {odd.others}", f"{what} {odd.usual}", remedy)
        else:
            remedy = f"No majority tells which is right: correct {what} in rdma_rails of the one or the other."
            yield Finding(STAGE, check, host, subject, WARNING, f"{what}: {odd.others}", f"the same {what} on all hosts", remedy)


def _switched(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Rails that meet in switches: the same ones on like hosts, and each the same on all of its hosts."""
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
        subnets = [Claim(spot.host, spot.subject, spot.network) for spot in spots if spot.network is not None]
        yield from _odd("intent.address", "subnet", subnets)


def _names(intent: Intent) -> str:
    return ", ".join(rail["name"] for rail in intent["rails"])


def _addresses(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Addresses that two hosts have. (Within one host the intent has refused them.)"""
    spots = [spot for spot in _spots(planned) if spot.address is not None]
    for address, group in group_by(spots, lambda spot: spot.address).items():
        if len(group) > 1:
            who = [f"{spot.rail['name']} of {spot.host}" for spot in group]
            for spot, own in zip(group, who, strict=True):
                yield Finding(
                    STAGE, "intent.address", spot.host, spot.subject, ERROR,
                    f"{address} is also that of {some(who, own)}", "an address of its own",
                    f"Give {own} another address in rdma_rails, or the other one.",
                )  # fmt: skip


def _mesh(planned: Mapping[str, Any]) -> Iterator[Finding]:
    """Rails that are cables: two ends each, alike, in a subnet of their own."""
    cables = group_by(_spots(planned), lambda spot: spot.rail["name"])
    for name, ends in cables.items():
        where = some([end.host for end in ends])
        for end in ends:
            if len(planned) == 1:
                yield Finding(STAGE, "intent.rails", end.host, end.subject, NOT_APPLICABLE, "no other host", "two ends of each cable")
            elif len(ends) != 2:
                remedy = f"In a mesh a rail is a cable: name it alike at its two ends, and nowhere else, in rdma_rails of {end.host}."
                seen = f"{name} is on {len(ends)} {'host' if len(ends) == 1 else 'hosts'} ({where})"
                yield Finding(STAGE, "intent.rails", end.host, end.subject, ERROR, seen, "two ends of each cable", remedy)
        if len(ends) == 2:
            yield from _ends(*ends)
    if not any(intent["fabric"]["shared_subnet"] for intent in planned.values()):
        yield from _cable_subnets(cables)


def _ends(one: Spot, other: Spot) -> Iterator[Finding]:
    """Where the two ends of a cable do not agree."""
    mine, its = dict(one.rail), dict(other.rail)
    pairs = [("intent.rails", key, mine[key], its[key]) for key in ALIKE]
    for check, what, *values in (*pairs, ("intent.address", "subnet", one.network, other.network)):
        if values[0] != values[1]:
            for end in (one, other):
                yield Finding(
                    STAGE, check, end.host, end.subject, ERROR,
                    f"{what} {values[0]} on {one.host}, {values[1]} on {other.host}", f"the same {what} at both ends of a cable",
                    f"Correct {what} of {one.rail['name']} in rdma_rails of {one.host} or {other.host}.",
                )  # fmt: skip


def _cable_subnets(cables: Mapping[str, Sequence[Spot]]) -> Iterator[Finding]:
    """Subnets of several cables: a host could not tell by which one it reaches an address."""
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
    """Hostname and machine-id: two hosts with one are a cloned image, or one machine under two names.

    The inventory says whose a hostname is. That host has no fault: otherwise one host could exclude another by its name.
    """
    boots = {host: known.facts.boot if known.facts else None for host, known in hosts.items()}
    hostnames = {host: (boot.hostname or None) if boot else None for host, boot in boots.items()}
    machine_ids = {host: (boot.machine_id or None) if boot else None for host, boot in boots.items()}
    for subject, said in (("hostname", hostnames), ("machine-id", machine_ids)):
        for value, group in group_by(said.items(), lambda item: item[1]).items():
            names = [host for host, _value in group]
            owners = [host for host in names if value and subject == "hostname" and len(names) > 1 and _label(host) == _label(value)]
            for host in names:
                yield _hostname(host, value, owners[0], names) if len(owners) == 1 else _identity(host, subject, value, names)


def _label(name: str) -> str:
    return name.partition(".")[0].lower()


def _guids(hosts: Mapping[str, Known]) -> Iterator[Finding]:
    """Node GUIDs of InfiniBand rails that two hosts claim: the fabric is read, and partitions are given, by GUID."""
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
    """host.identity of a host that has the name of a host of the inventory as its hostname, together with the owner of the name."""
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
        return Finding(STAGE, "host.identity", host, subject, UNKNOWN, "not read", expected, f"Look whether {host} can be reached.")
    if len(group) == 1:
        return Finding(STAGE, "host.identity", host, subject, OK, value, expected)
    how = "hostnamectl set-hostname NAME" if subject == "hostname" else "rm /etc/machine-id && systemd-machine-id-setup"
    return Finding(
        STAGE, "host.identity", host, subject, ERROR, f"{value} is also that of {some(group, host)}", expected,
        f"See whether the inventory has one machine twice; if it was cloned, run `{how}` on {host} and reboot it.",
    )  # fmt: skip


def _hardware(host: str, rails: Sequence[Rail], facts: Facts | None) -> list[Finding]:
    """intent.nic and intent.mtu of one host."""
    if facts is None:
        remedy = f"Look whether {host} can be reached."
        return [
            Finding(STAGE, check, host, "NICs", UNKNOWN, "no facts", "NICs as planned", remedy) for check in ("intent.nic", "intent.mtu")
        ]
    resolved = resolve(rails, facts)
    nics = [_no_nic(host, rail, facts) for rail in resolved if rail.netdev is None and rail.device is None]
    mtus = [finding for rail in resolved if (finding := _mtu(host, rail, facts)) is not None]
    every = f"{len(rails)} {'NIC' if len(rails) == 1 else 'NICs'}"
    return [
        *(nics or [Finding(STAGE, "intent.nic", host, every, OK, "present", "present")]),
        *(mtus or [Finding(STAGE, "intent.mtu", host, every, OK, "within what they carry", "within what they carry")]),
    ]


def _no_nic(host: str, rail: ResolvedRail, facts: Facts) -> Finding:
    """A NIC that is not there; only a warning as long as the driver that would show it is not loaded."""
    observed = no_nic_words(rail, facts)
    driver = DRIVERS[rail.rail["link_layer"]]
    if not rail.rail["soft"] and driver not in (facts.stack.modules if facts.stack else ()):
        remedy = f"The driver stage loads it; if its gate then says the same, correct `nic` of {rail.name} in rdma_rails of {host}."
        return Finding(STAGE, "intent.nic", host, rail.subject, WARNING, f"{observed}; {driver} is not loaded", "present", remedy)
    remedy = f"Correct `nic` of {rail.name} in rdma_rails of {host}, or look for the card with `lspci` there."
    return Finding(STAGE, "intent.nic", host, rail.subject, ERROR, observed, "present", remedy)


def _mtu(host: str, rail: ResolvedRail, facts: Facts) -> Finding | None:
    """A planned MTU that the NIC cannot have, or of which that is not known; None where it can."""
    if rail.rail["mtu_bytes"] is None:
        words = "the intent has no mtu_bytes: the interface keeps its MTU"
        return Finding(STAGE, "intent.mtu", host, rail.subject, NOT_APPLICABLE, words, "any MTU")
    if rail.netdev is None:
        if rail.device is not None:
            return None
        return Finding(STAGE, "intent.mtu", host, rail.subject, NOT_APPLICABLE, "there is no NIC to ask", _carries(rail))
    largest = facts.netdevs[rail.netdev].max_mtu_bytes
    if largest is None:
        remedy = f"See whether `ip -d link show {rail.netdev}` says maxmtu on {host}."
        return Finding(STAGE, "intent.mtu", host, rail.subject, UNKNOWN, "its largest MTU was not read", _carries(rail), remedy)
    if rail.rail["mtu_bytes"] <= largest:
        return None
    remedy = f"Set mtu_bytes of {rail.name} to {largest} at most in rdma_rails, on all hosts."
    return Finding(STAGE, "intent.mtu", host, rail.subject, ERROR, f"{largest} bytes at most", _carries(rail), remedy)


def _carries(rail: ResolvedRail) -> str:
    return f"an MTU of {rail.rail['mtu_bytes']} bytes"
