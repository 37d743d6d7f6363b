# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which interface carries our own SSH session: it must not be a rail, and must never be set down."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

VARIABLE = "SSH_CONNECTION"
_PARENT = re.compile(r"^PPid:[ \t]*([0-9]{1,10})$", re.MULTILINE)
_MAX_ANCESTORS = 64


@dataclass(frozen=True)
class Session:
    """The end of our SSH session on a host.

    address: the host's address in the session, None without a session; netdev: the interface that has it, None if none of the given
    interfaces has it, or several have it.
    """

    address: str | None
    netdev: str | None


def session_address(session: Session | None) -> str | None:
    """Return the address of the host's end of our session, according to its sshd. session: from the host's facts.

    None without a session (a local connection), and for a loopback address (a forwarded port), which no other host can reach.
    """
    address = session.address if session else None
    if address is None or ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return None
    return address


def parse_ssh_connection(text: str) -> str | None:
    """Return the server's address in SSH_CONNECTION of sshd(8), "192.0.2.9 50022 192.0.2.1 22" → "192.0.2.1"; None without a session."""
    words = text.split()
    if len(words) != 4:
        raise ParseError(f"not an SSH connection: {quoted(text)}, expected the form '192.0.2.9 50022 192.0.2.1 22'")
    if words[2] == "UNKNOWN":
        return None
    try:
        return str(ipaddress.ip_address(words[2]))
    except ValueError as exc:
        raise ParseError(f"not an address: {quoted(words[2])} in the SSH connection {quoted(text)}") from exc


def read_client(sys: SysRoot, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the address from which our own SSH session comes, as this host sees it; None without a session."""
    own = (os.environ if environ is None else environ).get(VARIABLE)
    words = (own or _inherited(sys, os.getppid()) or "").split()
    return words[0] if len(words) == 4 and words[0] != "UNKNOWN" else None


def find_netdev_of(address: str, netdevs: Mapping[str, Sequence[str] | None]) -> str | None:
    """Return the only interface with an address. netdevs: its addresses by interface, "192.0.2.1/24".

    A link-local IPv6 address names the interface itself: "fe80::1%eth0".
    """
    bare, _percent, zone = address.partition("%")
    if zone in netdevs:
        return zone
    wanted = ipaddress.ip_address(bare)
    having = [name for name, addresses in netdevs.items() if any(_address_of(each) == wanted for each in addresses or ())]
    return having[0] if len(having) == 1 else None


def read_session(
    sys: SysRoot,
    runner: Runner | None,
    netdevs: Mapping[str, Sequence[str] | None],
    environ: Mapping[str, str] | None = None,
) -> Session:
    """Return our own session on the running system, none for a captured tree. netdevs: as in find_netdev_of, rails or not.

    environ: our environment. sudo hides the variable from us, so the environments of our parent processes are read as well.
    """
    if runner is None:
        return Session(None, None)
    own = (os.environ if environ is None else environ).get(VARIABLE)
    text = own or _inherited(sys, os.getppid())
    address = parse_ssh_connection(text) if text else None
    return Session(address, find_netdev_of(address, netdevs) if address is not None else None)


def _inherited(sys: SysRoot, pid: int) -> str | None:
    """Return the variable from the environment of a process or its nearest ancestor that has it, as far up as permitted."""
    try:
        for _generation in range(_MAX_ANCESTORS):
            for line in (sys.read(f"/proc/{pid}/environ") or "").split("\0"):
                if line.startswith(f"{VARIABLE}="):
                    return line.partition("=")[2]
            parent = _PARENT.search(sys.read(f"/proc/{pid}/status") or "")
            pid = int(parent[1]) if parent is not None else 0
            if pid <= 1:
                return None
    except OSError:
        return None
    return None


def _address_of(interface: str) -> object:
    return ipaddress.ip_interface(interface).ip
