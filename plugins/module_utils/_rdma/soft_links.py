# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Soft-RoCE links as a service: one file, applied by one unit at boot and by the module."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import (
    NO_DEVICES,
    PROGRAMS,
    BootProgram,
    ServiceChange,
    hardened,
    run_service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._rdma import soft_links_runner

UNIT = "rdma-soft-links.service"
PROGRAM = f"{PROGRAMS}/soft_links.pyz"
UNIT_TEXT = f"""\
# Managed by rdma.cluster: the Soft-RoCE links of {soft_links_runner.CONFIG}.
[Unit]
Description=Soft-RoCE links
After=systemd-modules-load.service systemd-udevd.service
Before=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 {PROGRAM} --config {soft_links_runner.CONFIG}
TimeoutStartSec=120
# CAP_NET_ADMIN stays: `rdma link add` speaks to the kernel by netlink, which loads the driver itself.
{hardened(*NO_DEVICES, "ProtectKernelTunables=yes", "CapabilityBoundingSet=CAP_NET_ADMIN", "RestrictAddressFamilies=AF_NETLINK AF_UNIX")}

[Install]
WantedBy=multi-user.target
"""
BOOT = BootProgram(UNIT, UNIT_TEXT, soft_links_runner.main, soft_links_runner.CONFIG, PROGRAM)


@dataclass(frozen=True)
class SoftLinksResult:
    """The changes that were made, or would be in check mode; withheld: devices to delete, left alone because the host is in use."""

    service: ServiceChange
    created: list[str]
    withheld: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.service or self.created)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints."""
        return [*self.service.diffs, *listed_diff("Soft-RoCE devices", self.created)]


def ensure_soft_links(links: Sequence[dict[str, Any]], *, runner: Runner, check_mode: bool, refused: str = "") -> SoftLinksResult:
    """Install the service for these links (none: remove it), and run it if a link is missing or on another NIC.

    links: [{"name", "type", "nic": {"pci"} or {"mac"}}]. refused: why no device may be deleted now, "" if it may. A device on another
    NIC, or with the former name of a rail, is deleted and created again, which ends its queue pairs: if that is refused, nothing is
    changed. Raises ApplyError if the service fails or a link is still wrong.
    """
    if not links:
        return SoftLinksResult(BOOT.remove(runner=runner, check_mode=check_mode), [])
    wrong = [link["name"] for link in links if not soft_links_runner.is_right(link)]
    moved = tuple(name for name in wrong if soft_links_runner.parent_of(name) is not None) + _former(links, wrong)
    withheld = moved if refused else ()
    if withheld and not check_mode:
        return SoftLinksResult(BOOT.unchanged, [], withheld)
    # A NIC has one such device: all are deleted before any is created. The file with the former names is replaced after that.
    for name in () if check_mode else moved:
        run_checked(runner, "rdma", "link", "delete", name)
    service = BOOT.install(_settings(links), runner=runner, check_mode=check_mode)
    if not check_mode:
        run_service(service, runner=runner, restart=bool(wrong))
        _read_back(links)
    return SoftLinksResult(service, wrong, withheld)


def _former(links: Sequence[dict[str, Any]], wrong: Collection[str]) -> tuple[str, ...]:
    """Return the devices of the last run's file that the plan does not have, on NICs on which a planned device is missing."""
    needed = {soft_links_runner.find_netdev(link["nic"]) for link in links if link["name"] in wrong} - {None}
    planned = {link["name"] for link in links}
    return tuple(name for name in _last_names() if name not in planned and soft_links_runner.parent_of(name) in needed)


def _last_names() -> list[str]:
    """Return the names in the file of the last run; none if it cannot be read."""
    try:
        listed = json.loads(Path(BOOT.config).read_text(encoding="utf-8"))
        return [str(link["name"]) for link in listed]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def service_files(links: Sequence[dict[str, Any]]) -> list[ManagedFile]:
    """Return the list of links, the program and the unit; without links none of them."""
    return BOOT.files(_settings(links) if links else None)


def _settings(links: Sequence[dict[str, Any]]) -> str:
    return json.dumps(list(links), indent=2, sort_keys=True) + "\n"


def _read_back(links: Sequence[dict[str, Any]]) -> None:
    wrong = [link["name"] for link in links if not soft_links_runner.is_right(link)]
    if wrong:
        raise ApplyError(f"{UNIT} ran, and these Soft-RoCE links are still not there: {', '.join(wrong)}.")
