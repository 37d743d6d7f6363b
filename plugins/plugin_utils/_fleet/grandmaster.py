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
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import Claim, Found, odd_ones

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


def check_grandmasters(hosts: Mapping[str, Known]) -> Found:
    """Finding `alike.grandmaster` of every host: the grandmaster that it follows, against the planned one and the other hosts'.

    Without a planned grandmaster, hosts that differ from more than half of the domain's are an error; without such a majority all get a
    warning. A host without known intent or facts has no finding here; another check reports it.
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
    odd = {each.claim.host: each for several in claims.values() for each in odd_ones(several)}
    found: Found = {host: [] for host in hosts}
    for host, plan in plans.items():
        if plan is None:
            found[host].append(Finding(STAGE, CHECK, host, SUBJECT, NOT_APPLICABLE, "rdma_host.time.ptp is not set", EXPECTED))
            continue
        seen, named = followed[host], plan["grandmaster"]
        if named is not None and named not in hosts:
            words = hint(named, hosts, "hosts")
            observed = f"the planned grandmaster {named} is not a host of this run: {words}"
            remedy = f"Correct rdma_host.time.ptp.grandmaster, or run the stage without `--limit`: {words}"
            found[host].append(Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, observed, EXPECTED, remedy))
        elif seen is None:
            remedy = f"Fix host.ptp of {host} first."
            found[host].append(Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, "its grandmaster was not read", EXPECTED, remedy))
        elif (planned := identities.get(named) if named is not None else None) is not None and planned != seen:
            expected = f"{planned}, of {named}"
            found[host].append(Finding(STAGE, CHECK, host, SUBJECT, ERROR, f"follows {seen}", expected, _remedy(seen)))
        elif planned is None and host in odd:
            status = ERROR if odd[host].has_majority else WARNING
            found[host].append(Finding(STAGE, CHECK, host, SUBJECT, status, f"follows {seen}; {odd[host].others}", EXPECTED, _remedy(seen)))
        else:
            found[host].append(Finding(STAGE, CHECK, host, SUBJECT, OK, f"{seen}, as on the other hosts", EXPECTED))
    return found


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
