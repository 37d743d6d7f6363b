# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find storage behind RDMA, which prevents the removal of the driver: mounts, NVMe controllers, iSCSI sessions.

Sources: Linux 5.4 to 6.12 (fs/proc_namespace.c, fs/nfs/super.c, fs/smb/client/cifsfs.c, drivers/nvme/host/sysfs.c,
drivers/infiniband/ulp/iser/iscsi_iser.c), Lustre 2.15 (the network identifiers of its LNet: "10.0.0.1@o2ib").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

MOUNTS = "/proc/mounts"
NVME = "/sys/class/nvme"
SESSIONS, CONNECTIONS, HOSTS = "/sys/class/iscsi_session", "/sys/class/iscsi_connection", "/sys/class/scsi_host"
_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")
_FIELDS = 6
_HOST = re.compile(r"/(host[0-9]{1,9})/")
_SESSION = re.compile(r"session([0-9]{1,9})")


@dataclass(frozen=True)
class Mount:
    """A line of /proc/mounts, without its escapes. source: "10.0.0.1:/export"; kind: "nfs4"."""

    source: str
    path: str
    kind: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class StorageUse:
    """kind: "mount", "nvme" or "iser"; what: for a message, "/data from 10.0.0.1:/export by NFS over RDMA"."""

    kind: str
    what: str


def parse_mounts(text: str) -> list[Mount]:
    """Parse proc(5), /proc/[pid]/mounts, in its order. Raises ParseError with a line without six fields."""
    return [_mount(line) for line in text.split("\n") if line]


def mount_protocol(mount: Mount) -> str | None:
    """Return the protocol of a mount over RDMA, "NFS"; None for another mount, or if it is unknown.

    A Lustre client may have TCP in addition to RDMA: one server with an address of RDMA is enough.
    """
    if mount.kind in ("nfs", "nfs4") and {"proto=rdma", "proto=rdma6"} & set(mount.options):
        return "NFS"
    if mount.kind in ("cifs", "smb3") and "rdma" in mount.options:
        return "SMB"
    return "Lustre" if mount.kind == "lustre" and "@o2ib" in mount.source else None


def read_storage_uses(sys: SysRoot) -> list[StorageUse] | None:
    """Return all storage in use; None without /proc/mounts, which means unknown. Mounts are those that our process sees.

    Raises ParseError for another form of it, and OSError for a file that cannot be read.
    """
    mounts = sys.value(MOUNTS, parse_mounts)
    if mounts is None:
        return None
    found = [(mount, mount_protocol(mount)) for mount in mounts]
    mounted = [StorageUse("mount", f"{mount.path} from {mount.source} by {how} over RDMA") for mount, how in found if how is not None]
    return [*mounted, *_nvme(sys), *_iser(sys)]


def _mount(line: str) -> Mount:
    # A source without a name leaves nothing before the first blank.
    fields = line.split(" ")
    if len(fields) != _FIELDS:
        raise ParseError(f"not a mount: {quoted(line)}, expected the form 'SOURCE PATH TYPE OPTIONS 0 0'")
    source, path, kind, options = (_ESCAPED.sub(lambda match: chr(int(match[1], 8)), field) for field in fields[:4])
    return Mount(source, path, kind, tuple(options.split(",")))


def _nvme(sys: SysRoot) -> Iterator[StorageUse]:
    for name in sys.list_dir(NVME):
        if sys.text(f"{NVME}/{name}/transport") == "rdma":
            # traddr=10.0.0.1,trsvcid=4420
            parts = dict(part.partition("=")[::2] for part in (sys.text(f"{NVME}/{name}/address") or "").split(","))
            yield StorageUse("nvme", _remote(name, parts.get("traddr"), "NVMe over RDMA", sys.text(f"{NVME}/{name}/subsysnqn")))


def _iser(sys: SysRoot) -> Iterator[StorageUse]:
    """Yield the sessions whose SCSI host is of the driver ib_iser: a session itself does not show its transport."""
    for name in sys.list_dir(SESSIONS):
        host = _HOST.search(sys.resolve(f"{SESSIONS}/{name}") or "")
        if host is not None and sys.text(f"{HOSTS}/{host[1]}/proc_name") == "iscsi_iser":
            yield StorageUse("iser", _remote(name, _portal(sys, name), "iSER", sys.text(f"{SESSIONS}/{name}/targetname")))


def _portal(sys: SysRoot, session: str) -> str | None:
    """Return the address of a session's target: that of its first connection, whose name is the session's number and its own."""
    number = _SESSION.fullmatch(session)
    ours = [name for name in sys.list_dir(CONNECTIONS) if number is not None and name.startswith(f"connection{number[1]}:")]
    return sys.text(f"{CONNECTIONS}/{ours[0]}/persistent_address") if ours else None


def _remote(name: str, address: str | None, how: str, target: str | None) -> str:
    return name + (f" from {address}" if address else "") + f" by {how}" + (f" ({target})" if target else "")
