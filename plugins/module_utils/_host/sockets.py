# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The TCP sockets of a host (/proc/net/tcp and tcp6, proc(5)): those on which management daemons listen with their owners, and connections.

The owner of a socket is searched only among processes with a known name, and only if a socket of any program is bound to an address.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.load import COMM_CHARS, read_processes

IPV4_LISTENERS, IPV6_LISTENERS = "/proc/net/tcp", "/proc/net/tcp6"
IPV6_ADDRESSES = "/proc/net/if_inet6"
#: Daemons by which a cluster is managed and watched; the kernel truncates a name to 15 characters.
PROGRAMS = frozenset(
    name[:COMM_CHARS]
    for name in (
        *("sshd", "slurmd", "slurmctld", "slurmdbd", "kubelet", "k3s-server", "k3s-agent", "pbs_mom", "lim", "sge_execd"),
        *("node_exporter", "prometheus-node-exporter", "dcgm-exporter", "nv-hostengine", "telegraf", "zabbix_agentd", "zabbix_agent2"),
        *("nrpe", "rsyslogd", "snmpd"),
    )
)
_TCP_ESTABLISHED, _TCP_LISTEN = "01", "0A"
_INODE = 9
_SOCKET = re.compile(r"socket:\[([0-9]{1,20})\]")


@dataclass(frozen=True)
class Socket:
    """A listening socket. inode: None if the table does not have it."""

    address: str
    port: int
    inode: int | None = None


@dataclass(frozen=True)
class Listener:
    """A socket of a daemon of PROGRAMS. netdev: the interface that has the address; None for all addresses and unknown ones."""

    program: str
    port: int
    address: str
    netdev: str | None = None


def parse_sockets(text: str) -> Iterator[Socket]:
    """Yield each listening socket in /proc/net/tcp or tcp6. Raises ParseError for another form."""
    for words in _rows(text, _TCP_LISTEN):
        try:
            inode = int(words[_INODE]) if len(words) > _INODE else None
            yield Socket(*_end(words[1]), inode)
        except (ValueError, struct.error) as exc:
            raise ParseError(f"not a socket: {quoted(' '.join(words))}") from exc


def parse_established(text: str) -> list[tuple[str, str]]:
    """Parse /proc/net/tcp or tcp6: the local and the remote address of each established connection. Raises ParseError."""
    found = []
    for words in _rows(text, _TCP_ESTABLISHED):
        try:
            found.append((_end(words[1])[0], _end(words[2])[0]))
        except (ValueError, struct.error) as exc:
            raise ParseError(f"not a socket: {quoted(' '.join(words))}") from exc
    return found


def _rows(text: str, state: str) -> Iterator[list[str]]:
    """Yield the words of each socket in a state. Raises ParseError."""
    head, *lines = text.splitlines() or [""]
    if "local_address" not in head:
        raise ParseError(f"not a table of sockets: {quoted(head)}")
    for line in lines:
        words = line.split()
        if len(words) <= 3:
            raise ParseError(f"not a socket: {quoted(line)}")
        if words[3] == state:
            yield words


def _end(text: str) -> tuple[str, int]:
    """Return the address and the port of "0100007F:0016": words of 32 bits in the order of the machine's bytes."""
    address, _colon, number = text.partition(":")
    packed = b"".join(struct.pack("=I", int(address[at : at + 8], 16)) for at in range(0, len(address), 8))
    found = ipaddress.ip_address(packed)
    return str(getattr(found, "ipv4_mapped", None) or found), int(number, 16)


def parse_ipv6_addresses(text: str) -> dict[str, str]:
    """Parse /proc/net/if_inet6 (net/ipv6/addrconf.c): address → its interface. Raises ParseError for another form.

    Link-local addresses are left out: several interfaces may have the same one.
    """
    found = {}
    for line in text.splitlines():
        words = line.split()
        try:
            address = ipaddress.IPv6Address(bytes.fromhex(words[0]))
            if not address.is_link_local:
                found[str(address)] = words[5]
        except (ValueError, IndexError) as exc:
            raise ParseError(f"not an address of an interface: {quoted(line)}") from exc
    return found


def read_sockets(sys: SysRoot) -> list[Socket] | None:
    """Return the listening sockets, None without a table for IPv4. A kernel without IPv6 has no table for it."""
    tables = [sys.value(path, lambda text: list(parse_sockets(text))) for path in (IPV4_LISTENERS, IPV6_LISTENERS)]
    if tables[0] is None:
        return None
    return [each for table in tables for each in table or ()]


def is_bound(address: str) -> bool:
    """Return whether an address is that of an interface for other hosts: neither all addresses nor loopback."""
    parsed = ipaddress.ip_address(address)
    return not (parsed.is_unspecified or parsed.is_loopback)


def read_listeners(sys: SysRoot, sockets: Sequence[Socket]) -> list[tuple[str, Socket]] | None:
    """Return the sockets of the daemons of PROGRAMS with their names; none if no socket of any program is bound to an address.

    None if the files of such a daemon may not be read.
    """
    if not any(is_bound(each.address) for each in sockets):
        return []
    by_inode = {each.inode: each for each in sockets if each.inode}
    found: set[tuple[str, Socket]] = set()
    try:
        for each in read_processes(sys):
            if each.name in PROGRAMS:
                found.update((each.name, by_inode[inode]) for inode in _inodes(sys, each.pid) if inode in by_inode)
    except PermissionError:
        return None
    return sorted(found, key=lambda each: (each[0], each[1].port, each[1].address))


def _inodes(sys: SysRoot, pid: int) -> Iterator[int]:
    """Yield the sockets of a process; nothing if it ends meanwhile."""
    folder = f"/proc/{pid}/fd"
    try:
        targets = [sys.link_target(f"{folder}/{number}") for number in sys.list_dir(folder)]
    except ProcessLookupError:
        return
    yield from (int(match[1]) for target in targets if (match := _SOCKET.fullmatch(target or "")))
