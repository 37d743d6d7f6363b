# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives that are what they should be, and those that would reach further than they may."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import stat
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import archive as base_archive
from ansible_collections.rdma.cluster.plugins.module_utils._base.archive import wrong_members
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._driver import ofed_installer as archive

VERSION = "24.10-1.1.4.0"
TOP = f"MLNX_OFED_LINUX-{VERSION}-ubuntu22.04-x86_64"
SCRIPT = b"#!/bin/sh\nexit 0\n"


def member(
    name: str, *, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname, info.mode, info.uid = len(data), kind, link, mode, 4711
    return info, data


def packed(folder: Path, *more: tuple[tarfile.TarInfo, bytes], top: str = TOP, installer: str = "mlnxofedinstall") -> Path:
    path = folder / "ofed.tgz"
    first = [member(top, kind=tarfile.DIRTYPE, mode=0o777), member(f"{top}/{installer}", data=SCRIPT, mode=0o777)]
    with tarfile.open(path, "w:gz") as tar:
        for info, data in (*first, *more):
            tar.addfile(info, io.BytesIO(data))
    return path


def read_space(**free_mib: int) -> Callable[[Path], archive.Space]:
    """A filesystem for each folder by its name."""
    return lambda path: archive.Space(free_mib[path.name] * 2**20, list(free_mib).index(path.name))


def test_a_good_archive_is_unpacked_as_a_whole_and_belongs_to_us(tmp_path: Path) -> None:
    path = packed(
        tmp_path,
        member(f"./{TOP}/DEBS/a.deb", data=b"x" * 1000),
        member(f"{TOP}/DEBS/b.deb", kind=tarfile.SYMTYPE, link="a.deb"),
        member(f"{TOP}/c", kind=tarfile.LNKTYPE, link=f"{TOP}/DEBS/a.deb"),
        member(f"{TOP}/DEBS/up", kind=tarfile.SYMTYPE, link="../mlnxofedinstall"),
    )
    with base_archive.own_copy(path, "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest().upper(), tmp_path / "ofed") as copy:
        assert (copy.read_bytes(), copy.parent.stat().st_mode & 0o777) == (path.read_bytes(), 0o700)
    contents = archive.inspect_archive(path, VERSION)
    assert (contents.top, contents.size_bytes, contents.members) == (TOP, 1000 + len(SCRIPT), 6)
    folder = tmp_path / "ofed"
    (folder / ".unpacking-old").mkdir(parents=True)
    (folder / "unpacked").mkdir()
    (folder / "unpacked" / "left-over").touch()
    top = base_archive.unpack(path, contents, folder)
    assert [each.name for each in folder.iterdir()] == ["unpacked"]
    assert [each.name for each in (folder / "unpacked").iterdir()] == [TOP]
    assert stat.S_IMODE((top / "mlnxofedinstall").stat().st_mode) == 0o755
    assert (top / "mlnxofedinstall").stat().st_uid != 4711
    assert (top / "DEBS/up").read_bytes() == SCRIPT
    base_archive.remove_unpacked(folder)
    assert not list(folder.iterdir())


def test_an_interrupted_unpacking_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path)
    contents = archive.inspect_archive(path, VERSION)

    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(base_archive, "_extract", fail)
    with pytest.raises(ApplyError, match=r"is not unpacked: .*No space left"):
        base_archive.unpack(path, contents, tmp_path / "ofed")
    assert not list((tmp_path / "ofed").iterdir())


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (member("/etc/cron.d/x"), "'/etc/cron.d/x' has an absolute name"),
        (member(f"{TOP}/../../etc/x"), "leaves the folder by '..'"),
        (member(f"{TOP}/a", kind=tarfile.SYMTYPE, link="/etc"), "leaves the folder: '/etc'"),
        (member(f"{TOP}/a", kind=tarfile.SYMTYPE, link="../other"), "is a link that leaves the folder"),
        (member(f"{TOP}/d/a", kind=tarfile.SYMTYPE, link="../../other"), "is a link that leaves the folder"),
        (member(f"{TOP}/a", kind=tarfile.SYMTYPE, link="d/l/../.."), "is a link that leaves the folder"),
        (member(f"{TOP}/a", kind=tarfile.LNKTYPE, link="etc/shadow"), "is a link that leaves the folder"),
        (member(f"{TOP}/a", kind=tarfile.LNKTYPE, link=f"{TOP}/../etc/shadow"), "is a link that leaves the folder"),
        (member(f"{TOP}/a", kind=tarfile.CHRTYPE), "is a device or another special file"),
        (member(f"{TOP}/a", kind=tarfile.FIFOTYPE), "is a device or another special file"),
        (member(f"{TOP}/a", mode=0o4755), "has the setuid or setgid bit"),
        (member(f"{TOP}/d", kind=tarfile.DIRTYPE, mode=0o2755), "has the setuid or setgid bit"),
        (member(f"{TOP}/d", kind=tarfile.DIRTYPE, mode=0o4755), "has the setuid or setgid bit"),
        (member(f"{TOP}/a\udcff"), "has a name with characters that cannot be printed"),
        (member(f"{TOP}/{'a' * 4200}"), "has a name of more than 4096 bytes"),
        (member(f"{TOP}/a", kind=tarfile.LNKTYPE, link=f"{TOP}/later"), "is a hard link to"),
        (member(f"{TOP}/a", kind=tarfile.LNKTYPE, link=TOP), "is a hard link to"),
        (member(f"{TOP}/a\nb"), "has a name with characters that cannot be printed"),
        (member(f"{TOP}/a\x1b[2K"), "has a name with characters that cannot be printed"),
        (member(f"{TOP}/mlnxofedinstall"), "is there twice"),
    ],
)
def test_what_could_reach_further_is_refused(tmp_path: Path, bad: tuple[tarfile.TarInfo, bytes], words: str) -> None:
    with pytest.raises(ApplyError) as raised:
        archive.inspect_archive(packed(tmp_path, bad), VERSION)
    assert words in str(raised.value)


def test_what_lies_behind_a_link_is_refused(tmp_path: Path) -> None:
    """A link within the folder is good, and what is put behind it is not where it seems to be."""
    path = packed(tmp_path, member(f"{TOP}/l", kind=tarfile.SYMTYPE, link="DEBS"), member(f"{TOP}/l/x", data=b"x"))
    with pytest.raises(ApplyError, match="lies behind a link"):
        archive.inspect_archive(path, VERSION)


def test_every_offender_is_counted(tmp_path: Path) -> None:
    path = packed(tmp_path, *(member(f"/etc/{number}") for number in range(9)))
    with pytest.raises(ApplyError, match="and 4 more"):
        archive.inspect_archive(path, VERSION)


@pytest.mark.parametrize(
    ("options", "more", "words"),
    [
        ({"installer": "install"}, (), "has no MLNX_OFED_LINUX-.*/mlnxofedinstall"),
        ({}, (member("other/x"),), "has 2 folders or files at its top"),
        ({"top": TOP.replace("1.1.4", "2.1.8")}, (), "contains MLNX_OFED 24.10-2.1.8.0 .*, expected 24.10-1.1.4.0"),
    ],
)
def test_another_archive_is_refused(
    tmp_path: Path, options: dict[str, str], more: tuple[tuple[tarfile.TarInfo, bytes], ...], words: str
) -> None:
    with pytest.raises(ApplyError, match=words):
        archive.inspect_archive(packed(tmp_path, *more, **options), VERSION)


def test_a_folder_of_another_form_reports_no_version(tmp_path: Path) -> None:
    assert archive.inspect_archive(packed(tmp_path, top="ofed"), VERSION).top == "ofed"


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = packed(tmp_path, member(f"{TOP}/big", data=bytes(range(256)) * 4000))
    whole = path.read_bytes()
    for damaged in (b"", b"<html>not found</html>", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(ApplyError, match="cannot be read as a tar archive"):
            archive.inspect_archive(path, VERSION)
    digest = "0" * 64
    with pytest.raises(
        ApplyError, match=f"its sha256 is {hashlib.sha256(path.read_bytes()).hexdigest()}, expected {digest}: the download is"
    ):
        lend(path, f"sha256:{digest}")
    with pytest.raises(ApplyError, match="absent is not there"):
        lend(tmp_path / "absent", f"sha256:{digest}")
    with pytest.raises(ApplyError, match="64 hex digits, got 'md5:0'"):
        lend(path, "md5:0")
    assert not list((tmp_path / "own").iterdir())


def lend(path: Path, checksum: str) -> None:
    with base_archive.own_copy(path, checksum, path.parent / "own"):
        raise AssertionError("it was lent")


def test_an_error_names_the_archive_that_was_given_and_not_the_copy(tmp_path: Path) -> None:
    path = packed(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    checksum = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    refused = pytest.raises(ApplyError, match=rf"^{re.escape(str(path))} cannot be read as a tar archive")
    with refused, base_archive.own_copy(path, checksum, tmp_path / "own") as copy:
        archive.inspect_archive(copy, VERSION)


def test_an_archive_that_is_exchanged_after_the_look_changes_nothing(tmp_path: Path) -> None:
    path = packed(tmp_path)
    checksum = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    with base_archive.own_copy(path, checksum, tmp_path / "own") as copy:
        contents = archive.inspect_archive(copy, VERSION)
        packed(tmp_path, member(f"{TOP}/evil", data=b"x"))
        top = base_archive.unpack(copy, contents, tmp_path / "ofed")
    assert [file.name for file in top.iterdir()] == ["mlnxofedinstall"]


@pytest.mark.parametrize("filtered", [True, False])
def test_a_hard_link_to_a_symbolic_link_is_refused_by_every_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filtered: bool) -> None:
    """A way out of the folder that Python's own filter knows only since 3.11.4."""
    if not filtered:
        monkeypatch.delattr("tarfile.data_filter", raising=False)
    way_out = (
        member(f"{TOP}/d/e/s", kind=tarfile.SYMTYPE, link="../.."),
        member(f"{TOP}/h", kind=tarfile.LNKTYPE, link=f"{TOP}/d/e/s"),
        member(f"{TOP}/h/PWNED", data=b"x"),
    )
    with pytest.raises(ApplyError, match=r"is a hard link to .*, which is no file before it in the archive"):
        archive.inspect_archive(packed(tmp_path, *way_out), VERSION)


def pax(name: str, *, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"x", **headers: str) -> tuple[tarfile.TarInfo, bytes]:
    """A member whose PAX headers say something else; "_" is "." in their names."""
    info, data = member(name, kind=kind, link=link, data=b"" if link else data)
    info.pax_headers = {key.replace("_", "."): value for key, value in headers.items()}
    return info, data


LINK, SYMLINK, FOLDER = tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE
#: Members that are refused, or stay within the folder. A way out would write PWNED beside the archive, or read "secret" there.
ATTACKS = {
    "chain of hard links": [member(f"{TOP}/a", kind=LINK, link=f"{TOP}/mlnxofedinstall"), member(f"{TOP}/b", kind=LINK, link=f"{TOP}/a")],
    "hard link to a folder's link": [
        member(f"{TOP}/s", kind=SYMLINK, link="d"),
        member(f"{TOP}/h", kind=LINK, link=f"{TOP}/s"),
        member(f"{TOP}/h/PWNED", data=b"x"),
    ],
    "chain of links and hard links": [
        member(f"{TOP}/d/e/s", kind=SYMLINK, link="../.."),
        member(f"{TOP}/x", kind=SYMLINK, link="d/e/s"),
        member(f"{TOP}/h", kind=LINK, link=f"{TOP}/x"),
        member(f"{TOP}/h/PWNED", data=b"x"),
    ],
    "file behind a link to here": [member(f"{TOP}/s", kind=SYMLINK, link="."), member(f"{TOP}/s/PWNED", data=b"x")],
    "links to each other": [member(f"{TOP}/a", kind=SYMLINK, link="b"), member(f"{TOP}/b", kind=SYMLINK, link="a")],
    "folder becomes a link": [member(f"{TOP}/d", kind=FOLDER), member(f"{TOP}/d", kind=SYMLINK, link=".."), member(f"{TOP}/d/PWNED")],
    "folder without a member becomes a link": [
        member(f"{TOP}/d/x", data=b"x"),
        member(f"{TOP}/d", kind=SYMLINK, link="e"),
        member(f"{TOP}/d/PWNED"),
    ],
    "link becomes a folder": [member(f"{TOP}/d", kind=SYMLINK, link="e"), member(f"{TOP}/d", kind=FOLDER), member(f"{TOP}/d/PWNED")],
    "link becomes a file": [member(f"{TOP}/d", kind=SYMLINK, link="mlnxofedinstall"), member(f"{TOP}/d", data=b"x")],
    "same file by another spelling": [member(f"./{TOP}//mlnxofedinstall", data=b"x")],
    "absolute name": [member("//etc/PWNED", data=b"x")],
    "block device": [member(f"{TOP}/b", kind=tarfile.BLKTYPE)],
    "kind that nobody knows": [member(f"{TOP}/b", kind=b"Z")],
    "the folder itself is a link": [member(".", kind=SYMLINK, link=".")],
    "no name": [member("", data=b"x")],
    "too deep": [member("/".join([TOP, *"a" * 1900]), data=b"x")],
    "setgid folder": [member(f"{TOP}/g", kind=FOLDER, mode=0o2777)],
    "PAX: absolute name": [pax(f"{TOP}/x", path="/etc/PWNED")],
    "PAX: name with ..": [pax(f"{TOP}/x", path=f"{TOP}/../../PWNED")],
    "PAX: link to elsewhere": [pax(f"{TOP}/x", kind=SYMLINK, link="mlnxofedinstall", linkpath="/etc")],
    "PAX: hard link to elsewhere": [pax(f"{TOP}/x", kind=LINK, link=f"{TOP}/mlnxofedinstall", linkpath=f"{TOP}/../../../secret")],
    "PAX: sparse file of another name": [pax(f"{TOP}/x", GNU_sparse_name="../../PWNED", GNU_sparse_size="1", GNU_sparse_map="0,1")],
    "PAX: sparse file without numbers": [pax(f"{TOP}/x", GNU_sparse_size="abc", GNU_sparse_map="0,1")],
    "PAX: sparse file with half a map": [
        pax(f"{TOP}/x", data=b"abc\n", GNU_sparse_major="1", GNU_sparse_minor="0", GNU_sparse_realsize="5"),
    ],
    "PAX: time of no clock": [pax(f"{TOP}/x", mtime="1e300")],
    "PAX: time that is no number": [pax(f"{TOP}/x", mtime="nan")],
    "PAX: size of another file": [pax(f"{TOP}/x", size="99999999999")],
}


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("filtered", [True, False], ids=["with the filter", "without it"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_leaves_the_folder_and_only_an_apply_error_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str, filtered: bool, first: bool
) -> None:
    if not filtered:
        monkeypatch.delattr("tarfile.data_filter", raising=False)
    (tmp_path / "secret").write_text("of the control node")
    folder = tmp_path / "a" / "b" / "ofed"
    path = packed(tmp_path, *ATTACKS[attack], top=TOP)
    if first:
        with tarfile.open(path, "w:gz") as tar:
            for info, data in (*ATTACKS[attack], member(TOP, kind=FOLDER), member(f"{TOP}/mlnxofedinstall", data=SCRIPT)):
                tar.addfile(info, io.BytesIO(data))
    with suppress(ApplyError):
        base_archive.unpack(path, archive.inspect_archive(path, VERSION), folder)
    unpacked = {each for each in tmp_path.rglob("*") if folder in each.parents}
    beside = {each.relative_to(tmp_path).as_posix() for each in {*tmp_path.rglob("*")} - unpacked}
    assert beside - {"a", "a/b", "a/b/ofed"} == {"ofed.tgz", "secret"}
    assert {each.name for each in folder.glob("*")} <= {"unpacked"}
    for each in unpacked:
        assert Path(os.path.realpath(each)).is_relative_to(folder), f"{each} leads to {os.path.realpath(each)}"
        assert each.is_symlink() or not each.stat().st_mode & 0o7022
        assert not each.is_file() or not each.samefile(tmp_path / "secret")
    assert not list(Path("/etc").glob("PWNED*"))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_byte_that_is_damaged_is_an_apply_error_or_nothing(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    """With the right sum, as the sum of a damaged download is what somebody may have noted."""
    path, random = tmp_path / "ofed.tar", Random(0)
    with tarfile.open(path, "w") as tar:
        for info, data in (
            member(TOP, kind=FOLDER),
            member(f"{TOP}/mlnxofedinstall", data=SCRIPT),
            pax(f"{TOP}/x", mtime="1.5"),
        ):
            tar.addfile(info, io.BytesIO(data))
    whole = compress(path.read_bytes())
    refused = 0
    for _example in range(60):
        damaged = bytearray(whole)
        for _byte in range(random.randint(1, 4)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        path.write_bytes(damaged)
        try:
            base_archive.unpack(path, archive.inspect_archive(path, VERSION), tmp_path / "out")
        except ApplyError:
            refused += 1
    assert refused


def test_room_for_archive_and_build() -> None:
    contents = archive.Contents(TOP, 1000 * 2**20, 10)
    here, there = Path("/a/ofed"), Path("/b/tmp")
    archive.check_space(contents, here, there, read_space(ofed=1100, tmp=2048))
    with pytest.raises(
        ApplyError, match=r"/a/ofed has 1099 MiB free, expected 1100 MiB to unpack the archive;.*/b/tmp has 2047 MiB free, expected 2048"
    ):
        archive.check_space(contents, here, there, read_space(ofed=1099, tmp=2047))
    one = archive.Space(3147 * 2**20, 1)
    with pytest.raises(ApplyError, match="expected 3148 MiB to unpack the archive and to build in"):
        archive.check_space(contents, here, there, lambda _path: one)


def test_the_room_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    found = archive.read_space(tmp_path / "a" / "b")
    assert found.filesystem == tmp_path.stat().st_dev
    # Other programs write there as well.
    assert found.free_bytes == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.2)


@pytest.mark.parametrize("evil", ["a\0b", "a\nb", "a\r", "a\u2028b", "a\u202eb", "a\x9b2K", "a\udcff", "a\x7f"])
@pytest.mark.parametrize("place", ["name", "linkname"])
def test_a_name_that_does_not_print_is_refused_and_shown_as_it_is_safe(evil: str, place: str) -> None:
    entry = tarfile.TarInfo(f"{TOP}/x")
    entry.type = tarfile.SYMTYPE if place == "linkname" else tarfile.REGTYPE
    setattr(entry, place, evil if place == "linkname" else f"{TOP}/{evil}")
    (words,) = wrong_members([entry])
    assert words.endswith(" has a name with characters that cannot be printed")
    assert words.isprintable()
