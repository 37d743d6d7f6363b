# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a distribution keeps opensm, and the files that make its own service run our instances: one per plane.

debian: opensm.service starts opensm@GUID.service for each port in /etc/default/opensm (opensm 3.3.23-2; ALL as installed, and nothing
for NONE). That file belongs to the host's admin: ours contains NONE and exists only if this role installed the package. multi-user.target
wants our instances of opensm@.service directly.
rhel: opensm.service; ofed: opensmd.service (NVIDIA's): one unit, so one plane per host. Neither was tested by us on a machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import keys_path

FLAVORS = ("debian", "rhel", "ofed")
#: The unit that runs opensm on a port.
UNITS = {"debian": "opensm@{guid}.service", "rhel": "opensm.service", "ofed": "opensmd.service"}
#: The units that may run an opensm; Debian's opensm.service runs none itself.
PATTERNS = {
    "debian": ("opensm@*.service", "opensmd.service"),
    "rhel": ("opensm@*.service", "opensm.service", "opensmd.service"),
    "ofed": ("opensm@*.service", "opensm.service", "opensmd.service"),
}
PORTS_FILE = "/etc/default/opensm"
FOLDER = "/etc/rdma-cluster"
UNIT_FOLDER = "/etc/systemd/system"
DROP_IN = "rdma-cluster.conf"
MARK = "# Managed by rdma.cluster:"
_PLANE = re.compile(rf"{MARK} the subnet manager of plane (\S+)\.")
AT_BOOT = "multi-user.target.d/rdma-cluster-opensm.conf"
SHARP_UNIT = "sharp_am.service"


@dataclass(frozen=True)
class Instance:
    """opensm of one plane on this host. guid: of its port, "0x" and 16 digits; device and number: the port in sysfs.

    priority: 0 to 15, the highest is the master; config, partitions: the texts of its files; diags: that of the tools' file of keys, None
    for none. managers: the GUIDs of the ports of the hosts that the intent names → the host; lids: their LIDs as text; unread: those of
    these hosts whose ports are unknown; unconfigured: those without our files for this plane, so that an opensm there is not ours.
    default_given: whether the intent sets the membership of the default partition.
    """

    plane: str
    guid: str
    device: str
    number: str
    priority: int
    config: str
    partitions: str
    diags: str | None = None
    managers: Mapping[str, str] = field(default_factory=dict)
    lids: Sequence[str] = ()
    unread: Sequence[str] = ()
    unconfigured: Sequence[str] = ()
    default_given: bool = True

    def unit(self, flavor: str) -> str:
        return UNITS[flavor].format(guid=self.guid)

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


def sharp_mark() -> ManagedFile:
    """Return a mark whose name is that of our files for opensm, so that a host with nothing else left is still checked."""
    return ManagedFile(f"{FOLDER}/opensm-sharp_am", f"{MARK} this role enabled {SHARP_UNIT}, which was not enabled before.\n")


def drop_in_path(unit: str) -> str:
    return f"{UNIT_FOLDER}/{unit}.d/{DROP_IN}"


def drop_in(instance: Instance) -> str:
    """Return our changes to the distribution's service: our file, a reload, and a restart after a crash, which Debian's unit lacks."""
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


def plane_of(drop_in_text: str | None) -> str | None:
    """Return the plane of a unit's drop-in, None for one that is not ours."""
    match = _PLANE.search(drop_in_text or "")
    return match.group(1) if match is not None else None


def at_boot(units: Sequence[str]) -> ManagedFile:
    """Return the file that starts the units at boot even if nothing requires network-online.target."""
    return ManagedFile(at_boot_path(), f"{MARK} subnet managers run from boot on.\n[Unit]\nWants={' '.join(units)}\n")


def ports_file() -> ManagedFile:
    """Return /etc/default/opensm, written before the package is installed: without it, opensm starts on every port of the host."""
    return ManagedFile(PORTS_FILE, f'{MARK} the package starts no opensm by itself.\nPORTS="NONE"\n')


def keys_file(instance: Instance) -> ManagedFile:
    return ManagedFile(keys_path(instance.plane), instance.diags, 0o600)


def instance_files(instance: Instance, flavor: str) -> list[ManagedFile]:
    """Return the files of one instance. Only root can read those with keys."""
    return [
        ManagedFile(instance.config_path, instance.config, 0o600),
        ManagedFile(instance.partitions_path, instance.partitions),
        keys_file(instance),
        ManagedFile(drop_in_path(instance.unit(flavor)), drop_in(instance)),
    ]
