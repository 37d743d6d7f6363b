# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which managers claim a network interface: two of them undo each other's settings. netplan only writes the files of two of them.

Sources: the state files of systemd-networkd 252 to 256 (networkd-state-file.c), of NetworkManager 1.36 to 1.54 (nm-config.c), of
ifupdown 0.8, and the pid files that ifupdown and RHEL's scripts give dhclient and that dhcpcd 9 and 10 keep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import is_running

NETWORKD, NETWORK_MANAGER, IFUPDOWN, DHCLIENT, DHCPCD = "systemd-networkd", "NetworkManager", "ifupdown", "dhclient", "dhcpcd"
UNMANAGED = "unmanaged"
#: The managers that can apply our settings at boot, as in rdma_host.network.backend.
NETWORKD_BACKEND, NM_BACKEND, NETPLAN = BACKENDS = ("networkd", "networkmanager", "netplan")
#: netplan's program, and the folders of its files.
NETPLAN_PROGRAM, NETPLAN_FOLDERS = "/usr/sbin/netplan", ("/lib/netplan", "/etc/netplan", "/run/netplan")
_RENDERER_NM = re.compile(r"^[ \t]*renderer:[ \t]*[\"']?NetworkManager\b", re.MULTILINE)
_OURS, _OUR_NETPLAN = "60-rdma-", "90-rdma-"
LINKS = "/run/systemd/netif/links"
_PID_FILES = {
    DHCLIENT: ("/run/dhclient.{}.pid", "/run/dhclient-{}.pid", "/run/dhclient6.{}.pid", "/run/dhclient6-{}.pid"),
    DHCPCD: ("/run/dhcpcd/{}.pid", "/run/dhcpcd/{}-4.pid", "/run/dhcpcd/{}-6.pid", "/run/dhcpcd-{}.pid"),
}
_PID = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True)
class NetworkdLink:
    """How systemd-networkd handles an interface. state: "configured", "configuring", "unmanaged", …; file: its .network file."""

    state: str
    file: str | None

    @property
    def is_managed(self) -> bool:
        return self.state != UNMANAGED and self.file is not None


def parse_networkd_link(text: str) -> NetworkdLink:
    """Parse /run/systemd/netif/links/INDEX."""
    values = _assignments(text.split("\n"))
    if "ADMIN_STATE" not in values:
        raise ParseError(f"not the state of a link of systemd-networkd: {quoted(text)}, expected a line 'ADMIN_STATE=configured'")
    return NetworkdLink(values["ADMIN_STATE"], values.get("NETWORK_FILE") or None)


def read_networkd_link(sys: SysRoot, name: str) -> NetworkdLink | None:
    """Return the same for an interface by its name, None if systemd-networkd does not know it."""
    ifindex = sys.text(f"/sys/class/net/{name}/ifindex")
    return sys.value(f"{LINKS}/{ifindex}", parse_networkd_link) if ifindex else None


def parse_nm_device(text: str) -> bool:
    """Return whether /run/NetworkManager/devices/INDEX has managed=true in [device].

    The key is missing as long as nothing is decided for an interface, and the file may then be empty.
    """
    section, device = "", []
    for line in map(str.strip, text.split("\n")):
        if line.startswith("["):
            section = line
        elif section == "[device]":
            device.append(line)
        elif line and not section and not line.startswith("#"):
            raise ParseError(f"not the state of a device of NetworkManager: {quoted(line)}, expected a section '[device]'")
    return _assignments(device).get("managed") in ("true", "1")


def parse_ifstate(text: str) -> list[str]:
    """Return the interfaces that ifup has brought up, from the lines "eth1=eth1" of /run/network/ifstate, without the logical names."""
    return list(_assignments(text.split("\n")))


def read_managers(sys: SysRoot, name: str, ifindex: int | None) -> list[str] | None:
    """Return the managers that claim an interface; None if unknown, because the index by which daemons name it is missing.

    The files of a stopped daemon do not count, because it leaves them behind.
    """
    claims = {
        NETWORKD: _claims_by_index(sys, NETWORKD, LINKS, ifindex),
        NETWORK_MANAGER: _claims_by_index(sys, NETWORK_MANAGER, "/run/NetworkManager/devices", ifindex),
        IFUPDOWN: sys.text(f"/run/network/ifstate.{name}") is not None or name in parse_ifstate(sys.read("/run/network/ifstate") or ""),
        **{client: any(_runs(sys, path.format(name), client) for path in paths) for client, paths in _PID_FILES.items()},
    }
    found = [manager for manager, is_claimed in claims.items() if is_claimed]
    return found if found or ifindex is not None else None


def read_backend(sys: SysRoot, management: str | None) -> str | None:
    """Return the manager of the host's network that configures the rails; None for a captured tree.

    The manager that has our files keeps them, so that one that has just stopped does not lose the rails. Otherwise the manager of the
    interface of our own SSH session counts (management); without a session, NetworkManager counts if it runs alone. Files of netplan that
    leave everything to NetworkManager make NetworkManager the manager. ifupdown and others keep their interfaces, and systemd-networkd gets
    the rails.
    """
    runs = {name: is_running(sys, f"{name}.service") for name in (NETWORKD, NETWORK_MANAGER)}
    if None in runs.values():
        return None
    own = _with_our_files(sys)
    if len(own) == 1:
        return own[0]
    ifindex = sys.text(f"/sys/class/net/{management}/ifindex") if management else None
    index = int(ifindex) if ifindex and ifindex.isdecimal() else None
    by_nm = not runs[NETWORKD] if index is None else _claims_by_index(sys, NETWORK_MANAGER, "/run/NetworkManager/devices", index)
    if runs[NETWORK_MANAGER] and by_nm:
        return NM_BACKEND
    return NETPLAN if runs[NETWORKD] and _has_netplan(sys) else NETWORKD_BACKEND


def _with_our_files(sys: SysRoot) -> list[str]:
    """Return the managers that have files of ours; files of ours by which systemd-networkd leaves a rail alone do not count."""
    if any(name.startswith(_OUR_NETPLAN) for name in sys.list_dir("/etc/netplan")):
        return [NETPLAN]
    profiles = any(name.startswith(_OURS) for name in sys.list_dir("/etc/NetworkManager/system-connections"))
    folder = "/etc/systemd/network"
    ours = [sys.read(f"{folder}/{name}") or "" for name in sys.list_dir(folder) if name.startswith(_OURS)]
    by_networkd = any("Unmanaged=yes" not in text for text in ours)
    return [name for name, has in ((NM_BACKEND, profiles), (NETWORKD_BACKEND, by_networkd)) if has]


def _has_netplan(sys: SysRoot) -> bool:
    """Return whether netplan is installed and has files of others that it renders for systemd-networkd."""
    names = [(folder, name) for folder in NETPLAN_FOLDERS for name in sys.list_dir(folder) if name.endswith(".yaml")]
    texts = [sys.read(f"{folder}/{name}") or "" for folder, name in names if not name.startswith(_OUR_NETPLAN)]
    return sys.exists(NETPLAN_PROGRAM) and any("network:" in text for text in texts) and not any(map(_RENDERER_NM.search, texts))


def _claims_by_index(sys: SysRoot, manager: str, folder: str, ifindex: int | None) -> bool:
    if ifindex is None:
        return False
    if manager == NETWORKD:
        link = sys.value(f"{folder}/{ifindex}", parse_networkd_link)
        claims = link is not None and link.is_managed
    else:
        claims = bool(sys.value(f"{folder}/{ifindex}", parse_nm_device))
    return claims and is_running(sys, f"{manager}.service") is not False


def _runs(sys: SysRoot, pid_file: str, command: str) -> bool:
    """Return whether the process named in a pid file exists and is that command; in a tree without processes the file is enough."""
    pid = sys.text(pid_file)
    if pid is None or _PID.fullmatch(pid) is None:
        return False
    return not sys.exists("/proc/1") or sys.text(f"/proc/{pid}/comm") == command


def _assignments(lines: list[str]) -> dict[str, str]:
    """Return the lines "KEY=value", without comments ("#")."""
    pairs = [line.strip().partition("=") for line in lines]
    return {key.strip(): value.strip() for key, equals, value in pairs if equals and not key.startswith("#")}
