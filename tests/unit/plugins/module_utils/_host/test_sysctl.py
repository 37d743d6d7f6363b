# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel settings: which file the boot listens to, and that live and boot values are what was asked for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import (
    FILE,
    Assignment,
    BootValue,
    SysctlResult,
    Writer,
    boot_values,
    ensure_sysctl,
    live_values,
    matches,
    parse_sysctl_conf,
    path_of,
    spelling,
)
from tests.unit.builders.trees import write_tree

IGNORE, ANNOUNCE = "net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.all.arp_announce"
TCP_RMEM = "net.ipv4.tcp_rmem"
LIVE = r"""
    /proc/sys/net/ipv4/conf/all/arp_ignore: 0
    /proc/sys/net/ipv4/conf/all/arp_announce: 2
    /proc/sys/net/ipv4/tcp_rmem: 4096	131072	6291456
"""

PATHS = [
    ("net.ipv4.conf.all.rp_filter", "net/ipv4/conf/all/rp_filter", "net.ipv4.conf.all.rp_filter"),
    ("net/ipv4/conf/all/rp_filter", "net/ipv4/conf/all/rp_filter", "net.ipv4.conf.all.rp_filter"),
    ("net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
    ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
    ("/net/ipv4//tcp_ecn/", "net/ipv4/tcp_ecn", "net.ipv4.tcp_ecn"),
    ("net..ipv4.tcp_ecn", "net/ipv4/tcp_ecn", "net.ipv4.tcp_ecn"),
]


@pytest.mark.parametrize(("key", "path", "spelled"), PATHS)
def test_a_key_has_one_path_and_one_spelling(key: str, path: str, spelled: str) -> None:
    assert path_of(key) == path
    assert spelling(path) == spelled
    assert path_of(spelled) == path


NO_KEYS = [
    "net.ipv4.conf.*.rp_filter", "net.ipv4.conf.eth[0-9].rp_filter", "kernel/../../../etc/shadow", "kernel.//.//.etc.shadow", "kernel", "",
    "-net.ipv4.tcp_ecn", "net.ipv4.tcp ecn", "net.ipv4.tcp_ecn\n", "#net.ipv4.tcp_ecn", "net.ipv4.tcp=ecn", "net.ipv4.töp",
]  # fmt: skip


@pytest.mark.parametrize("key", NO_KEYS)
def test_what_is_not_the_name_of_one_setting_is_refused(tmp_path: Path, key: str) -> None:
    for ask in (path_of, lambda key: live_values(SysRoot(str(tmp_path)), [key]), lambda key: boot_values(SysRoot(str(tmp_path)), [key])):
        with pytest.raises(ParseError, match="not the name of a kernel setting"):
            ask(key)


CONF = """\
# a comment
 ; another one
net.ipv4.tcp_ecn=1

  net/ipv4/tcp_rmem \t= 4096 87380\t4194304 \r
-net.ipv4.conf.all.rp_filter = 2
-net.ipv4.conf.eth0/100.rp_filter
net.ipv4.conf.*.rp_filter = 2
this line says nothing
kernel.core_pattern = |/bin/x a=b
kernel.domainname =
"""
ASSIGNMENTS = [
    Assignment("net/ipv4/tcp_ecn", "1", 3),
    Assignment("net/ipv4/tcp_rmem", "4096 87380\t4194304", 5),
    Assignment("net/ipv4/conf/all/rp_filter", "2", 6),
    Assignment("net/ipv4/conf/eth0.100/rp_filter", None, 7),
    Assignment("net/ipv4/conf/*/rp_filter", "2", 8),
    Assignment("kernel/core_pattern", "|/bin/x a=b", 10),
    Assignment("kernel/domainname", "", 11),
]


def test_parse_sysctl_conf() -> None:
    assert parse_sysctl_conf(CONF) == ASSIGNMENTS


MATCHES = [
    ("net/ipv4/conf/*/rp_filter", "net/ipv4/conf/eth0.100/rp_filter", True),
    ("net/ipv4/*/rp_filter", "net/ipv4/conf/all/rp_filter", False),
    ("net/ipv4/conf/e?h[0-3]/rp_filter", "net/ipv4/conf/eth3/rp_filter", True),
    ("net/ipv4/conf/eth[!0-3]/rp_filter", "net/ipv4/conf/eth3/rp_filter", False),
    ("net/ipv4/conf/eth[^0-3]/rp_filter", "net/ipv4/conf/eth3/rp_filter", False),
    ("net/ipv4/conf/eth[^0-3]/rp_filter", "net/ipv4/conf/eth4/rp_filter", True),
    ("net/ipv{4,6}/conf/*/{rp_filter,arp_ignore}", "net/ipv6/conf/all/arp_ignore", True),
    ("net/ipv{4,6}/conf/*/rp_filter", "net/ipv5/conf/all/rp_filter", False),
    ("net/ipv4/conf/*/RP_filter", "net/ipv4/conf/all/rp_filter", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHES)
def test_matches(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


KEY = "net.ipv4.conf.all.rp_filter"
BOOTS = [
    pytest.param("", None, id="nothing"),
    pytest.param("/usr/lib/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=1", BootValue("1", "/usr/lib/sysctl.d/50-a.conf"), id="vendor"),
    pytest.param(
        "/etc/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=2\n/usr/lib/sysctl.d/60-b.conf: net/ipv4/conf/all/rp_filter = 1",
        BootValue("1", "/usr/lib/sysctl.d/60-b.conf"),
        id="later name wins whatever its folder",
    ),
    pytest.param(
        "/etc/sysctl.d/60-b.conf: net.ipv4.conf.all.rp_filter=2\n/usr/lib/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=1",
        BootValue("2", "/etc/sysctl.d/60-b.conf"),
        id="the other way round",
    ),
    pytest.param(
        "/etc/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=2\n/usr/lib/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=1",
        BootValue("2", "/etc/sysctl.d/50-a.conf"),
        id="same name hides",
    ),
    pytest.param(
        "/run/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=2\n/usr/local/lib/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=1",
        BootValue("2", "/run/sysctl.d/50-a.conf"),
        id="run before local",
    ),
    pytest.param(
        "/usr/local/lib/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=2\n/usr/lib/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=1",
        BootValue("2", "/usr/local/lib/sysctl.d/50-a.conf"),
        id="local before vendor",
    ),
    pytest.param(
        "/etc/sysctl.d/50-a.conf -> /dev/null\n/usr/lib/sysctl.d/50-a.conf: net.ipv4.conf.all.rp_filter=1",
        None,
        id="masked",
    ),
    pytest.param("/etc/sysctl.d/a: net.ipv4.conf.all.rp_filter=1", None, id="no conf"),
    pytest.param("/etc/sysctl.d/.a.conf: net.ipv4.conf.all.rp_filter=1", None, id="hidden"),
    pytest.param(
        "/etc/sysctl.conf: net.ipv4.conf.all.rp_filter=1\n/etc/sysctl.d/99-sysctl.conf -> ../sysctl.conf",
        BootValue("1", "/etc/sysctl.d/99-sysctl.conf"),
        id="Debian's link",
    ),
    pytest.param("/etc/sysctl.conf: net.ipv4.conf.all.rp_filter=1", None, id="sysctl.conf is not read by itself"),
    pytest.param(
        r"/etc/sysctl.d/a.conf: net.ipv4.conf.all.rp_filter=1\nnet.ipv4.conf.all.rp_filter=0",
        BootValue("0", "/etc/sysctl.d/a.conf"),
        id="the later line",
    ),
    pytest.param(
        "/etc/sysctl.d/a.conf: net.ipv4.conf.*.rp_filter=1", BootValue("1", "/etc/sysctl.d/a.conf"), id="pattern"
    ),
    pytest.param(
        "/etc/sysctl.d/a.conf: net.ipv4.conf.all.rp_filter=2\n/etc/sysctl.d/b.conf: net.ipv4.conf.*.rp_filter=1",
        BootValue("2", "/etc/sysctl.d/a.conf"),
        id="a named key outranks a later pattern",
    ),
    pytest.param(
        r"/etc/sysctl.d/a.conf: net.ipv4.conf.*.rp_filter=1\n-net.ipv4.conf.all.rp_filter", None, id="excluded from the pattern"
    ),
    pytest.param(
        r"/etc/sysctl.d/a.conf: net.ipv4.conf.all.rp_filter=1\n-net.ipv4.conf.all.rp_filter", None, id="excluded after it was named"
    ),
    pytest.param(
        r"/etc/sysctl.d/a.conf: -net.ipv4.conf.all.rp_filter\nnet.ipv4.conf.all.rp_filter=1",
        BootValue("1", "/etc/sysctl.d/a.conf"),
        id="named after it was excluded",
    ),
    pytest.param(
        r"/etc/sysctl.d/a.conf: net.ipv4.conf.*.rp_filter=1\n-net.ipv4.conf.a*.rp_filter",
        BootValue("1", "/etc/sysctl.d/a.conf"),
        id="a pattern excludes nothing",
    ),
    pytest.param(
        "/etc/sysctl.d/a.conf: net.ipv4.conf.*.rp_filter=1\n/etc/sysctl.d/b.conf: net.ipv4.*.all.rp_filter=2",
        BootValue("2", "/etc/sysctl.d/b.conf"),
        id="the later pattern",
    ),
    pytest.param(
        r"/etc/sysctl.d/a.conf: net.ipv4.conf.*.rp_filter=1\nnet.ipv4.*.all.rp_filter=2\nnet.ipv4.conf.*.rp_filter=1",
        BootValue("2", "/etc/sysctl.d/a.conf"),
        id="a pattern repeated stays where it was",
    ),
    pytest.param(
        r"/etc/sysctl.d/a.conf: net.ipv4.conf.*.rp_filter=0\nnet.ipv4.*.all.rp_filter=2\nnet.ipv4.conf.*.rp_filter=1",
        BootValue("1", "/etc/sysctl.d/a.conf"),
        id="a pattern set again moves to the end",
    ),
    pytest.param(
        r"/etc/sysctl.d/a.conf: nonsense\nnet.ipv4.conf.all.rp_filter=1", BootValue("1", "/etc/sysctl.d/a.conf"), id="nonsense before it"
    ),
    pytest.param(
        "/etc/sysctl.d/d.conf/x: y\n/etc/sysctl.d/loop.conf -> loop.conf\n/etc/sysctl.d/a.conf: net.ipv4.conf.all.rp_filter=1",
        BootValue("1", "/etc/sysctl.d/a.conf"),
        id="what cannot be read as a file",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "expected"), BOOTS)
def test_boot_values(tmp_path: Path, tree: str, expected: BootValue | None) -> None:
    assert boot_values(SysRoot(str(write_tree(tmp_path, tree))), [KEY]) == {KEY: expected}


def test_keys_are_answered_as_they_were_asked(tmp_path: Path) -> None:
    write_tree(tmp_path, "/etc/sysctl.d/a.conf: net.ipv4.conf.eth0/100.rp_filter = 2\n/proc/sys/net/ipv4/conf/eth0.100/rp_filter: 1")
    keys = ["net/ipv4/conf/eth0.100/rp_filter", "net.ipv4.conf.eth0/100.rp_filter"]
    assert boot_values(SysRoot(str(tmp_path)), keys) == dict.fromkeys(keys, BootValue("2", "/etc/sysctl.d/a.conf"))
    assert live_values(SysRoot(str(tmp_path)), keys) == dict.fromkeys(keys, "1")


def test_live_values(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE + "/proc/sys/net/ipv4/ip_local_reserved_ports: ")
    keys = [TCP_RMEM, "net.ipv4.ip_local_reserved_ports", "net.ipv4.none"]
    assert list(live_values(SysRoot(str(tmp_path)), keys).values()) == ["4096 131072 6291456", "", None]


def test_live_values_of_this_machine() -> None:
    assert live_values(SysRoot(), ["kernel.osrelease"]) == {"kernel.osrelease": os.uname().release}


def test_a_key_that_can_only_be_written_has_no_value() -> None:
    class Sealed(SysRoot):
        def read(self, path: str) -> str | None:
            raise PermissionError(errno.EACCES, "Permission denied", path)

    assert live_values(Sealed(), ["net.ipv4.route.flush"]) == {"net.ipv4.route.flush": None}


def ensure(
    root: Path, settings: dict[str, str], *, check_mode: bool = False, replace_allowed: bool = True, in_use: str = ""
) -> SysctlResult:
    return ensure_sysctl(
        settings,
        sys=SysRoot(str(root)),
        writer=Writer(str(root)),
        check_mode=check_mode,
        replace_allowed=replace_allowed,
        in_use=in_use,
    )


def live(root: Path, key: str) -> str:
    return (root / "proc/sys" / path_of(key)).read_text(encoding="ascii")


def snapshot(root: Path) -> dict[str, tuple[int, str]]:
    """Each file with its inode and content: what was written again is another file."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_text(encoding="utf-8")) for path in files}


def test_writes_the_file_and_only_the_live_values_that_differ(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE)
    untouched = (tmp_path / "proc/sys/net/ipv4/conf/all/arp_announce").stat().st_mtime_ns
    settings = {IGNORE: "1", ANNOUNCE: "2", TCP_RMEM: "4096 131072  6291456"}
    result = ensure(tmp_path, settings)
    assert [(item.key, item.before, item.after) for item in result.live] == [(IGNORE, "0", "1")]
    assert (tmp_path / FILE[1:]).read_text().splitlines()[1:] == [
        "net.ipv4.conf.all.arp_announce = 2", "net.ipv4.conf.all.arp_ignore = 1", "net.ipv4.tcp_rmem = 4096 131072 6291456",
    ]  # fmt: skip
    assert live(tmp_path, IGNORE) == "1\n"
    assert (tmp_path / "proc/sys/net/ipv4/conf/all/arp_announce").stat().st_mtime_ns == untouched
    assert [diff["after_header"] for diff in result.diffs] == [FILE, "live sysctl"]
    assert result.diffs[1]["before"] == "net.ipv4.conf.all.arp_ignore = 0\n"
    assert result.diffs[1]["after"] == "net.ipv4.conf.all.arp_ignore = 1\n"
    before = snapshot(tmp_path)
    assert not ensure(tmp_path, settings).changed
    assert snapshot(tmp_path) == before


def test_check_mode_shows_all_and_changes_nothing(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE + "/etc/sysctl.d/zz.conf: net.ipv4.conf.all.arp_ignore=0")
    before = snapshot(tmp_path)
    result = ensure(tmp_path, {IGNORE: "1", "net.ipv4.none": "1"}, check_mode=True)
    assert [diff["after_header"] for diff in result.diffs] == [FILE, "/etc/sysctl.d/zz.conf", "live sysctl"]
    assert result.diffs[2]["before"] == "net.ipv4.conf.all.arp_ignore = 0\nnet.ipv4.none = (no such key)\n"
    assert snapshot(tmp_path) == before


def test_a_file_after_ours_gets_its_line_commented_out(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE + r"/etc/sysctl.d/local.conf: # ours\nnet.ipv4.ip_forward = 1\n  net/ipv4/conf/all/arp_ignore=0\n# end")
    (tmp_path / "etc/sysctl.d/local.conf").chmod(0o640)
    result = ensure(tmp_path, {IGNORE: "1"})
    text = (tmp_path / "etc/sysctl.d/local.conf").read_text()
    assert text == (
        "# ours\nnet.ipv4.ip_forward = 1\n# Taken out by rdma.cluster: it comes after 99-zz-rdma-cluster.conf, which sets this key.\n"
        "#   net/ipv4/conf/all/arp_ignore=0\n# end\n"
    )
    assert (tmp_path / "etc/sysctl.d/local.conf").stat().st_mode & 0o777 == 0o640
    assert [change.path for change in result.files] == [FILE, "/etc/sysctl.d/local.conf"]
    assert result.files[1].after == text
    assert not ensure(tmp_path, {IGNORE: "1"}).changed


def test_a_line_that_takes_our_key_out_is_commented_out_too(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE + "/etc/sysctl.d/zz.conf: -net.ipv4.conf.all.arp_ignore")
    ensure(tmp_path, {IGNORE: "1"})
    assert (tmp_path / "etc/sysctl.d/zz.conf").read_text().splitlines()[-1] == "# -net.ipv4.conf.all.arp_ignore"


KEPT = [
    ("/etc/sysctl.d/zz.conf", "net/ipv4/conf/all/arp_ignore=0", "sets net.ipv4.conf.all.arp_ignore = 0"),
    ("/run/sysctl.d/zz.conf", "net.ipv4.conf.all.arp_ignore = 0", "sets net.ipv4.conf.all.arp_ignore = 0"),
    ("/etc/sysctl.d/zz.conf", "-net.ipv4.conf.all.arp_ignore", "removes net.ipv4.conf.all.arp_ignore"),
]


@pytest.mark.parametrize(("file", "line", "words"), KEPT)
def test_a_line_of_others_stays_and_so_does_the_live_value(tmp_path: Path, file: str, line: str, words: str) -> None:
    """That is the default. The other settings are written."""
    write_tree(tmp_path, LIVE + rf"{file}: # site\n{line}")
    text = (tmp_path / file[1:]).read_text()
    result = ensure(tmp_path, {IGNORE: "1", ANNOUNCE: "1"}, replace_allowed=False)
    assert result.withheld == [f"{file}:2 {words}, requested 1"]
    assert ((tmp_path / file[1:]).read_text(), live(tmp_path, IGNORE), live(tmp_path, ANNOUNCE)) == (text, "0\n", "1\n")
    assert ([change.path for change in result.files], [change.key for change in result.live]) == ([FILE], [ANNOUNCE])
    again = ensure(tmp_path, {IGNORE: "1", ANNOUNCE: "1"}, replace_allowed=False)
    assert (again.changed, again.withheld) == (False, result.withheld)


def test_check_mode_shows_the_difference_and_that_it_would_stay(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE + "/etc/sysctl.d/zz.conf: net.ipv4.conf.all.arp_ignore=0")
    before = snapshot(tmp_path)
    result = ensure(tmp_path, {IGNORE: "1"}, check_mode=True, replace_allowed=False)
    assert [diff["after_header"] for diff in result.diffs] == [FILE, "/etc/sysctl.d/zz.conf", "live sysctl"]
    assert len(result.withheld) == 1
    assert snapshot(tmp_path) == before


EARLIER = [
    pytest.param("/etc/sysctl.d/10-site.conf: net.ipv4.conf.all.arp_ignore=0", "", "1\n", id="idle"),
    pytest.param("/etc/sysctl.d/10-site.conf: net.ipv4.conf.all.arp_ignore=0", "a job", "0\n", id="in use"),
    pytest.param("/run/sysctl.d/10-site.conf: net.ipv4.conf.all.arp_ignore=0", "a job", "0\n", id="in use, of a program"),
    pytest.param("/usr/lib/sysctl.d/10-site.conf: net.ipv4.conf.all.arp_ignore=0", "a job", "1\n", id="the distribution's"),
    pytest.param("/etc/sysctl.d/10-site.conf: net.ipv4.conf.all.arp_ignore=1", "a job", "1\n", id="the same value"),
    pytest.param("/etc/sysctl.d/10-site.conf: net.ipv4.conf.*.arp_ignore=0", "a job", "1\n", id="a pattern"),
]


@pytest.mark.parametrize(("tree", "in_use", "after"), EARLIER)
def test_a_live_value_that_a_line_of_others_sets_changes_on_an_idle_host(tmp_path: Path, tree: str, in_use: str, after: str) -> None:
    write_tree(tmp_path, LIVE + tree)
    result = ensure(tmp_path, {IGNORE: "1"}, replace_allowed=False, in_use=in_use)
    words = f"{tree.partition(':')[0]}:1 sets {IGNORE} = 0, live 0, requested 1 (a job)"
    assert (live(tmp_path, IGNORE), result.withheld) == (after, [words] if after == "0\n" else [])


LEFT_ALONE = [
    "/etc/sysctl.d/99-sysctl.conf: net.ipv4.conf.all.arp_ignore=0",
    "/etc/sysctl.d/zz.conf: net.ipv4.conf.all.arp_ignore = 1",
    "/etc/sysctl.d/zz.conf: net.ipv4.conf.*.arp_ignore = 0",
    "/etc/sysctl.d/zz.conf: -net.ipv4.conf.*.arp_ignore",
    "/etc/sysctl.d/y.conf: net.ipv4.conf.all.arp_ignore = 0\n/usr/lib/sysctl.d/z.conf: net.ipv4.conf.all.arp_ignore = 1",
    "/usr/lib/sysctl.d/z.conf: net.ipv4.conf.all.arp_ignore = 0\n/etc/sysctl.d/z.conf -> /dev/null",
]


@pytest.mark.parametrize("tree", LEFT_ALONE)
def test_what_is_in_nobody_s_way_is_left_alone(tmp_path: Path, tree: str) -> None:
    write_tree(tmp_path, LIVE + tree)
    assert [change.path for change in ensure(tmp_path, {IGNORE: "1"}).files] == [FILE]


def test_a_link_within_etc_stays_one(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE + "/etc/sysctl.conf: net.ipv4.conf.all.arp_ignore = 0\n/etc/sysctl.d/zz-sysctl.conf -> ../sysctl.conf")
    assert [change.path for change in ensure(tmp_path, {IGNORE: "1"}).files] == [FILE, "/etc/sysctl.conf"]
    assert (tmp_path / "etc/sysctl.d/zz-sysctl.conf").is_symlink()
    assert (tmp_path / "etc/sysctl.conf").read_text().endswith("# net.ipv4.conf.all.arp_ignore = 0\n")


ELSEWHERE = [
    (
        "/usr/lib/sysctl.d/zz.conf: net.ipv4.conf.all.arp_ignore = 0",
        r"/usr/lib/sysctl.d/zz.conf sets it to '0': remove the key from .*, or mask .* a link /etc/sysctl.d/zz.conf to /dev/null",
    ),
    ("/run/sysctl.d/zz.conf: net.ipv4.conf.all.arp_ignore = 0", r"/run/sysctl.d/zz.conf sets it to '0'"),
    ("/opt/zz.conf: net.ipv4.conf.all.arp_ignore = 0\n/etc/sysctl.d/zz.conf -> /opt/zz.conf", r"/etc/sysctl.d/zz.conf sets it to '0'"),
    ("/run/sysctl.d/zz.conf: -net.ipv4.conf.all.arp_ignore", "removes it with a line that begins with '-'"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "message"), ELSEWHERE)
def test_a_file_elsewhere_is_not_edited_and_is_an_error_with_what_to_do(tmp_path: Path, tree: str, message: str) -> None:
    write_tree(tmp_path, LIVE + tree)
    before = snapshot(tmp_path)
    checked = ensure(tmp_path, {IGNORE: "1"}, check_mode=True)
    assert "in the way of net.ipv4.conf.all.arp_ignore: remove the key" in checked.diffs[-1]["before"]
    assert snapshot(tmp_path) == before
    with pytest.raises(ApplyError, match=message):
        ensure(tmp_path, {IGNORE: "1"})
    after = snapshot(tmp_path)
    assert {path for path in before if before[path] != after[path]} == {str(tmp_path / "proc/sys" / path_of(IGNORE))}
    assert ensure(tmp_path, {IGNORE: "1"}, check_mode=True).changed


def test_a_file_that_is_no_utf_8_is_not_edited(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE + "/etc/sysctl.d/x: ")
    data = b"# \xfcber\nnet.ipv4.conf.all.arp_ignore = 0\n"
    (tmp_path / "etc/sysctl.d/zz.conf").write_bytes(data)
    with pytest.raises(ApplyError, match=r"remove the key from /etc/sysctl.d/zz.conf"):
        ensure(tmp_path, {IGNORE: "1"})
    assert (tmp_path / "etc/sysctl.d/zz.conf").read_bytes() == data


def test_line_ends_of_an_edited_file_stay(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE + "/etc/sysctl.d/x: ")
    (tmp_path / "etc/sysctl.d/zz.conf").write_bytes(b"# a\r\nnet.ipv4.conf.all.arp_ignore = 0\r\n")
    ensure(tmp_path, {IGNORE: "1"})
    lines = (tmp_path / "etc/sysctl.d/zz.conf").read_bytes().split(b"\n")
    assert (lines[0], lines[2:]) == (b"# a\r", [b"# net.ipv4.conf.all.arp_ignore = 0\r", b""])


class Stubborn(Writer):
    """A kernel that does not take one key's value; the others it does."""

    def __init__(self, root: str, key: str, error: OSError | None = None) -> None:
        super().__init__(root)
        self.stuck, self.error = path_of(key), error

    def value(self, path: str, value: str) -> None:
        if path != self.stuck:
            super().value(path, value)
        elif self.error is not None:
            raise self.error


REFUSALS = [
    (None, r"arp_ignore should be '1', but after writing it is '0'\."),
    (OSError(errno.EINVAL, "Invalid argument"), r"arp_ignore should be '1', but after writing it is '0' \(Invalid argument\)\."),
]


@pytest.mark.parametrize(("error", "message"), REFUSALS)
def test_a_value_that_does_not_stick_is_an_error_and_the_others_are_written(tmp_path: Path, error: OSError | None, message: str) -> None:
    write_tree(tmp_path, LIVE)
    with pytest.raises(ApplyError, match=message):
        ensure_sysctl(
            {IGNORE: "1", ANNOUNCE: "1"},
            sys=SysRoot(str(tmp_path)),
            writer=Stubborn(str(tmp_path), IGNORE, error),
            check_mode=False,
            replace_allowed=False,
        )
    assert live(tmp_path, ANNOUNCE) == "1\n"


def test_a_key_that_is_not_there_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE)
    with pytest.raises(ApplyError, match=r"net.ipv4.none should be '1', but there is no such key"):
        ensure(tmp_path, {"net.ipv4.none": "1"})
    assert not (tmp_path / "proc/sys/net/ipv4/none").exists()


def test_no_settings_removes_the_file_and_leaves_live_values(tmp_path: Path) -> None:
    write_tree(tmp_path, LIVE)
    ensure(tmp_path, {IGNORE: "1"})
    result = ensure(tmp_path, {})
    assert [(change.path, change.after) for change in result.files] == [(FILE, None)]
    assert not (tmp_path / FILE[1:]).exists()
    assert live(tmp_path, IGNORE) == "1\n"
    assert not ensure(tmp_path, {}).changed


def test_an_interface_with_a_dot_in_its_name(tmp_path: Path) -> None:
    write_tree(tmp_path, "/proc/sys/net/ipv4/conf/eth0.100/rp_filter: 1\n/etc/sysctl.d/zz.conf: net.ipv4.conf.eth0/100.rp_filter=0")
    ensure(tmp_path, {"net/ipv4/conf/eth0.100/rp_filter": "2"})
    assert (tmp_path / "proc/sys/net/ipv4/conf/eth0.100/rp_filter").read_text() == "2\n"
    assert (tmp_path / FILE[1:]).read_text().splitlines()[1:] == ["net/ipv4/conf/eth0.100/rp_filter = 2"]
    assert boot_values(SysRoot(str(tmp_path)), ["net.ipv4.conf.eth0/100.rp_filter"]) == {
        "net.ipv4.conf.eth0/100.rp_filter": BootValue("2", FILE)
    }


@pytest.mark.parametrize("value", ["", "  ", "1\n2", "1;2", "$(x)", "|/bin/x", "1\t2", "ä", "1\n"])
def test_a_value_that_is_none_is_refused_before_anything_is_written(tmp_path: Path, value: str) -> None:
    write_tree(tmp_path, LIVE)
    before = snapshot(tmp_path)
    with pytest.raises(ApplyError, match=r"net.ipv4.conf.all.arp_announce cannot be"):
        ensure(tmp_path, {IGNORE: "1", ANNOUNCE: value})
    assert snapshot(tmp_path) == before


def test_all_settings_that_are_none_are_listed(tmp_path: Path) -> None:
    settings = {"net.ipv4.conf.*.rp_filter": "1", IGNORE: "1;", "net.ipv4.tcp_ecn": "1", "net/ipv4/tcp_ecn": "2"}
    with pytest.raises(ApplyError) as caught:
        ensure(tmp_path, settings)
    assert str(caught.value) == (
        "These kernel settings cannot be made: "
        "not the name of a kernel setting: 'net.ipv4.conf.*.rp_filter', expected the form 'net.ipv4.conf.all.rp_filter'; "
        "net.ipv4.conf.all.arp_ignore cannot be '1;': a value is one line of letters, digits, spaces and . _ : / -; "
        "net.ipv4.tcp_ecn has two planned values, '1' and '2'."
    )
