# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The units of the recorder: a timer that starts it at boot, once a day, and after each end, and the service itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import (
    NO_DEVICES,
    PROGRAMS,
    ServiceChange,
    hardened,
    install_service,
    remove_service,
    run_service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UNITS
from ansible_collections.rdma.cluster.plugins.module_utils._recorder import program
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import FOLDER

TIMER, SERVICE = "rdma-recorder.timer", "rdma-recorder.service"
PROGRAM = f"{PROGRAMS}/recorder.pyz"
TIMER_TEXT = """\
# Managed by rdma.cluster: starts the recorder at boot, and again whenever it has ended.
[Unit]
Description=Recorder of changes to RDMA devices and links

[Timer]
OnActiveSec=1s
OnUnitInactiveSec=3s
AccuracySec=100ms

[Install]
WantedBy=timers.target
"""
SERVICE_TEXT = f"""\
# Managed by rdma.cluster: records what changes on this host, in {FOLDER}. It ends by itself; its timer starts it again.
[Unit]
Description=Recorder of changes to RDMA devices and links

[Service]
Type=exec
ExecStart=/usr/bin/python3 {PROGRAM} --config {program.CONFIG}
TimeoutStopSec=10
Nice=5
CPUQuota=5%
MemoryMax=128M
StateDirectory=rdma-cluster/recorder
StateDirectoryMode=0700
# It reads /sys and /proc, receives messages of the kernel on links, and asks drivers for counters (SIOCETHTOOL needs a socket).
{hardened(*NO_DEVICES, "ProtectKernelTunables=yes", "CapabilityBoundingSet=", "RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET")}
"""
_PATHS = (program.CONFIG, PROGRAM, f"{UNITS}/{SERVICE}", f"{UNITS}/{TIMER}")


def recorder_files(interfaces: Sequence[str], size_bytes: int) -> list[ManagedFile]:
    """Return the settings, the program and both units. interfaces: recorded although no device is below them."""
    settings = json.dumps({"interfaces": sorted(interfaces), "size_bytes": size_bytes}, sort_keys=True) + "\n"
    config, file, service, timer = _PATHS
    return [
        ManagedFile(config, settings),
        ManagedFile(file, program_of(program.main), 0o755),
        ManagedFile(service, SERVICE_TEXT),
        ManagedFile(timer, TIMER_TEXT),
    ]


def removed_files() -> list[ManagedFile]:
    """Return the files of the recorder as they are planned without it."""
    return [ManagedFile(path, None) for path in _PATHS]


def ensure_recorder(files: Sequence[ManagedFile], *, runner: Runner, check_mode: bool) -> ServiceChange:
    """Install and start the recorder. A running one is restarted if a file has changed. Raises ApplyError and OSError."""
    change = install_service(TIMER, files, runner=runner, check_mode=check_mode)
    if check_mode or not change:
        return change
    if change.files:
        run_checked(runner, "systemctl", "daemon-reload")
    run_service(change, runner=runner)
    if change.files and not change.started:
        run_checked(runner, "systemctl", "restart", SERVICE)
    return change


def remove_recorder(*, runner: Runner, check_mode: bool) -> ServiceChange:
    """Stop the recorder and remove its files. Its record stays."""
    change = remove_service(TIMER, _PATHS, runner=runner, check_mode=check_mode)
    if change and not check_mode:
        run_checked(runner, "systemctl", "stop", SERVICE)
    return change
