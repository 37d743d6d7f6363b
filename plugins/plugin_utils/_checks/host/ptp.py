# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the host gate on PTP: the host follows the planned grandmaster, closely enough, and one program adjusts each clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, PtpIntent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import Time
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp import (
    PHC2SYS,
    PTP4L,
    SYSTEM_CLOCK,
    Ptp,
    conflicts,
    largest_offset_ns,
    working_states,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import REFID
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.requests import ptp_netdev

declare(
    {
        "host.ptp": Check(
            "host",
            "if `rdma_host.time.ptp` is set: ptp4l's domain, port, time stamps and offset, and whether chrony follows it. On every host: "
            "two programs that adjust one clock",
            "`pmc -u -b 0 'GET PORT_DATA_SET' …`, `ethtool -T`, `chronyc sources`, `/proc/PID/cmdline`",
            "run the host stage with `-e time_sync_ptp_allowed=true`; check the grandmaster and the switch; stop the second program",
            sources=(
                reads.command("pmc"),
                reads.command("chronyc"),
                reads.driver("timestamping"),
                reads.file("/proc/*/comm"),
                reads.file("/proc/*/cmdline"),
                reads.file("/etc/rdma-cluster/ptp4l.conf"),
                reads.entry("/run/chrony/chronyd.pid", absent_means="chrony does not run, which is an error"),
            ),
        ),
    }
)

STAGE, CHECK, SUBJECT = "host", "host.ptp", "PTP"
#: Marks of `chronyc sources`: selected, or combined with the selected one.
USED = ("*", "+")


def check_ptp(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Finding `host.ptp` of one host. Without planned PTP only two programs that adjust one clock are reported."""
    ptp, time = intent["host"]["time"]["ptp"], facts.time
    if time is None:
        if ptp is None:
            return [Finding(STAGE, CHECK, host, SUBJECT, NOT_APPLICABLE, "rdma_host.time.ptp is not set", "any")]
        why, remedy = "the clock's state was not read", f"Read the facts of {host} again."
        return [Finding(STAGE, CHECK, host, SUBJECT, UNKNOWN, why, "PTP", remedy)]
    both = list(_conflicts(host, time, is_planned=ptp is not None))
    if both:
        return both
    if ptp is None:
        return [Finding(STAGE, CHECK, host, SUBJECT, NOT_APPLICABLE, "rdma_host.time.ptp is not set", "any")]
    return [_planned(host, intent, ptp, facts, time)]


def _conflicts(host: str, time: Time, *, is_planned: bool) -> Iterator[Finding]:
    """Yield the programs that adjust one clock; without planned PTP only if ptp4l or phc2sys is one of them."""
    for clock, programs in conflicts(time.programs).items():
        if not is_planned and not any(each.name in (PTP4L, PHC2SYS) for each in programs):
            continue
        names = " and ".join(each.words for each in programs)
        pids = " ".join(str(each.pid) for each in programs)
        remedy = (
            f"1. On {host}, find their units: `systemctl status {pids}`. 2. Stop and disable all but one while no job runs. If chronyd is "
            "one of them, keep it."
        )
        subject = SUBJECT if clock == SYSTEM_CLOCK else f"clock {clock}"
        yield Finding(STAGE, CHECK, host, subject, ERROR, f"{names} adjust {clock} at once", "one program for each clock", remedy)


#: (status, observed, remedy) → the finding of a host.
Make = Callable[[str, str, str], Finding]


def _planned(host: str, intent: Intent, ptp: PtpIntent, facts: Facts, time: Time) -> Finding:
    """The finding of a host with planned PTP: the first thing that is wrong."""
    netdev, is_grandmaster = ptp_netdev(intent, facts), ptp["grandmaster"] == host
    limit_ns = largest_offset_ns(ptp)
    expected = f"grandmaster of domain {ptp['domain']}" if is_grandmaster else f"in domain {ptp['domain']}, off by {limit_ns} ns at most"

    def finding(status: str, observed: str, remedy: str) -> Finding:
        return Finding(STAGE, CHECK, host, SUBJECT, status, observed, expected, remedy)

    if netdev is None:
        where = ptp["rail"] or ptp["interface"]
        return finding(UNKNOWN, f"{where} has no interface", f"Check the NIC of {where} on {host}: `ip link`.")
    if (unfit := _unfit(ptp, facts, netdev)) is not None:
        status, why = unfit
        remedy = f"1. On {host}, run `ethtool -T {netdev}`. 2. Use another NIC, or `timestamping: software` in rdma_host.time.ptp."
        return finding(status, why, remedy)
    unread = next((each.unread for each in time.programs if each.unread), None) or time.ptp_unread
    if unread is not None or time.ptp is None:
        status, why = (UNKNOWN, unread) if unread is not None else _without_answer(facts, time)
        return finding(status, why, f"1. {_stage(host)} 2. On {host}, check `journalctl -u rdma-ptp@{netdev}`.")
    if time.ptp.domain != ptp["domain"]:
        remedy = f"1. {_stage(host)} 2. If ptp4l is right, correct rdma_host.time.ptp.domain."
        return finding(ERROR, f"ptp4l is in domain {time.ptp.domain}", remedy)
    if is_grandmaster:
        return _grandmaster(finding, host, time.ptp)
    return _follower(finding, host, ptp, time.ptp) or _chrony(finding, host, time, time.ptp, limit_ns)


def _stage(host: str) -> str:
    return f"Run the host stage for {host} with `-e time_sync_ptp_allowed=true` while no job runs."


def _without_answer(facts: Facts, time: Time) -> tuple[str, str]:
    """Return the status and the reason of a ptp4l that was not read: an error only if it is certain that none runs."""
    runs = any(unit.active for name, unit in (facts.units or {}).items() if name.startswith("rdma-ptp@"))
    if runs or facts.units is None or any(each.name == PTP4L for each in time.programs):
        return UNKNOWN, "ptp4l was not asked"
    return ERROR, "ptp4l does not run"


def _unfit(ptp: PtpIntent, facts: Facts, netdev: str) -> tuple[str, str] | None:
    """Return the status and the reason if an interface has no time stamps of the planned kind; None if it has."""
    known = facts.netdevs.get(netdev)
    stamps = known.ethtool.timestamping if known is not None and known.ethtool is not None else None
    if stamps is None:
        # An interface without a device, such as a bond, is not read; ptp4l's own report is then enough.
        return None if known is None else (UNKNOWN, f"the time stamps of {netdev} were not read")
    if ptp["timestamping"] == "hardware" and (stamps.clock is None or not stamps.hardware):
        return ERROR, f"{netdev} has no {'clock (PHC)' if stamps.clock is None else 'hardware time stamps'}"
    if ptp["timestamping"] == "software" and not stamps.software:
        return ERROR, f"{netdev} has no software time stamps"
    return None


def _grandmaster(finding: Make, host: str, ptp: Ptp) -> Finding:
    states = sorted(set(ptp.ports.values()))
    if _works(states, working_states(is_grandmaster=True, is_software=False)):
        return finding(OK, f"grandmaster {ptp.identity} in domain {ptp.domain}", "")
    remedy = f"1. Wait 10 s after a start of ptp4l. 2. On {host}, check `journalctl -u 'rdma-ptp@*'` and the link of its interface."
    return finding(ERROR, f"the port is {', '.join(states)}, not MASTER", remedy)


def _follower(finding: Make, host: str, ptp: PtpIntent, seen: Ptp) -> Finding | None:
    """The finding of a host that has no usable grandmaster; None if it has one."""
    software = ptp["timestamping"] == "software"
    states = sorted(set(seen.ports.values()))
    source = f"host {ptp['grandmaster']}" if ptp["grandmaster"] else "the grandmaster"
    if not _works(states, working_states(is_grandmaster=False, is_software=software)) or not seen.present:
        remedy = (
            f"1. Check {source}: ptp4l must run there in domain {ptp['domain']}, by {ptp['transport']}. "
            f"2. Let the switch forward PTP (UDP ports 319 and 320, or Ethernet type 0x88f7) on the port of {host}. "
            f"3. On {host}, check `journalctl -u 'rdma-ptp@*'`."
        )
        return finding(ERROR, f"no grandmaster in domain {seen.domain}: the port is {', '.join(states)}", remedy)
    if not seen.measured:
        return finding(UNKNOWN, f"follows {seen.grandmaster}, but has not measured the offset yet", f"Run the stage for {host} again.")
    if not software and not seen.tai:
        remedy = f"Set the grandmaster to PTP's time scale (TAI): chrony on {host} subtracts the leap seconds, 37 s, from its time."
        return finding(ERROR, f"{seen.grandmaster} does not use PTP's time scale", remedy)
    return None


def _works(states: Sequence[str], working: Sequence[str]) -> bool:
    """Return whether all ports have one state, in which they do what is planned."""
    return len(states) == 1 and states[0] in working


def _chrony(finding: Make, host: str, time: Time, seen: Ptp, limit_ns: int) -> Finding:
    """The finding of a host with a grandmaster: its offset, and whether chrony follows ptp4l."""
    observed = f"follows {seen.grandmaster}, off by {seen.offset_ns} ns"
    if abs(seen.offset_ns) > limit_ns:
        remedy = (
            "1. If ptp4l or chrony started in the last minutes, wait: chrony corrects the clock without a step. "
            f"2. On {host}, check `chronyc sources` and `journalctl -u 'rdma-ptp@*'`. "
            "3. Give PTP its own priority on the switches, or raise rdma_host.time.ptp.max_offset_ns."
        )
        return finding(ERROR, observed, remedy)
    if time.chrony is None:
        why = time.chrony_unread or "chrony does not run"
        status = UNKNOWN if time.chrony_unread else ERROR
        return finding(status, f"{observed}; {why}", f"On {host}, run `systemctl status chrony chronyd` and `chronyc sources`.")
    mark = time.chrony.sources.get(REFID)
    if mark in USED:
        return finding(OK, f"{observed}; chrony follows it", "")
    if mark == "x":
        remedy = f"1. On {host}, run `chronyc sources`. 2. Correct the time of the grandmaster or of the time servers, which disagree."
        return finding(ERROR, f"{observed}; chrony rejects it, because it disagrees with most time servers", remedy)
    what = "has no such source" if mark is None else f"does not use it (mark {mark!r})"
    remedy = f"1. Wait a minute after a start of chrony. 2. On {host}, run `chronyc sources` and check `journalctl -u chrony -u chronyd`."
    return finding(ERROR, f"{observed}; chrony {what}", remedy)
