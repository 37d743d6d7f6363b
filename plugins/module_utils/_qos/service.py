# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile as a service: one file, one program, and a unit for each interface. Units and module both apply it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import (
    PROGRAMS,
    BootProgram,
    ServiceChange,
    hardened,
    install_files,
    install_service,
    remove_service,
    run_service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import enabled_instances
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import Outcome, QosHost, ensure_qos
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import format_value
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import CONFIG, TEMPLATE, QosPorts, find_ports, unit_of, write_plan
from ansible_collections.rdma.cluster.plugins.module_utils._qos.runner import main as qos_runner

PROGRAM = f"{PROGRAMS}/roce_qos.pyz"
FAMILIES = "RestrictAddressFamilies=AF_NETLINK AF_UNIX AF_INET AF_INET6"
#: The interface's device starts it again whenever the driver creates the interface again.
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
# These stay: CAP_NET_ADMIN for DCB, ethtool and the link, CAP_SYS_ADMIN for the files of the vendor's driver, and /sys for both; devices
# and all of memory, because mlnx_qos of MLNX_OFED is a program of which nobody says what it opens.
{hardened("ProtectHome=yes", "IPAddressDeny=any", "CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_ADMIN", FAMILIES)}

[Install]
WantedBy=sys-subsystem-net-devices-%i.device
"""
BOOT = BootProgram(TEMPLATE, UNIT_TEXT, qos_runner, CONFIG, PROGRAM)


@dataclass(frozen=True)
class QosResult:
    """The changes, or in check mode the planned ones: to shared files of the units, by unit, and by interface.

    ports: the found NICs; removed: nothing is planned any more, and the files and units are removed.
    """

    files: list[FileChange]
    services: list[ServiceChange]
    outcomes: list[Outcome]
    ports: QosPorts
    removed: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.files) or any(self.services) or any(outcome.written for outcome in self.outcomes)

    @property
    def written(self) -> dict[str, list[str]]:
        """Return interface → settings that were written."""
        return {each.interface: [difference.name for difference in each.written] for each in self.outcomes if each.written}

    @property
    def withheld(self) -> dict[str, list[str]]:
        """Return interface → settings for which its link would have to go down."""
        return {each.interface: [difference.name for difference in each.withheld] for each in self.outcomes if each.withheld}

    @property
    def waits(self) -> dict[str, list[str]]:
        """Return interface → the other settings that were not written."""
        return {each.interface: [difference.name for difference in each.waits] for each in self.outcomes if each.waits}

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the format of Ansible's --diff."""
        settings = [
            setting_diff(f"{each.name} of {outcome.interface}", format_value(each.was), format_value(each.requested))
            for outcome in self.outcomes
            for each in outcome.written
        ]
        return [*(file.to_diff() for file in self.files), *(diff for each in self.services for diff in each.diffs), *settings]


def ensure_service(
    profile: Mapping[str, Any] | None,
    nics: Sequence[Mapping[str, str]],
    host: QosHost,
    *,
    check_mode: bool,
    change_allowed: bool,
    toggle_allowed: bool,
) -> QosResult:
    """Apply the profile to every NIC in turn, now and at boot; without profile or NICs, remove the boot files and units.

    change_allowed, toggle_allowed: as for ensure_qos.

    Settings of a NIC are never reverted. All possible changes are made before the first failure is raised: ApplyError lists every setting
    that failed.
    """
    if profile is None or not nics:
        return _remove(host, check_mode=check_mode)
    ports = find_ports(host.sys, nics)
    outcomes, failures = [], {}
    for port in ports.found.values():
        try:
            outcome = ensure_qos(
                profile, port, host, check_mode=check_mode, change_allowed=change_allowed, toggle_allowed=toggle_allowed
            )  # fmt: skip
            outcomes.append(outcome)
        except (ApplyError, CommandError, ParseError, OSError) as error:
            failures[port.interface] = str(error)
    # The unit writes everything, so it must not start before that is allowed.
    waits = {each.interface for each in outcomes if each.withheld or each.waits} | set(failures)
    files = install_files(service_files(profile, nics), runner=host.runner, check_mode=check_mode)
    services = _stale(ports, host, check_mode=check_mode)
    for interface in ports.found:
        try:
            services.append(_service(interface, host, check_mode=check_mode, again=bool(files), works=interface not in waits))
        except (ApplyError, CommandError) as error:
            failures[unit_of(interface)] = str(error)
    if failures:
        raise ApplyError("; ".join(failures.values()))
    return QosResult(files, services, outcomes, ports)


def _service(interface: str, host: QosHost, *, check_mode: bool, again: bool, works: bool) -> ServiceChange:
    """Enable an interface's unit, and start it if it has nothing to change.

    works False: settings of the interface failed or were withheld. The unit is then only enabled, because it applies them unconditionally.
    """
    change = install_service(unit_of(interface), [], runner=host.runner, check_mode=check_mode)
    change = replace(change, started=change.started and works)
    if not check_mode:
        run_service(change, runner=host.runner, restart=again and works)
    return change


def _stale(ports: QosPorts, host: QosHost, *, check_mode: bool) -> list[ServiceChange]:
    """Remove the units of interfaces that are no longer planned; while a NIC is missing, any of them may belong to its interface."""
    planned = {unit_of(interface) for interface in (*ports.found, *ports.waiting)}
    units = [unit for unit in enabled_instances(host.sys, TEMPLATE) if unit not in planned and not ports.missing]
    return [remove_service(unit, [], runner=host.runner, check_mode=check_mode) for unit in units]


def _remove(host: QosHost, *, check_mode: bool) -> QosResult:
    """Remove the units while systemd still knows them, then their files."""
    units = [remove_service(unit, [], runner=host.runner, check_mode=check_mode) for unit in enabled_instances(host.sys, TEMPLATE)]
    files = install_files(service_files(None, []), runner=host.runner, check_mode=check_mode)
    return QosResult(files, units, [], QosPorts({}, [], []), removed=bool(files or any(units)))


def service_files(profile: Mapping[str, Any] | None, nics: Sequence[Mapping[str, str]]) -> list[ManagedFile]:
    """Return the shared files of the units: the profile's, the program, and the unit's template. Without profile or NICs, none of them."""
    return BOOT.files(None if profile is None or not nics else write_plan(profile, nics))
