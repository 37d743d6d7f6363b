# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Soft-RoCE links as a service: one file, applied by one unit at boot and by us."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils import _soft_link_runner
from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._files import FileChange, ManagedFile, ensure_files, listed_diff, own_source
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import unit_state

UNIT = "rdma-soft-links.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
SCRIPT = "/usr/local/lib/rdma-cluster/soft_links.py"
UNIT_TEXT = f"""\
# Managed by rdma.cluster: the Soft-RoCE links of {_soft_link_runner.CONFIG}.
[Unit]
Description=Soft-RoCE links
After=systemd-modules-load.service systemd-udevd.service
Before=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 {SCRIPT} --config {_soft_link_runner.CONFIG}
TimeoutStartSec=120

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class SoftLinksResult:
    """What was done, or would be in check mode."""

    files: list[FileChange]
    created: list[str]
    enabled: bool
    started: bool

    @property
    def changed(self) -> bool:
        return bool(self.files or self.created or self.enabled or self.started)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints."""
        service = [*(["enabled"] if self.enabled else []), *(["started"] if self.started else [])]
        return [
            *(file.to_diff() for file in self.files),
            *listed_diff(UNIT, service),
            *listed_diff("Soft-RoCE devices", self.created),
        ]


def ensure_soft_links(links: Sequence[dict[str, Any]], *, runner: Runner, check_mode: bool) -> SoftLinksResult:
    """Install the service for these links (none: remove it), and run it where a link is not as it shall be.

    links: [{"name", "type", "nic": {"pci"} or {"mac"}}]. Raises ApplyError if the service fails or a link is still wrong.
    """
    if not links:
        return _remove(runner, check_mode=check_mode)
    files = ensure_files(service_files(links), check_mode=check_mode)
    wrong = [link["name"] for link in links if not _soft_link_runner.is_right(link)]
    state = unit_state(runner, UNIT)
    enable = not state.enabled
    start = not state.active
    if not check_mode:
        _apply(runner, files, enable=enable, start=start or bool(wrong))
        _read_back(links)
    return SoftLinksResult(files, wrong, enable, start)


def _remove(runner: Runner, *, check_mode: bool) -> SoftLinksResult:
    """The service goes while its unit is still known, then its files. Devices stay until the next boot."""
    state = unit_state(runner, UNIT)
    if (state.active or state.enabled) and not check_mode:
        _systemctl(runner, "disable", "--now", UNIT)
    files = ensure_files(service_files([]), check_mode=check_mode)
    if files and not check_mode:
        _systemctl(runner, "daemon-reload")
    return SoftLinksResult(files, [], False, False)


def service_files(links: Sequence[dict[str, Any]]) -> list[ManagedFile]:
    """The unit, its program and its list; for no links none of them shall be there."""
    if not links:
        return [ManagedFile(path, None) for path in (_soft_link_runner.CONFIG, SCRIPT, UNIT_FILE)]
    return [
        ManagedFile(_soft_link_runner.CONFIG, json.dumps(list(links), indent=2, sort_keys=True) + "\n"),
        ManagedFile(SCRIPT, own_source(_soft_link_runner), 0o755),
        ManagedFile(UNIT_FILE, UNIT_TEXT),
    ]


def _apply(runner: Runner, files: list[FileChange], *, enable: bool, start: bool) -> None:
    if enable:
        # Reloads as well.
        _systemctl(runner, "enable", UNIT)
    elif any(change.path == UNIT_FILE for change in files):
        _systemctl(runner, "daemon-reload")
    if start:
        _systemctl(runner, "restart", UNIT)


def _systemctl(runner: Runner, *words: str) -> None:
    run_checked(runner, "systemctl", *words, timeout_seconds=150)


def _read_back(links: Sequence[dict[str, Any]]) -> None:
    wrong = [link["name"] for link in links if not _soft_link_runner.is_right(link)]
    if wrong:
        raise ApplyError(f"{UNIT} ran, and these Soft-RoCE links are still not there: {', '.join(wrong)}.")
