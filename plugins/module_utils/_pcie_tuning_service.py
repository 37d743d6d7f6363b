# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCIe settings as they shall be, now and at boot: one file, applied by one unit and by us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils import _pcie_tuning_runner
from ansible_collections.rdma.cluster.plugins.module_utils._boot_service import (
    PROGRAMS,
    ServiceChange,
    install_service,
    remove_service,
    run_service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._files import ManagedFile, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._pci_port import ConfigPort
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_acs import AUTO
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import Survey, apply, survey
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_wish import Wish, write_wish
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import UNITS

UNIT = "rdma-pcie.service"
UNIT_FILE = f"{UNITS}/{UNIT}"
PROGRAM = f"{PROGRAMS}/pcie_tuning.pyz"
UNIT_TEXT = f"""\
# Managed by rdma.cluster: the PCIe settings of {_pcie_tuning_runner.CONFIG}.
[Unit]
Description=PCIe settings of the RDMA NICs
After=systemd-modules-load.service systemd-udevd.service
# Before whatever starts jobs.
Before=network-online.target slurmd.service kubelet.service containerd.service docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 {PROGRAM} --config {_pcie_tuning_runner.CONFIG}
TimeoutStartSec=120

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class PcieResult:
    """What was found, and done (would be, in check mode). found: as it was before."""

    service: ServiceChange
    found: Survey

    @property
    def changed(self) -> bool:
        return bool(self.service or self.found.different)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints."""
        settings = [setting_diff(each.subject, each.shown(each.old), each.shown(each.new)) for each in self.found.different]
        return [*self.service.diffs, *settings]

    def to_dict(self) -> dict[str, Any]:
        """What the module returns."""
        return {
            "acs": self.found.acs,
            "functions": [setting.to_dict() for setting in self.found.settings],
            "payload_bytes": self.found.payload,
            "left": [{"subject": subject, "reason": reason} for subject, reason in self.found.left],
        }


def ensure_pcie(wish: Wish, *, sys: SysRoot, port: ConfigPort, runner: Runner, check_mode: bool) -> PcieResult:
    """Make the settings hold, now and at boot; a wish for nothing removes the service and leaves the settings as they are.

    All that can be done is done before the first failure is raised. Raises ApplyError with everything that is not as it shall be.
    """
    found = survey(wish, sys, port)
    # The file says what auto was found to be: at boot, before the GPUs' driver, nothing could tell.
    lasting = Wish(wish.nics, wish.mrrs_bytes, found.acs if wish.acs == AUTO else wish.acs)
    files = service_files(lasting)
    if not lasting:
        return PcieResult(remove_service(UNIT, [file.path for file in files], runner=runner, check_mode=check_mode), found)
    service = install_service(UNIT, files, runner=runner, check_mode=check_mode)
    failures = [*found.problems, *([] if check_mode else apply(found.settings, port))]
    if failures:
        raise ApplyError("; ".join(failures))
    if not check_mode:
        run_service(service, runner=runner, restart=bool(service.files))
    return PcieResult(service, found)


def service_files(wish: Wish) -> list[ManagedFile]:
    """The unit, its program and its file; where nothing is wished, none of them shall be there."""
    if not wish:
        return [ManagedFile(path, None) for path in (_pcie_tuning_runner.CONFIG, PROGRAM, UNIT_FILE)]
    return [
        ManagedFile(_pcie_tuning_runner.CONFIG, write_wish(wish)),
        ManagedFile(PROGRAM, host_program("_pcie_tuning_runner"), 0o755),
        ManagedFile(UNIT_FILE, UNIT_TEXT),
    ]
