# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that compares the grandmasters of PTP that the hosts of one domain follow."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import PtpIntent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import hint
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import Claim, Found, Tie, odd_ones, tied, undecided
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET

declare(
    {
        "alike.grandmaster": Check(
            "host",
            "the grandmaster of PTP, on all hosts of a domain: that of `rdma_host.time.ptp.grandmaster`, or that of most hosts",
            "`pmc -u -b 0 'GET PARENT_DATA_SET'`",
            "find the second grandmaster by its identity, which has its MAC address, and set it to follow",
            sources=(
                reads.command("pmc"),
                reads.file("/proc/*/comm"),
                reads.file("/proc/*/cmdline"),
                reads.file("/etc/rdma-cluster/ptp4l.conf"),
            ),
        ),
    }
)

STAGE, CHECK, SUBJECT = "host", "alike.grandmaster", "grandmaster"
EXPECTED = "the same grandmaster on all hosts of the domain"
OTHERS = (
    "Find the other devices by their identities, which have their MAC addresses, and set `slaveOnly 1` there, or another domain. "
    "3. Check that the VLANs of the switches separate the domains."
)


def check_grandmasters(hosts: Mapping[str, Known]) -> Found:
    """Finding `alike.grandmaster` of every host: the grandmaster that it follows, against the planned one and the other hosts'.

    Without a planned grandmaster, hosts that differ from more than half of the domain's are an error; without such a majority FLEET gets
    a warning. A host without known intent or facts has no finding here; another check reports it.
    """
    known = {host: each for host, each in hosts.items() if each.intent and each.facts}
    plans = {host: _plan(each) for host, each in known.items()}
    followed = {host: _followed(each) for host, each in known.items() if plans[host] is not None}
    identities = {host: _identity(each) for host, each in known.items()}
    claims: dict[int, list[Claim]] = {}
    for host, grandmaster in followed.items():
        plan = plans[host]
        if grandmaster is not None and plan is not None:
            claims.setdefault(plan["domain"], []).append(Claim(host, SUBJECT, grandmaster))
    compared = [odd_ones(several) for several in claims.values()]
    odd = {each.claim.host: each for odds, _tie in compared for each in odds}
    ties = {host: tie for _odds, tie in compared if tie is not None for host in tie.hosts}
    found: Found = {host: [] for host in hosts}
    undecided_ties: list[Tie] = []
    for host, plan in plans.items():
        if plan is None:
            found[host].append(Finding(STAGE, CHECK, host, SUBJECT, NOT_APPLICABLE, "rdma_host.time.ptp is not set", EXPECTED))
            continue
        planned = identities.get(plan["grandmaster"]) if plan["grandmaster"] is not None else None
        own = _against_plan(host, plan["grandmaster"], planned, followed[host], hosts)
        if own is None and planned is None and host in ties:
            own = undecided(STAGE, CHECK, host, SUBJECT, EXPECTED)
            undecided_ties.append(ties[host])
        elif own is None and planned is None and host in odd:
            observed = f"follows {followed[host]}; {odd[host].others}"
            own = Finding(STAGE, CHECK, host, SUBJECT, ERROR, observed, EXPECTED, _remedy(str(followed[host])))
        found[host].append(own or Finding(STAGE, CHECK, host, SUBJECT, OK, f"{followed[host]}, as on the other hosts", EXPECTED))
    if undecided_ties:
        found[FLEET] = [
            tied(STAGE, CHECK, SUBJECT, WARNING, f"hosts follow {values}", EXPECTED, OTHERS)
            for values in dict.fromkeys(tie.values for tie in undecided_ties)
        ]
    return found


def _against_plan(host: str, named: str | None, planned: str | None, seen: str | None, hosts: Mapping[str, Known]) -> Finding | None:
    """The finding of a host that does not follow the planned grandmaster, or whose grandmaster is not known; None if it needs the others.

    named: the planned grandmaster; planned: its identity, None if it was not read; seen: the identity that the host follows.
    """
    if named is not None and named not in hosts:
        words = hint(named, hosts, "hosts")
        observed = f"the planned grandmaster {named} is not a host of this run: {words}"
        remedy = f"Correct rdma_host.time.ptp.grandmaster, or run the stage without `--limit`: {words}"
        return Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, observed, EXPECTED, remedy)
    if seen is None:
        return Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, "its grandmaster was not read", EXPECTED, f"Fix host.ptp of {host} first.")
    if planned is not None and planned != seen:
        return Finding(STAGE, CHECK, host, SUBJECT, ERROR, f"follows {seen}", f"{planned}, of {named}", _remedy(seen))
    return None


def _plan(host: Known) -> PtpIntent | None:
    return host.intent["host"]["time"]["ptp"] if host.intent is not None else None


def _followed(host: Known) -> str | None:
    """The grandmaster of a host's ptp4l; None if it was not read, or if it follows none at the moment."""
    ptp = host.facts.time.ptp if host.facts is not None and host.facts.time is not None else None
    works = ptp is not None and bool({"SLAVE", "UNCALIBRATED", "MASTER"} & set(ptp.ports.values()))
    return ptp.grandmaster if ptp is not None and works else None


def _identity(host: Known) -> str | None:
    """The identity of a host's own clock."""
    ptp = host.facts.time.ptp if host.facts is not None and host.facts.time is not None else None
    return ptp.identity if ptp is not None else None


def _remedy(seen: str) -> str:
    mac = seen.replace(".", "")
    where = ":".join(mac[index : index + 2] for index in (0, 2, 4, 10, 12, 14))
    return (
        f"1. Find the device with MAC address {where}, which is {seen}. 2. If it must not be the grandmaster, set `slaveOnly 1` there, or "
        "another domain. 3. Check that the VLANs of the switches separate the domains."
    )
