# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The remote services that a host is configured to use for its management: time servers, syslog servers, NFS servers.

Sources: chrony.conf(5), timesyncd.conf(5), rsyslog.conf(5) with the module omfwd, nfs(5) and proc(5) for mounts.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

NTP, SYSLOG, NFS, CONTROL = "NTP server", "syslog server", "NFS server", "control node"
CHRONY_FILES = ("/etc/chrony.conf", "/etc/chrony/chrony.conf")
CHRONY_FOLDERS = ("/etc/chrony/conf.d", "/etc/chrony/sources.d", "/etc/chrony.d", "/run/chrony-dhcp")
TIMESYNCD = "/etc/systemd/timesyncd.conf"
TIMESYNCD_FOLDERS = ("/usr/lib/systemd/timesyncd.conf.d", "/run/systemd/timesyncd.conf.d", "/etc/systemd/timesyncd.conf.d")
RSYSLOG, RSYSLOG_FOLDER = "/etc/rsyslog.conf", "/etc/rsyslog.d"
MOUNTS = "/proc/mounts"
#: A pool, server or peer of chrony.
_CHRONY = re.compile(r"^[ \t]*(?:server|pool|peer)[ \t]+(\S+)", re.MULTILINE | re.IGNORECASE)
_TIMESYNCD = re.compile(r"^[ \t]*(?:NTP|FallbackNTP)[ \t]*=[ \t]*(.*)$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
#: "*.* @10.0.0.1:514", "*.* @@(o)[2001:db8::1]:514;template": one @ is UDP, two are TCP.
_FORWARD = re.compile(r"^[ \t]*[^\s$]\S*[ \t]+@@?(?:\([^)]*\))?(?:\[([^\]\s]+)\]|([^\s:;\[]+))", re.MULTILINE)
_ACTION = re.compile(r"\baction[ \t]*\(([^()]*)\)", re.IGNORECASE)
_OMFWD = re.compile(r"\btype[ \t]*=[ \t]*[\"']omfwd[\"']", re.IGNORECASE)
_TARGET = re.compile(r"\btarget[ \t]*=[ \t]*(?:\[[ \t]*)?[\"']([^\"']+)[\"']", re.IGNORECASE)
_NFS_TYPES = ("nfs", "nfs4")
_ADDR = re.compile(r"(?:^|,)addr=([0-9A-Fa-f:.]+(?:%[^\s,]+)?)")


@dataclass(frozen=True)
class Remote:
    """A remote service. kind: NTP, SYSLOG, NFS or CONTROL; address: as configured, so it may be a name; where: the file that names it."""

    kind: str
    address: str
    where: str


def is_address(text: str) -> bool:
    """Return whether a text is an address of IPv4 or IPv6, with or without a zone ("fe80::1%eth0")."""
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def parse_chrony_servers(text: str) -> list[str]:
    """Return the servers, pools and peers in a file of chrony, names and addresses."""
    return _CHRONY.findall(text)


def parse_timesyncd_servers(text: str) -> list[str]:
    """Return the servers in a file of systemd-timesyncd, names and addresses; fallback servers too."""
    return [word for line in _TIMESYNCD.findall(text) for word in line.split()]


def parse_rsyslog_targets(text: str) -> list[str]:
    """Return the hosts to which a file of rsyslog forwards, names and addresses."""
    text = _COMMENT.sub("", text)
    legacy = [six or other for six, other in _FORWARD.findall(text)]
    return [*legacy, *(target for body in _ACTION.findall(text) if _OMFWD.search(body) for target in _TARGET.findall(body))]


def parse_nfs_servers(text: str) -> list[str]:
    """Return the address of the server of each NFS mount in /proc/mounts; each once."""
    found = []
    for line in text.splitlines():
        words = line.split()
        match = _ADDR.search(words[3]) if len(words) > 3 and words[2] in _NFS_TYPES else None
        if match is not None:
            found.append(match[1])
    return list(dict.fromkeys(found))


def read_remotes(sys: SysRoot) -> list[Remote]:
    """Return the remote services of a host; those of systemd-timesyncd only if chrony has no file. Each once."""
    chrony = [(path, parse_chrony_servers(text)) for path, text in _texts(sys, CHRONY_FILES, CHRONY_FOLDERS, (".conf", ".sources"))]
    if not chrony:
        chrony = [(path, parse_timesyncd_servers(text)) for path, text in _texts(sys, (TIMESYNCD,), TIMESYNCD_FOLDERS, (".conf",))]
    syslog = [(path, parse_rsyslog_targets(text)) for path, text in _texts(sys, (RSYSLOG,), (RSYSLOG_FOLDER,), (".conf",))]
    mounts = [(MOUNTS, parse_nfs_servers(sys.read(MOUNTS) or ""))]
    found = [
        Remote(kind, address, path)
        for kind, files in ((NTP, chrony), (SYSLOG, syslog), (NFS, mounts))
        for path, addresses in files
        for address in addresses
    ]
    return list({(each.kind, each.address): each for each in reversed(found)}.values())[::-1]


def _texts(sys: SysRoot, files: Sequence[str], folders: Sequence[str], ends: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield path and text of each existing file, and of each file in the folders with one of these ends."""
    below = [f"{folder}/{name}" for folder in folders for name in sys.list_dir(folder) if name.endswith(ends)]
    for path in (*files, *below):
        text = sys.read(path)
        if text is not None:
            yield path, text
