# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from tests.unit.builders.trees import write_tree


def test_reads_the_file_below_the_root(tmp_path: Path) -> None:
    write_tree(tmp_path, "/sys/class/net/eth0/mtu: 9000")

    assert SysRoot(str(tmp_path)).read("/sys/class/net/eth0/mtu") == "9000\n"


def test_reads_the_running_system() -> None:
    assert SysRoot().text("/proc/sys/kernel/osrelease") == os.uname().release
    assert (SysRoot("/").resolve("/proc/self") or "").startswith("/proc/")


@pytest.mark.parametrize("path", ["/sys/none", "/sys/none/at/all", "/sys/file/below"])
def test_what_is_absent_is_none(tmp_path: Path, path: str) -> None:
    sys = SysRoot(str(write_tree(tmp_path, "/sys/file: x")))

    assert (sys.read(path), sys.text(path), sys.link_target(path), sys.resolve(path)) == (None, None, None, None)
    assert (sys.read_bytes(path), sys.mode(path)) == (None, None)
    assert (sys.list_dir(path), sys.exists(path)) == ([], False)


CARRIER = "/sys/class/net/eth0/carrier"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENODATA, errno.EOPNOTSUPP])
def test_an_attribute_without_a_value_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    sys = SysRoot(str(write_tree(tmp_path, f"{CARRIER}: 1")))
    monkeypatch.setattr(os, "read", refusing(number))

    assert (sys.read(CARRIER), sys.read_bytes(CARRIER)) == (None, None)
    assert sys.read_files("/sys/class/net/eth0") == {"carrier": ""}


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO])
def test_any_other_failure_is_an_error_with_the_path_on_the_host(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    sys = SysRoot(str(write_tree(tmp_path, f"{CARRIER}: 1")))
    monkeypatch.setattr(os, "read", refusing(number))

    for read in (lambda: sys.read(CARRIER), lambda: sys.read_files("/sys/class/net/eth0")):
        with pytest.raises(OSError, match=CARRIER) as caught:
            read()
        assert (caught.value.errno, caught.value.filename) == (number, CARRIER)


def test_all_files_of_a_directory_at_once(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, "/sys/a/1: x\n/sys/a/2: \n/sys/a/sub/3: y\n/sys/a/4 -> 1\n/sys/b -> a")))

    assert sys.read_files("/sys/b") == {"1": "x\n", "2": ""}
    assert sys.read_files("/sys/none") == sys.read_files("/sys/a/1") == {}


def test_a_file_is_read_to_its_end_and_through_its_link(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/big").write_text("x" * 200_000)
    (tmp_path / "proc/link").symlink_to("/proc/big")

    assert len(SysRoot(str(tmp_path)).read("/proc/link") or "") == 200_000


@pytest.mark.parametrize(("method", "call"), [("list_dir", "listdir"), ("exists", "stat"), ("mode", "stat"), ("link_target", "readlink")])
def test_what_may_not_be_looked_at_is_not_absent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    call: str,
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    sys = SysRoot(str(tmp_path))
    monkeypatch.setattr(os, call, refuse)

    with pytest.raises(PermissionError) as caught:
        getattr(sys, method)("/sys/a")
    assert caught.value.filename == "/sys/a"


def test_bytes_are_those_of_the_file(tmp_path: Path) -> None:
    data = b"\xff\xfe\x00\r\n"
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "empty").touch()
    sys = SysRoot(str(tmp_path))

    assert (sys.read_bytes("/file"), sys.read_bytes("/empty")) == (data, b"")
    assert sys.read("/file") == "\ufffd\ufffd\x00\r\n"


def test_a_directory_has_no_bytes(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, "/sys/d/a: x\n/sys/link -> d")))

    assert (sys.read_bytes("/sys/d"), sys.read_bytes("/sys/link"), sys.read("/sys/d")) == (None, None, None)


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o4755, 0o1777])
def test_the_permission_bits_are_those_at_the_end_of_a_link(tmp_path: Path, mode: int) -> None:
    write_tree(tmp_path, "/etc/real: x\n/etc/link -> /etc/real\n/etc/dangling -> nowhere")
    (tmp_path / "etc/real").chmod(mode)
    sys = SysRoot(str(tmp_path))

    assert (sys.mode("/etc/real"), sys.mode("/etc/link"), sys.mode("/etc/dangling")) == (mode, mode, None)


def test_lists_a_directory_in_order(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, "/sys/d/b: x\n/sys/d/a: x\n/sys/link -> d")))

    assert sys.list_dir("/sys/d") == sys.list_dir("/sys/link/") == ["a", "b"]


def test_follows_links_between_directories(tmp_path: Path) -> None:
    tree = """
        /sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/mtu: 1500
        /sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/device -> ../../../virtio0
        /sys/devices/pci0000:00/0000:00:03.0/virtio0/driver -> ../../../../bus/virtio/drivers/virtio_net
        /sys/class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/virtio0/net/eth0
    """
    sys = SysRoot(str(write_tree(tmp_path, tree)))

    assert sys.text("/sys/class/net/eth0/mtu") == "1500"
    assert sys.resolve("/sys/class/net/eth0/device") == "/sys/devices/pci0000:00/0000:00:03.0/virtio0"
    assert sys.link_target("/sys/class/net/eth0/device/driver") == "../../../../bus/virtio/drivers/virtio_net"
    assert not sys.exists("/sys/class/net/eth0/device/driver")
    assert sys.resolve("/sys/class/net/eth0/device/driver") == "/sys/bus/virtio/drivers/virtio_net"


def test_never_leaves_the_root(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret\n")
    tree = f"""
        /etc/machine-id -> {tmp_path}/outside
        /etc/up -> ../../../outside
        /sys/absolute -> /sys/real
        /sys/real/name: inside
        /sys/real/back -> /sys/absolute/../real/name
    """
    sys = SysRoot(str(write_tree(tmp_path / "root", tree)))

    assert sys.read("/etc/machine-id") is None
    assert sys.read("/etc/up") is None
    assert sys.read("/../outside") is None
    assert sys.read("/etc/../../outside") is None
    assert sys.text("/sys/absolute/name") == "inside"
    assert sys.text("/sys/absolute/back") == "inside"
    assert sys.resolve("/sys/absolute/back") == "/sys/real/name"


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, "/sys/a -> b\n/sys/b -> a")))

    with pytest.raises(OSError, match="/sys/a/name") as caught:
        sys.read("/sys/a/name")
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize("content", ["", "\n", " \n\n", "\0"])
def test_an_empty_file_has_no_text(tmp_path: Path, content: str) -> None:
    (tmp_path / "fw_ver").write_text(content)

    assert SysRoot(str(tmp_path)).text("/fw_ver") is None
    assert SysRoot(str(tmp_path)).value("/fw_ver", int) is None


def test_a_text_that_makes_no_sense_is_an_error_with_its_path(tmp_path: Path) -> None:
    def parser(text: str) -> int:
        raise ParseError(f"not a number: {text!r}")

    sys = SysRoot(str(write_tree(tmp_path, "/sys/x: seven")))

    with pytest.raises(ParseError, match=r"^/sys/x: not a number: 'seven'$"):
        sys.value("/sys/x", parser)


def test_the_space_is_that_of_the_filesystem_at_the_end_of_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sys = SysRoot(str(write_tree(tmp_path, "/real/x: x\n/var -> /real")))
    asked: list[str] = []

    def statvfs(path: str) -> os.statvfs_result:
        asked.append(path)
        # f_bsize f_frsize f_blocks f_bfree f_bavail f_files f_ffree f_favail f_flag f_namemax
        return os.statvfs_result((65536, 4096, 1000, 300, 250, 70, 60, 50, 0, 255))

    monkeypatch.setattr(os, "statvfs", statvfs)
    assert sys.space("/var") == (250 * 4096, 1000 * 4096, 50, 70)
    assert asked == [f"{tmp_path}/real"]


def test_the_space_of_what_is_not_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SysRoot(str(tmp_path)).space("/boot") is None

    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "statvfs", refuse)
    with pytest.raises(PermissionError) as caught:
        SysRoot(str(tmp_path)).space("/boot")
    assert caught.value.filename == "/boot"


def refusing(number: int):
    """Reading of a file that can be opened and not be read, as it is with attributes in /sys."""

    def read(file: int, size: int) -> bytes:
        raise OSError(number, os.strerror(number))

    return read


@pytest.mark.parametrize("prefix", ["", "/"])
def test_the_beginning_of_a_regular_file_and_nothing_of_others(tmp_path: Path, prefix: str) -> None:
    """With the root "/" the paths are those of the machine of the tests."""
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    sys, base = (SysRoot("/"), str(tmp_path)) if prefix else (SysRoot(str(tmp_path)), "")
    for name in ("file", "link"):
        found = sys.read_regular(f"{base}/{name}", 4)
        assert found is not None
        assert (found[0], found[1].st_size) == (b"0123", 10)
    assert sys.read_regular(f"{base}/pipe", 4) is None
    assert sys.read_regular(f"{base}/nothing", 4) is None
    assert sys.read_regular(f"{base}/", 4) is None


def test_a_pipe_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    opened: list[str] = []
    monkeypatch.setattr(os, "open", lambda path, _flags: opened.append(path))
    assert SysRoot(str(tmp_path)).read_regular("/pipe", 4) is None
    assert opened == []
