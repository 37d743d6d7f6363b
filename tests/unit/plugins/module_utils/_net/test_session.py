# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of our own SSH session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session, find_netdev_of, parse_ssh_connection, read_session
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.garbled import read_or_refused

CONNECTION = "192.0.2.9 50022 192.0.2.1 22"
NETDEVS = {"lo": ["127.0.0.1/8"], "eth0": ["198.51.100.1/24", "192.0.2.1/24"], "eth1": ["192.0.2.10/24"], "eth2": [], "eth3": None}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (CONNECTION, "192.0.2.1"),
        ("2001:db8::9 50022 2001:DB8:0::1 22", "2001:db8::1"),
        ("fe80::9%eth0 50022 fe80::1%eth0 22", "fe80::1%eth0"),
        ("UNKNOWN 65535 UNKNOWN 65535", None),
    ],
)
def test_the_servers_address(text: str, address: str | None) -> None:
    assert parse_ssh_connection(text) == address


@pytest.mark.parametrize("text", ["", "192.0.2.9 50022 22", "192.0.2.9 50022 192.0.2.1", "a b c d", "192.0.2.9 1 192.0.2.256 22"])
def test_another_text_is_quoted(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ssh_connection(text)
    assert repr(text) in str(caught.value)


def test_the_address_that_is_none_is_named() -> None:
    with pytest.raises(ParseError, match=r"^not an address: '192\.0\.2\.256' in the SSH connection "):
        parse_ssh_connection("192.0.2.9 50022 192.0.2.256 22")


@given(text=st.text() | st.lists(st.sampled_from(["192.0.2.1", "fe80::1%", "UNKNOWN", "22", "٣", "1.2.3.²"]), max_size=5).map(" ".join))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_ssh_connection, text)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.1", "eth0"),
        ("192.0.2.10", "eth1"),
        ("198.51.100.1", "eth0"),
        ("192.0.2.2", None),
        ("2001:db8::1", None),
        ("fe80::1%eth2", "eth2"),
        ("fe80::1%eth9", None),
    ],
)
def test_the_interface_with_an_address(address: str, name: str | None) -> None:
    assert find_netdev_of(address, NETDEVS) == name


def test_an_address_of_ipv6_is_compared_by_value() -> None:
    assert find_netdev_of("2001:db8::1", {"eth0": ["2001:DB8:0:0::1/64"]}) == "eth0"


def test_an_address_that_several_have_names_none() -> None:
    assert find_netdev_of("192.0.2.1", {"eth0": ["192.0.2.1/24"], "eth1": ["192.0.2.1/25"]}) is None


def processes(root: Path, *ancestors: tuple[int, int, bytes]) -> SysRoot:
    """A tree with processes (pid, pid of its parent, environment)."""
    for pid, parent, environ in ancestors:
        folder = root / f"proc/{pid}"
        folder.mkdir(parents=True)
        (folder / "environ").write_bytes(environ)
        (folder / "status").write_text(f"Name:\tpython3\nUmask:\t0022\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\nTracerPid:\t0\n")
    return SysRoot(str(root))


def test_our_own_environment_is_asked_first(tmp_path: Path) -> None:
    sys = processes(tmp_path, (os.getppid(), 1, b"SSH_CONNECTION=192.0.2.9 50022 192.0.2.10 22\0"))
    assert read_session(sys, FakeRunner([]), NETDEVS, {"SSH_CONNECTION": CONNECTION}) == Session("192.0.2.1", "eth0")


def test_the_processes_above_sudo_are_asked(tmp_path: Path) -> None:
    shell = f"LANG=C\0NOT_SSH_CONNECTION=x\0SSH_CONNECTION={CONNECTION}\0HOME=/root\0".encode()
    sys = processes(tmp_path, (os.getppid(), 4001, b"LANG=C\0SUDO_UID=1000\0"), (4001, 4000, b""), (4000, 900, shell), (900, 1, b"x"))
    assert read_session(sys, FakeRunner([]), NETDEVS, {"PATH": "/bin"}) == Session("192.0.2.1", "eth0")


def test_the_environment_of_this_process_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", CONNECTION)
    assert read_session(SysRoot(str(tmp_path)), FakeRunner([]), {}) == Session("192.0.2.1", None)


def test_without_a_session_there_is_no_address(tmp_path: Path) -> None:
    sys = processes(tmp_path, (os.getppid(), 900, b"LANG=C\0"), (900, 1, b""), (1, 0, f"SSH_CONNECTION={CONNECTION}\0".encode()))
    assert read_session(sys, FakeRunner([]), NETDEVS, {}) == Session(None, None)


def test_processes_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    sys = processes(tmp_path, (os.getppid(), 900, b""), (900, os.getppid(), b""))
    assert read_session(sys, FakeRunner([]), NETDEVS, {}) == Session(None, None)


def test_where_we_may_not_look_we_stop(tmp_path: Path) -> None:
    class Foreign(SysRoot):
        def read(self, path: str) -> str | None:
            if path == "/proc/4001/environ":
                raise PermissionError(13, "Permission denied", path)
            return super().read(path)

    processes(tmp_path, (os.getppid(), 4001, b""), (4001, 4000, b""), (4000, 1, f"SSH_CONNECTION={CONNECTION}\0".encode()))
    assert read_session(Foreign(str(tmp_path)), FakeRunner([]), NETDEVS, {}) == Session(None, None)


def test_a_tree_has_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", CONNECTION)
    assert read_session(SysRoot(str(tmp_path)), None, NETDEVS) == Session(None, None)
