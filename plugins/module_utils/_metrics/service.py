# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collector's files, and its timer."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import (
    PROGRAMS,
    ServiceChange,
    hardened,
    install_service,
    run_service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UNITS
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.config import CONFIG, Config
from ansible_collections.rdma.cluster.plugins.module_utils._metrics.main import main as collector

UNIT, TIMER = "rdma-exporter.service", "rdma-exporter.timer"
PROGRAM = f"{PROGRAMS}/exporter.pyz"
#: It reads, and writes one file. CAP_NET_ADMIN is for modules (ETHTOOL_GMODULEINFO), CAP_SYS_ADMIN for debugfs of congestion control.
#: Without MemoryDenyWriteExecute: ctypes of some Pythons cannot be imported with it.
_SANDBOX = (
    *("ProtectHome=yes", "PrivateDevices=yes", "ProtectClock=yes", "IPAddressDeny=any"),
    "CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_ADMIN",
    "RestrictAddressFamilies=AF_NETLINK AF_UNIX AF_INET AF_INET6",
)
#: Makes /sys read-only. mstlink needs to write there, to the PCI configuration space of a card.
_READ_ONLY = "ProtectKernelTunables=yes"
#: A host whose CPUs are all busy starts Python slowly. The unit has no lower priority, because its metrics are needed there most.
_START_SECONDS = 150.0
_UNIT_TEXT = """\
# Managed by rdma.cluster: writes the RDMA metrics of this host for node_exporter.
[Unit]
Description=RDMA metrics for node_exporter
ConditionPathIsDirectory={folder}

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 {program}
TimeoutStartSec=120
MemoryMax=256M
ReadWritePaths={folder}
{hardening}
"""
_TIMER_TEXT = """\
# Managed by rdma.cluster: starts rdma-exporter.service.
[Unit]
Description=RDMA metrics for node_exporter

[Timer]
OnBootSec=30
OnUnitActiveSec={seconds}
AccuracySec=1
RandomizedDelaySec={spread}

[Install]
WantedBy=timers.target
"""


def exporter_files(config: Config, interval_seconds: int) -> Sequence[ManagedFile]:
    """Return the files: settings, program, service and timer. The hosts of a fleet run it at different times."""
    hardening = hardened(*_SANDBOX) if config.infiniband_optics else hardened(*_SANDBOX, _READ_ONLY)
    return (
        ManagedFile(CONFIG, config.to_text()),
        ManagedFile(PROGRAM, program_of(collector), 0o755),
        ManagedFile(f"{UNITS}/{UNIT}", _UNIT_TEXT.format(folder=config.folder, program=PROGRAM, hardening=hardening)),
        ManagedFile(f"{UNITS}/{TIMER}", _TIMER_TEXT.format(seconds=interval_seconds, spread=min(10, interval_seconds // 6))),
    )


def ensure_exporter(config: Config, interval_seconds: int, *, runner: Runner, check_mode: bool) -> ServiceChange:
    """Install the collector, enable and start its timer, and run it once after a change. Raises ApplyError."""
    change = install_service(TIMER, exporter_files(config, interval_seconds), runner=runner, check_mode=check_mode)
    if change and not check_mode:
        paths = {file.path for file in change.files}
        if f"{UNITS}/{UNIT}" in paths:
            run_checked(runner, "systemctl", "daemon-reload")
        run_service(change, runner=runner, restart=f"{UNITS}/{TIMER}" in paths)
        run_checked(runner, "systemctl", "start", UNIT, timeout_seconds=_START_SECONDS)
    return change
