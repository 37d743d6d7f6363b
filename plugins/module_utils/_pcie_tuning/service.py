# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The planned PCIe settings, now and at boot: one file, applied by one unit and by the module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import LOCKED_DOWN, lockdown_words, read_lockdown
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import in_use_now
from ansible_collections.rdma.cluster.plugins.module_utils._pci.port import ConfigPort
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import runner as pcie_tuning_runner
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import AUTO, BARE_METAL, LEAVE
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.request import (
    ACS_EFFECT,
    EFFECTS,
    MRRS_EFFECT,
    PcieRequest,
    Setting,
    parse_request,
    write_request,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.tuning import REFUSED, Survey, apply, survey

UNIT = "rdma-pcie.service"
PROGRAM = f"{PROGRAMS}/pcie_tuning.pyz"
UNIT_TEXT = f"""\
# Managed by rdma.cluster: the PCIe settings of {pcie_tuning_runner.CONFIG}.
[Unit]
Description=PCIe settings of the RDMA NICs
After=systemd-modules-load.service systemd-udevd.service
# Before whatever starts jobs.
Before=network-online.target slurmd.service kubelet.service containerd.service docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 {PROGRAM} --config {pcie_tuning_runner.CONFIG}
TimeoutStartSec=120
# CAP_SYS_ADMIN stays: without it the kernel gives only the first 64 bytes of a configuration space. /sys stays writable for it.
{hardened(*NO_DEVICES, "CapabilityBoundingSet=CAP_SYS_ADMIN", "RestrictAddressFamilies=none")}

[Install]
WantedBy=multi-user.target
"""
BOOT = BootProgram(UNIT, UNIT_TEXT, pcie_tuning_runner.main, pcie_tuning_runner.CONFIG, PROGRAM)


@dataclass(frozen=True)
class PcieResult:
    """The settings before the module ran, and what it did (would do, in check mode).

    withheld: effect → why its changes were not made.
    """

    service: ServiceChange
    found: Survey
    withheld: dict[str, str] = field(default_factory=dict)

    @property
    def written(self) -> list[Setting]:
        """The settings that were changed, or would be in check mode."""
        return [setting for setting in self.found.different if setting.effect not in self.withheld]

    @property
    def changed(self) -> bool:
        return bool(self.service or self.written)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints."""
        settings = [setting_diff(each.subject, each.shown(each.old), each.shown(each.new)) for each in self.written]
        return [*self.service.diffs, *settings]

    def to_dict(self) -> dict[str, Any]:
        """Return the module's result."""
        return {
            "acs": self.found.acs,
            "functions": [setting.to_dict() for setting in self.found.settings],
            "payload_bytes": self.found.payload,
            "left": [{"subject": subject, "reason": reason} for subject, reason in self.found.left],
            "withheld": self.withheld,
        }


def ensure_pcie(
    request: PcieRequest, *, sys: SysRoot, port: ConfigPort, runner: Runner, check_mode: bool, kept: Sequence[str] = ()
) -> PcieResult:
    """Apply the settings, now and at boot; an empty request removes the service and leaves the settings as they are.

    kept: the effects that are requested but no longer allowed. Their live settings stay, and the service keeps those that it has.
    Nothing is written or installed while a GPU process, a job or a user's queue pairs use the host. If kernel
    lockdown forbids the writes, the service is removed. The service is installed last, so that a unit known to fail is never enabled.
    Raises ApplyError with everything that failed.
    """
    request = _with_installed(request, kept)
    found = survey(request, sys, port)
    # The file has the mode that auto selected: at boot, before the GPUs' driver is loaded, it could not be determined.
    lasting = PcieRequest(request.nics, request.mrrs_bytes, found.acs if request.acs == AUTO else request.acs, request.mrrs_nics)
    lockdown = read_lockdown(sys)
    if not lasting or (found.different and lockdown in LOCKED_DOWN):
        return _without_service(found, lockdown_words(lockdown) if lockdown in LOCKED_DOWN else "", runner, check_mode)
    denied = [setting for setting in found.different if setting.effect in kept]
    allowed = [setting for setting in found.settings if setting.effect not in {each.effect for each in denied}]
    withheld = {effect: f"{changes}pcie_{effect}_allowed is false" for effect, changes in _withheld(denied, "").items()}
    changes = [setting for setting in allowed if setting.differs]
    busy = in_use_now(sys, runner) if changes else ""
    if busy:
        return PcieResult(BOOT.unchanged, found, {**withheld, **_withheld(changes, busy)})
    if not check_mode:
        done = apply(allowed, port)
        if done.refused and lockdown is None:
            return _without_service(found, REFUSED, runner, check_mode)
        found.problems += [*(f"{setting.address}: {REFUSED}" for setting in done.refused), *done.failures]
    if found.problems:
        raise ApplyError("; ".join(found.problems))
    if denied:
        return PcieResult(BOOT.unchanged, found, withheld)
    service = BOOT.install(write_request(lasting), runner=runner, check_mode=check_mode)
    if not check_mode:
        run_service(service, runner=runner, restart=bool(service.files))
    return PcieResult(service, found)


def _with_installed(request: PcieRequest, kept: Sequence[str]) -> PcieRequest:
    """Return the request with only those kept effects that the installed file has: a boot applies no setting that is not allowed."""
    try:
        installed: PcieRequest | None = parse_request(Path(BOOT.config).read_text(encoding="utf-8")) if kept else None
    except (OSError, ParseError):
        installed = None
    if MRRS_EFFECT in kept and (installed is None or installed.mrrs_bytes is None):
        request = replace(request, mrrs_bytes=None, mrrs_nics=None)
    if ACS_EFFECT in kept and (installed is None or installed.acs != BARE_METAL):
        request = replace(request, acs=LEAVE)
    return request


def _without_service(found: Survey, reason: str, runner: Runner, check_mode: bool) -> PcieResult:
    removed = BOOT.remove(runner=runner, check_mode=check_mode)
    return PcieResult(removed, found, _withheld(found.different, reason) if reason else {})


def _withheld(settings: Sequence[Setting], reason: str) -> dict[str, str]:
    """Return effect → its changes that were not made, and why."""
    words = {effect: change_words([setting for setting in settings if setting.effect == effect]) for effect in EFFECTS}
    return {effect: f"{changes}; {reason}" for effect, changes in words.items() if changes}


def change_words(settings: Sequence[Setting]) -> str:
    """Return changes of one kind in words: "0000:3d:00.0 MRRS of 512 bytes → MRRS of 4096 bytes"."""
    return ", ".join(f"{each.words(each.old)} → {each.shown(each.new)}" for each in settings)


def service_files(request: PcieRequest) -> list[ManagedFile]:
    """Return the settings, the program and the unit; without requested settings none of them."""
    return BOOT.files(write_request(request) if request else None)
