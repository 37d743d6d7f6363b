# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The subnet manager of each plane as the hosts see it: one master, the planned one, and no unplanned one.

Every port reports the LID of its master (sysfs, ports/N/sm_lid), which needs no tool. Only sminfo shows the standby.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import SILENT_MANAGER
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.manager_views import NOT_ASKED, Plane, Seen, View, planned_on, views_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import Found, some
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import priority_of

#: The checks that report why the planned master has no active port on a rail.
GONE = ("intent.nic", "driver.nic", "link.layer", "link.state")
declare(
    {
        "link.sm": Check(
            "link",
            "the subnet managers of each plane: the intended one is the only master, the standby runs, and there is no other",
            "`ports/N/sm_lid`, `lid`; `sminfo`, `saquery -s`, `smpquery nodeinfo`, `nodedesc`",
            "plan or stop the other master, find why the intended one does not run, or restart the one that does not hand over",
            follows=GONE,
            repeats=GONE,
            sources=(reads.file(f"{reads.IB}/ports/*/sm_lid"), reads.result("sminfo"), reads.result("saquery")),
        ),
    }
)

STAGE, CHECK = "link", "link.sm"
#: The values of SmInfo.state of an active subnet manager; the others are off.
ALIVE = ("MASTER", "STANDBY", "DISCOVER")
STRANGER = "a switch, or a host that is not in this run"
NONE_UP = "none of its ports is up: see link.state"


def check_managers(hosts: Mapping[str, Known], seen: Mapping[str, Seen]) -> Found:
    """Return the findings `link.sm` of every host, one for each of its planes with a planned subnet manager.

    seen: by plane. A finding on the whole plane is at its planned master; without one in this run, at "plane NAME".
    """
    found: Found = {host: [] for host in hosts}
    managers: dict[str, Mapping[str, Any]] = {}
    for known in hosts.values():
        for name, plane in known.intent["fabric"]["planes"].items() if known.intent else ():
            if plane["subnet_manager"] is not None:
                managers.setdefault(name, plane["subnet_manager"])
    for name, manager in managers.items():
        views = [view for host, known in hosts.items() for view in views_of(host, known, name)]
        for finding in _plane(Plane(name, manager, views, seen.get(name, NOT_ASKED), planned_on(hosts, name))):
            found.setdefault(finding.host, []).append(finding)
    return found


def _plane(plane: Plane) -> Iterator[Finding]:
    manager, subject = plane.manager, plane.subject
    expected = {"hosts": f"{plane.wanted or '?'} as the one master", "switch": "a switch as the one master", "none": "none"}[
        manager["kind"]
    ]
    judged = False
    for host in dict.fromkeys(view.host for view in plane.views):
        if manager["kind"] == "none":
            yield Finding(STAGE, CHECK, host, subject, NOT_APPLICABLE, "no subnet manager is planned", expected)
            continue
        finding = _host(host, subject, [view for view in plane.views if view.host == host], plane.usual, expected)
        # The planned master has the finding on the whole plane instead of its own.
        if host != plane.about or finding.status not in (OK, NOT_APPLICABLE):
            judged = judged or host == plane.about
            yield finding
    if plane.usual is not None and manager["kind"] != "none" and not judged:
        finding = Finding(STAGE, CHECK, plane.about, subject, OK, f"LID {plane.usual}", expected)
        silent = _silent(finding, plane)
        yield silent or _master(finding, plane)
        yield from _others(finding, plane) if silent is None else ()
    elif plane.about in plane.planned and not judged and any(view.host == plane.about for view in plane.views):
        yield Finding(STAGE, CHECK, plane.about, subject, NOT_APPLICABLE, NONE_UP, expected)


def _host(host: str, subject: str, own: Sequence[View], usual: int | None, expected: str) -> Finding:
    """Return a finding on whether a host's ports have the same master as all others."""
    up = [view for view in own if view.up]
    if not up:
        return Finding(STAGE, CHECK, host, subject, NOT_APPLICABLE, NONE_UP, expected)
    unreported = [view.rail.name for view in up if not view.port.sm_lid]
    if unreported:
        remedy = f"On {host}, check `ports/*/sm_lid` of {some(unreported)} in /sys/class/infiniband."
        observed = f"{some(unreported)} does not report the LID of its subnet manager"
        return Finding(STAGE, CHECK, host, subject, UNKNOWN, observed, expected, remedy)
    odd = [view for view in up if view.port.sm_lid != usual]
    if odd:
        words = ", ".join(f"LID {view.port.sm_lid} on {view.rail.name}" for view in odd)
        first = odd[0].rail
        return Finding(
            STAGE, CHECK, host, subject, ERROR, f"its master is {words}; that of the plane is LID {usual}", "one master for the plane",
            f"1. On {host}, run `sminfo -C {first.device} -P {first.port}` to identify that master. "
            f"2. Check that the cable of {first.name} leads to a switch of this plane.",
        )  # fmt: skip
    return Finding(STAGE, CHECK, host, subject, OK, f"LID {usual}", expected)


def _silent(finding: Finding, plane: Plane) -> Finding | None:
    """Return the finding that the master known to the ports does not answer. Ports keep its LID until another master replaces it."""
    if plane.seen.why_not is None or f"{SILENT_MANAGER} at LID {plane.usual}" not in plane.seen.why_not.split("; "):
        return None
    who = plane.of_lid(plane.usual)
    observed = f"{who or STRANGER} (LID {plane.usual}), which no longer answers"
    standing = [host for host in plane.manager["hosts"] if host != who]
    wait = f"; {some(standing)} should take over within a minute" if standing else ""
    remedy = f"On {who}, run `systemctl status 'opensm*'` to see why it ended{wait}." if who else "Check that the switch or host runs."
    if who is None and plane.unseen:
        observed = f"the subnet manager at LID {plane.usual} no longer answers; {plane.unseen}"
        remedy = f"Fix {plane.wanted}: it must be reachable, with active ports (link.state, link.layer)."
    return Finding(STAGE, CHECK, finding.host, finding.subject, ERROR, observed, finding.expected, f"{remedy} Then rerun.")


def _master(finding: Finding, plane: Plane) -> Finding:
    if plane.manager["kind"] == "switch":
        return _switch_master(finding, plane)
    master = next((each for each in plane.seen.managers or () if each.lid == plane.usual), None)
    who, wanted = plane.of_lid(plane.usual) or plane.host_of(master), plane.wanted
    known = master is not None and (master.kind or master.description)
    status, observed = ERROR, f"{who or STRANGER} (LID {plane.usual})"
    if who == wanted:
        return Finding(STAGE, CHECK, finding.host, finding.subject, OK, observed, finding.expected)
    if who in plane.manager["hosts"]:
        standing = {plane.host_of(each) for each in plane.seen.managers or () if each.state == "STANDBY"}
        remedy = (
            f"opensm on {who} has not handed over to {wanted}. On {who}, run `systemctl restart 'opensm@*'`."
            if wanted in standing
            else f"The standby has taken over. On {wanted}, run `systemctl status 'opensm*'` to see why opensm does not run."
        )
    elif who is None and plane.unseen and not known:
        status, observed = UNKNOWN, f"LID {plane.usual}, which no port of this run has; {plane.unseen}"
        remedy = f"1. Fix the other findings of {wanted} on its ports, or rerun without `--limit`. 2. See `sminfo` on {plane.asker}."
    else:
        observed = f"{f'{who}: ' if who else ''}{master.words}" if master is not None and known else observed
        remedy = (
            f"Either keep it: name it in rdma_fabric.planes ({finding.subject}), as a host or with `kind: switch`. Or stop it. "
            "Or take over: while no job runs, run the link stage with `-e subnet_manager_takeover_allowed=true`."
        )
    return Finding(STAGE, CHECK, finding.host, finding.subject, status, observed, finding.expected, remedy)


def _switch_master(finding: Finding, plane: Plane) -> Finding:
    """Return the finding on a master that must be a switch. Its node must report that it is a switch; the LID alone does not show it."""
    name, usual, seen = plane.manager.get("switch"), plane.usual, plane.seen
    who = plane.of_lid(usual)
    masters = [each for each in seen.managers or () if each.state == "MASTER"]
    master = next((each for each in masters if each.lid == usual), None)
    remedy = f"On {plane.asker}, run `sminfo` and `saquery -s` as root (package infiniband-diags), and fix what they report."
    status, observed = UNKNOWN, f"LID {usual}; {seen.why_not}"
    if who is not None or (master is not None and master.kind == "host"):
        status, observed = ERROR, f"{who} (LID {usual})" if master is None or who is not None else master.words
        remedy = f"On {who or 'that host'}, run `systemctl disable --now opensm` (OFED: opensmd), or plan it with `kind: hosts`."
    elif seen.managers is not None and master is None:
        observed = f"LID {usual} is not a master; subnet managers: {'; '.join(each.words for each in seen.managers) or 'none'}"
    elif len(masters) > 1:
        status, observed = ERROR, f"two masters: {'; '.join(each.words for each in masters)}"
        remedy = "Stop one of them, or give it a lower priority."
    elif master is not None and master.kind is None:
        observed = f"its node did not answer: {master.words}"
    elif master is not None and name and not _is_switch(name, master):
        status, observed = ERROR, master.words
        remedy = f"Stop the subnet manager of that switch, or correct `switch` in rdma_fabric.planes ({finding.subject})."
    elif master is not None:
        status, observed, remedy = OK, master.words, ""
    expected = f"switch {name} as the one master" if name else finding.expected
    return Finding(STAGE, CHECK, finding.host, finding.subject, status, observed, expected, remedy)


def _is_switch(name: str, master: SmInfo) -> bool:
    """Return whether a manager runs on the switch with this GUID, node description, or word of it ("sw1" of "MF0;sw1:MQM8700/U1")."""
    description = (master.description or "").lower()
    return name.lower() in (master.guid, description, *re.split(r"[;:/\s]+", description))


def _others(finding: Finding, plane: Plane) -> Iterator[Finding]:
    """Yield findings on standby and unplanned subnet managers. If a switch is the master, other switches may be standby."""
    manager, seen = plane.manager, plane.seen
    if manager["kind"] != "hosts":
        yield from _beside_a_switch(finding, plane)
        return
    standing = manager["hosts"][1:]
    if seen.managers is None:
        who = standing[0] if standing else "others"
        expected = "STANDBY" if standing else "no other subnet manager"
        remedy = f"On {plane.asker}, run `sminfo` and `saquery -s` as root (infiniband-diags), and fix what they report. Then rerun."
        yield _about(finding, who, UNKNOWN, str(seen.why_not), expected, remedy)
        return
    states = {plane.host_of(each): each for each in seen.managers}
    alive = [each for each in seen.managers if each.state in ALIVE and each.lid != plane.usual]
    # Without its LID in this run and without a node description, a planned host cannot be distinguished from another.
    nameless = (
        [each for each in alive if plane.host_of(each) is None and not each.description] if any(map(plane.is_partly_seen, standing)) else []
    )
    first = states.get(manager["hosts"][0])
    if first is not None and first.state == "MASTER" and first.priority != priority_of(manager, manager["hosts"][0]):
        yield _other_settings(finding, manager, manager["hosts"][0], first)
    for host in standing:
        state = states[host].state if host in states else None
        remedy = f"On {host}, run `systemctl status 'opensm*'`, and read the end of /var/log/opensm.*.log."
        if state == "STANDBY" and states[host].priority != priority_of(manager, host):
            yield _other_settings(finding, manager, host, states[host])
        elif state in ("STANDBY", "MASTER"):
            yield _about(finding, host, OK, str(state), "STANDBY")
        elif nameless and plane.is_partly_seen(host):
            lids = some([f"LID {each.lid}" for each in nameless])
            again = f"Rerun with {host} in the run and its port on this plane active."
            yield _about(finding, host, UNKNOWN, f"not all its ports are in this run and active; {lids} may be its", "STANDBY", again)
        else:
            yield _about(finding, host, ERROR, str(state or "no subnet manager answers there"), "STANDBY", remedy)
    # The master has a finding of its own.
    for each in alive:
        who = plane.host_of(each)
        if who not in manager["hosts"] and each not in nameless:
            yield _unplanned(finding, manager, each, who)


def _beside_a_switch(finding: Finding, plane: Plane) -> Iterator[Finding]:
    alive = [each for each in plane.seen.managers or () if each.state in ALIVE and each.lid != plane.usual]
    for each in alive:
        who = plane.of_lid(each.lid)
        if who is not None or each.kind == "host":
            yield _unplanned(finding, plane.manager, each, who)


def _other_settings(finding: Finding, manager: Mapping[str, Any], host: str, its: SmInfo) -> Finding:
    """Return a finding on other settings; not for a master that took over: NVIDIA's opensm changes its priority (master_sm_priority)."""
    remedy = f"opensm on {host} uses other files. Run the link stage for {host} with `-e subnet_manager_restart_allowed=true`."
    words = f"{its.state}, priority {its.priority}", f"priority {priority_of(manager, host)}"
    return _about(finding, host, ERROR, *words, remedy)


def _unplanned(finding: Finding, manager: Mapping[str, Any], each: SmInfo, who: str | None) -> Finding:
    master = f"{manager['hosts'][0]}'s" if manager["hosts"] else "the switch's"
    remedy = f"Stop it, or plan it in rdma_fabric.planes. If it takes over with other settings, it undoes {master}."
    label = f"{who or each.description or each.guid} (LID {each.lid})"
    return _about(finding, label, ERROR, f"{each.state}, priority {each.priority}", "no other subnet manager", remedy)


def _about(finding: Finding, who: str, status: str, *words: str) -> Finding:
    """Return a finding about one subnet manager. words: observed, expected, remedy."""
    observed, expected, remedy = (*words, "")[:3]
    return Finding(STAGE, CHECK, finding.host, f"{finding.subject}, {who}", status, observed, expected, remedy)
