# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a drill of hosts: each allowed fault of a rail, the checks that must see it, and what speaks against it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import DrillFault
from ansible_collections.rdma.cluster.plugins.module_utils._drill.rail import ADDRESS_LOST, GID_MOVED, MTU_1500, RAIL_DOWN, RAIL_KINDS
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.plan import BOTH
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.turned import is_about
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET

WORDS = {
    RAIL_DOWN: "set {netdev} of {host} down",
    MTU_1500: "set the MTU of {netdev} of {host} to 1500 bytes",
    ADDRESS_LOST: "remove {address} from {netdev} of {host}",
    GID_MOVED: "remove {address} from {netdev} of {host} and add it again, so that its GID gets a later index",
}
#: Kind of fault → the checks that must see it. One of them is enough.
CHECKS = {
    RAIL_DOWN: ("link.state",),
    MTU_1500: ("network.mtu", "alike.mtu"),
    ADDRESS_LOST: ("network.gid", "network.address"),
    GID_MOVED: ("alike.gid_index", "network.gid"),
}


@dataclass(frozen=True)
class HostStep:
    """One fault of a rail. netdev: its interface. address: the planned one, with its prefix length; None without one."""

    kind: str
    host: str
    rail: str
    netdev: str
    address: str | None

    @property
    def place(self) -> str:
        """Return where the fault is made, as the name of a host in the inventory."""
        return self.host

    @property
    def name(self) -> str:
        """Return the name in messages and results: "rail_down node3 rail1"."""
        return f"{self.kind} {self.host} {self.rail}"

    @property
    def checks(self) -> tuple[str, ...]:
        return CHECKS[self.kind]

    @property
    def words(self) -> str:
        """Return what the step does, for a person."""
        does = WORDS[self.kind].format(host=self.host, netdev=self.netdev, address=self.address)
        return f"{does}; {' or '.join(self.checks)} must see it"


def plan_host_steps(allowed: Sequence[DrillFault], known: Mapping[str, Known]) -> tuple[list[HostStep], list[str]]:
    """Return the steps in the order of rdma_drill.allow, and the problems, a sentence each. known: the hosts of the run."""
    steps: list[HostStep] = []
    problems: list[str] = []
    for number, fault in enumerate(allowed):
        if fault["switch"] is not None and fault["host"] is None:
            continue
        made = _step(fault, known)
        if isinstance(made, str):
            problems.append(f"rdma_drill.allow[{number}]: {made}")
        elif made in steps:
            problems.append(f"rdma_drill.allow[{number}]: {made.name} is listed twice")
        else:
            steps.append(made)
    return steps, problems


def _step(fault: DrillFault, known: Mapping[str, Known]) -> HostStep | str:
    """Return the step of a permission, or why there is none."""
    host, name, kind = fault["host"], fault["rail"], fault["fault"]
    if host is None or name is None or host not in known or kind not in RAIL_KINDS or fault["switch"] or fault["port"]:
        return _unusable(fault, list(known))
    each = known[host]
    if each.intent is None or each.facts is None:
        return f"{host} was not read in this run{f': {each.problem}' if each.problem else ''}"
    rails = {rail.name: rail for rail in resolve(each.intent["rails"], each.facts)}
    if name not in rails:
        return f"{host} has no rail {name}; it has {', '.join(rails)}"
    rail = rails[name]
    if wrong := _unfit(rail, kind):
        return f"{name} of {host} {wrong}"
    return HostStep(kind, host, name, str(rail.netdev), rail.rail["address"])


def _unusable(fault: DrillFault, hosts: Sequence[str]) -> str:
    """Return why a permission is not one of a rail of a known host."""
    if fault["host"] is None or fault["rail"] is None or fault["switch"] or fault["port"]:
        return BOTH
    if fault["fault"] not in RAIL_KINDS:
        return f"{fault['fault']} is a fault of a switch; on a host use one of {', '.join(RAIL_KINDS)}"
    near = difflib.get_close_matches(fault["host"], hosts, n=1)
    return f"{fault['host']} is not a host of this run{f'; did you mean {near[0]}?' if near else ''}"


def _unfit(rail: ResolvedRail, kind: str) -> str:
    """Return why a kind of fault cannot be made on a rail; "" if it can."""
    if rail.rail["role"] == "storage":
        return "is a rail of storage, whose faults can lose data"
    if rail.rail["link_layer"] != "roce":
        return "is not RoCE"
    if rail.bond is not None or rail.interface != rail.netdev:
        return "is on a bond or a VLAN"
    if rail.netdev is None:
        return "has no interface on this host"
    if kind in (ADDRESS_LOST, GID_MOVED) and rail.rail["address"] is None:
        return "has no planned address"
    return ""


def not_ok_before(steps: Sequence[HostStep], findings: Mapping[str, Sequence[Finding]]) -> list[str]:
    """Return the checks that should see a fault and are not ok before it, a sentence each. findings: by host.

    A check after the first one may be unknown.
    """
    return list(
        dict.fromkeys(
            f"{finding.check} of {finding.host} is {finding.status} already: {finding.subject}: {finding.observed}"
            for step in steps
            for finding in (*findings.get(step.host, ()), *findings.get(FLEET, ()))
            if finding.check in step.checks and is_about(finding, step.rail)
            if finding.status == ERROR or (finding.check == step.checks[0] and finding.status in (UNKNOWN, WARNING))
        )
    )


def host_steps_text(steps: Sequence[HostStep], hold_seconds: int, *, alerts: bool) -> str:
    """Return the list of all steps, without a final line break. alerts: whether alerts are read."""
    if not steps:
        return "The drill has no step: rdma_drill.allow permits no fault of a host. Nothing was changed."
    asked = "the gates and the alerts have" if alerts else "the gates have"
    head = f"The steps of the drill, one after the other; each fault lasts until {asked} answered, at most {hold_seconds} s:"
    lines = [head, *(f"{number}. {step.name}: {step.words}." for number, step in enumerate(steps, 1))]
    return "\n".join([*lines, *([] if alerts else ["Alerts are not judged, because rdma_drill.alerts_url is not set."])])
