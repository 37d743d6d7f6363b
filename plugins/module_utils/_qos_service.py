# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile as a service: one file, one program, a unit for each interface, applied by them and by us."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils import _qos_runner
from ansible_collections.rdma.cluster.plugins.module_utils._boot_service import PROGRAMS, UNITS, ServiceChange, install_service, run_service
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._files import ManagedFile, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._qos_apply import Outcome, QosHost, ensure_qos, told
from ansible_collections.rdma.cluster.plugins.module_utils._qos_file import CONFIG, TEMPLATE, unit_of, write_plan
from ansible_collections.rdma.cluster.plugins.module_utils._qos_ports import QosPorts, find_ports

UNIT_FILE = f"{UNITS}/{TEMPLATE}"
PROGRAM = f"{PROGRAMS}/roce_qos.pyz"
#: The interface's device starts it again whenever the driver makes the interface anew.
UNIT_TEXT = f"""\
# Managed by rdma.cluster: the RoCE profile of {CONFIG} on %I.
[Unit]
Description=RoCE quality of service of %I
BindsTo=sys-subsystem-net-devices-%i.device
After=sys-subsystem-net-devices-%i.device openibd.service rdma-hw.target rdma-soft-links.service
Before=network-online.target slurmd.service kubelet.service containerd.service docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 {PROGRAM} %I
TimeoutStartSec=180

[Install]
WantedBy=sys-subsystem-net-devices-%i.device
"""


@dataclass(frozen=True)
class QosResult:
    """What was done, or would be in check mode: by service and by interface. missing: NICs that are not there."""

    services: list[ServiceChange]
    outcomes: list[Outcome]
    ports: QosPorts

    @property
    def changed(self) -> bool:
        return any(self.services) or any(outcome.written for outcome in self.outcomes)

    @property
    def written(self) -> dict[str, list[str]]:
        """Interface → settings that were written."""
        return {each.interface: [difference.name for difference in each.written] for each in self.outcomes if each.written}

    @property
    def withheld(self) -> dict[str, list[str]]:
        """Interface → settings for which its link would have to go down."""
        return {each.interface: [difference.name for difference in each.withheld] for each in self.outcomes if each.withheld}

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints."""
        settings = [
            setting_diff(f"{each.name} of {outcome.interface}", told(each.was), told(each.wished))
            for outcome in self.outcomes
            for each in outcome.written
        ]
        return [*(diff for each in self.services for diff in each.diffs), *settings]


def ensure_service(
    profile: Mapping[str, Any], nics: Sequence[Mapping[str, str]], host: QosHost, *, check_mode: bool, toggle_allowed: bool
) -> QosResult:
    """Make every NIC as the profile says, one after the other, now and at boot. Raises ApplyError with all that is not so afterwards."""
    ports = find_ports(host.sys, nics)
    outcomes, failures = [], []
    for port in ports.found.values():
        try:
            outcomes.append(ensure_qos(profile, port, host, check_mode=check_mode, toggle_allowed=toggle_allowed))
        except ApplyError as error:
            failures.append(str(error))
    services = _services(profile, nics, list(ports.found), host, check_mode=check_mode, run=not failures)
    if failures:
        raise ApplyError("; ".join(failures))
    return QosResult(services, outcomes, ports)


def _services(
    profile: Mapping[str, Any], nics: Sequence[Mapping[str, str]], interfaces: Sequence[str], host: QosHost, *, check_mode: bool, run: bool
) -> list[ServiceChange]:
    """The files first, then each interface's unit, which finds nothing to do where all is as it shall be."""
    changes = []
    for interface in interfaces:
        change = install_service(unit_of(interface), service_files(profile, nics), runner=host.runner, check_mode=check_mode)
        if not check_mode and run:
            run_service(change, runner=host.runner, restart=bool(change.files))
        changes.append(change)
    return changes


def service_files(profile: Mapping[str, Any], nics: Sequence[Mapping[str, str]]) -> list[ManagedFile]:
    """The profile's file, the program, and the unit's template."""
    return [
        ManagedFile(CONFIG, write_plan(profile, nics)),
        ManagedFile(PROGRAM, host_program(_qos_runner.__name__.rpartition(".")[2]), 0o755),
        ManagedFile(UNIT_FILE, UNIT_TEXT),
    ]
