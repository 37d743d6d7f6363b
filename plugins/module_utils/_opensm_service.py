# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a distribution keeps opensm, and the files that make its own service run ours: one a plane.

debian: opensm.service starts opensm@GUID.service for each port in /etc/default/opensm (opensm 3.3.23-2; ALL as installed, and nothing
for NONE). It is wanted by network-online.target alone, which on a plain Debian nobody wants: so multi-user.target is made to want it.
rhel: opensm.service; ofed: opensmd.service (NVIDIA's): one, so one plane a host. Neither of these two was seen by us on a machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._files import ManagedFile

FLAVOURS = ("debian", "rhel", "ofed")
#: The unit that runs opensm on a port, and the one that is enabled.
UNITS = {"debian": "opensm@{guid}.service", "rhel": "opensm.service", "ofed": "opensmd.service"}
ENABLED = {"debian": "opensm.service", "rhel": "opensm.service", "ofed": "opensmd.service"}
PORTS_FILE = "/etc/default/opensm"
FOLDER = "/etc/rdma-cluster"
UNIT_FOLDER = "/etc/systemd/system"
DROP_IN = "rdma-cluster.conf"
AT_BOOT = "multi-user.target.d/rdma-cluster-opensm.conf"
SHARP_UNIT = "sharp_am.service"


@dataclass(frozen=True)
class Instance:
    """opensm of one plane on this host. guid: of its port, "0x" and 16 digits; device and number: the port in sysfs.

    priority: 0 to 15, the highest is the master; config, partitions: the texts of its files.
    """

    plane: str
    guid: str
    device: str
    number: str
    priority: int
    config: str
    partitions: str

    def unit(self, flavour: str) -> str:
        return UNITS[flavour].format(guid=self.guid)

    @property
    def config_path(self) -> str:
        return config_path(self.plane)

    @property
    def partitions_path(self) -> str:
        return partitions_path(self.plane)


def config_path(plane: str) -> str:
    return f"{FOLDER}/opensm-{plane}.conf"


def partitions_path(plane: str) -> str:
    return f"{FOLDER}/partitions-{plane}.conf"


def drop_in_path(unit: str) -> str:
    return f"{UNIT_FOLDER}/{unit}.d/{DROP_IN}"


def drop_in(instance: Instance) -> str:
    """What our service is beside the distribution's: our file, a reload, and a new start after a crash, which Debian's unit lacks."""
    command = (
        f"/usr/sbin/opensm --config {instance.config_path} --guid {instance.guid} --priority {instance.priority} "
        f"--log_file /var/log/opensm.{instance.guid}.log"
    )
    lines = [
        f"# Managed by rdma.cluster: the subnet manager of plane {instance.plane}.",
        "[Service]",
        "Type=simple",
        "PIDFile=",
        "ExecStart=",
        f"ExecStart={command}",
        "ExecReload=",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "ExecStop=",
        "Restart=on-failure",
        "RestartSec=5",
    ]
    return "\n".join(lines) + "\n"


def at_boot_path() -> str:
    return f"{UNIT_FOLDER}/{AT_BOOT}"


def at_boot(flavour: str) -> ManagedFile:
    """Without it the service is enabled, and not started at boot where nobody asks for network-online.target."""
    return ManagedFile(at_boot_path(), f"# Managed by rdma.cluster: subnet managers run from boot on.\n[Unit]\nWants={ENABLED[flavour]}\n")


def ports_file(instances: Sequence[Instance]) -> ManagedFile:
    """/etc/default/opensm, which is there before the package is: installed without it, opensm starts on every port of the host."""
    ports = " ".join(instance.guid for instance in instances) or "NONE"
    return ManagedFile(PORTS_FILE, f'# Managed by rdma.cluster: the ports that opensm runs on.\nPORTS="{ports}"\n')


def service_files(instances: Sequence[Instance], flavour: str) -> list[ManagedFile]:
    """The files of all instances. Only root reads opensm.conf, which has keys."""
    files = [] if flavour != "debian" else [ports_file(instances)]
    files += [at_boot(flavour)] if instances else []
    for instance in instances:
        files += [
            ManagedFile(instance.config_path, instance.config, 0o600),
            ManagedFile(instance.partitions_path, instance.partitions),
            ManagedFile(drop_in_path(instance.unit(flavour)), drop_in(instance)),
        ]
    return files


def stale(paths: Sequence[str], wanted: Sequence[ManagedFile]) -> list[ManagedFile]:
    """Of the paths of ours that are there, those that are to go."""
    kept = {file.path for file in wanted}
    return [ManagedFile(path, None) for path in sorted(paths) if path not in kept]
