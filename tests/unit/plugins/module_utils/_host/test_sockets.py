# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Listening sockets and their owners, from /proc."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.sockets import (
    Socket,
    is_bound,
    parse_ipv6_addresses,
    parse_sockets,
    read_listeners,
    read_sockets,
)
from tests.unit.builders.sockets import TCP, TCP6

BOUND = [Socket("192.168.100.1", 6818, 77), Socket("0.0.0.0", 22, 78)]
INET6 = """\
fe80000000000000505400fffe1a0001 03 40 20 80     ens1
00000000000000000000000000000001 01 80 10 80       lo
fd000100000000000000000000000001 03 40 00 80     ens1
"""


def process(root: Path, pid: int, name: str, *inodes: int) -> None:
    (root / f"proc/{pid}/fd").mkdir(parents=True)
    (root / f"proc/{pid}/comm").write_text(name + "\n")
    (root / f"proc/{pid}/fd/0").symlink_to("/dev/null")
    for number, inode in enumerate(inodes, 3):
        (root / f"proc/{pid}/fd/{number}").symlink_to(f"socket:[{inode}]")


def test_only_daemons_of_the_management_are_named(tmp_path: Path) -> None:
    process(tmp_path, 7, "slurmd", 77)
    process(tmp_path, 8, "python3", 78)
    assert read_listeners(SysRoot(str(tmp_path)), BOUND) == [("slurmd", BOUND[0])]


def test_a_long_name_is_truncated_as_the_kernel_does(tmp_path: Path) -> None:
    process(tmp_path, 7, "prometheus-node", 77)
    assert read_listeners(SysRoot(str(tmp_path)), BOUND) == [("prometheus-node", BOUND[0])]


def test_without_a_socket_on_an_address_no_process_is_looked_at(tmp_path: Path) -> None:
    process(tmp_path, 7, "sshd", 78)
    assert read_listeners(SysRoot(str(tmp_path)), [BOUND[1], Socket("127.0.0.1", 631, 79), Socket("::1", 631, 80)]) == []


def test_a_daemon_whose_files_are_closed_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(tmp_path, 7, "slurmd", 77)

    class Closed(SysRoot):
        def list_dir(self, path: str) -> list[str]:
            if path.endswith("/fd"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return super().list_dir(path)

    assert read_listeners(Closed(str(tmp_path)), BOUND) is None


def test_addresses_of_ipv6_but_link_local_ones() -> None:
    assert parse_ipv6_addresses(INET6) == {"::1": "lo", "fd00:100::1": "ens1"}
    with pytest.raises(ParseError, match="not an address of an interface"):
        parse_ipv6_addresses("fe80 ens1\n")


@pytest.mark.parametrize(
    ("address", "bound"), [("0.0.0.0", False), ("::", False), ("127.0.0.53", False), ("::1", False), ("fd00::1", True)]
)
def test_an_address_of_an_interface_is_bound(address: str, bound: bool) -> None:
    assert is_bound(address) is bound


def test_only_listening_sockets_count() -> None:
    assert list(parse_sockets(TCP)) == [
        Socket("0.0.0.0", 22, 18210), Socket("192.168.100.1", 22, 18211), Socket("127.0.0.1", 53, 18213),
    ]  # fmt: skip
    assert list(parse_sockets(TCP6)) == [Socket("::", 22), Socket("192.168.100.2", 22), Socket("2001:db8::1", 22)]


def test_another_form_is_refused() -> None:
    with pytest.raises(ParseError, match="not a table of sockets"):
        list(parse_sockets("nothing"))
    with pytest.raises(ParseError, match="not a socket"):
        list(parse_sockets("local_address\n 0: 00000000:0016\n"))


def test_this_process_is_found_on_this_machine() -> None:
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        port.listen()
        inode = os.fstat(port.fileno()).st_ino
        assert Socket("127.0.0.1", port.getsockname()[1], inode) in (read_sockets(SysRoot()) or [])
