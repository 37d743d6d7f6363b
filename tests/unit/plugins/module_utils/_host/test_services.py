# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remote services in the files of chrony, systemd-timesyncd and rsyslog, and NFS mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.services import (
    Remote,
    is_address,
    parse_chrony_servers,
    parse_nfs_servers,
    parse_rsyslog_targets,
    parse_timesyncd_servers,
    read_remotes,
)
from tests.unit.builders.trees import write_tree


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("*.* @10.0.0.1\n", ["10.0.0.1"]),
        ("*.* @@10.0.0.1:514;RSYSLOG_ForwardFormat\n", ["10.0.0.1"]),
        ("*.*\t@@(o,z9)[2001:db8::1]:6514\n", ["2001:db8::1"]),
        ("local0.info;mail.none @log.example:514\n", ["log.example"]),
        ("#*.* @10.0.0.1\n  # *.* @10.0.0.2\n", []),
        ("*.* :omusrmsg:root@host\nmail.* -/var/log/mail@1\n$WorkDirectory /var/spool/rsyslog\n", []),
        ('*.* action(type="omfwd" target="10.0.0.1" port="514")\n', ["10.0.0.1"]),
        ('action(type="omfwd"\n  Target="fd00::1"\n  # target="10.0.0.9"\n)\n', ["fd00::1"]),
        ('action(type="omfwd" target=["10.0.0.1"])', ["10.0.0.1"]),
        ('action(type="omfile" file="/x" target="10.0.0.1")\n', []),
    ],
)
def test_targets_of_rsyslog(text: str, targets: list[str]) -> None:
    assert parse_rsyslog_targets(text) == targets


def test_servers_of_the_time_daemons() -> None:
    text = "! server 10.9.9.9\n#pool x\n server 10.0.0.1 iburst\nPool ntp.example iburst maxsources 4\npeer fd00::1\nserverstats\n"
    assert parse_chrony_servers(text) == ["10.0.0.1", "ntp.example", "fd00::1"]
    assert parse_timesyncd_servers("[Time]\n#NTP=\nNTP=10.0.0.1 fd00::1\nFallbackNTP = ntp.example\nRootDistanceMaxSec=5\n") == [
        "10.0.0.1", "fd00::1", "ntp.example",
    ]  # fmt: skip


def test_servers_of_nfs_by_the_address_that_the_kernel_uses() -> None:
    lines = (
        "nas:/a /a nfs rw,vers=3,proto=rdma,mountaddr=10.0.0.9,addr=10.0.0.1 0 0",
        "nas:/b /b nfs4 rw,clientaddr=10.0.0.7,addr=fd00::1 0 0",
        "nas:/c /c nfs4 rw,addr=10.0.0.1 0 0",
        "//x/y /y cifs rw,addr=10.0.0.3 0 0",
        "proc /proc proc rw 0 0",
        "",
    )
    assert parse_nfs_servers("\n".join(lines)) == ["10.0.0.1", "fd00::1"]


def test_each_service_once_and_timesyncd_only_without_chrony(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        """
        /etc/chrony/chrony.conf: server 10.0.0.1 iburst
        /etc/chrony/sources.d/site.sources: server 10.0.0.1\\nserver 10.0.0.2
        /etc/chrony/sources.d/README: server 10.9.9.9
        /etc/systemd/timesyncd.conf: NTP=10.9.9.9
        """,
    )
    assert read_remotes(SysRoot(str(tmp_path))) == [
        Remote("NTP server", "10.0.0.1", "/etc/chrony/chrony.conf"),
        Remote("NTP server", "10.0.0.2", "/etc/chrony/sources.d/site.sources"),
    ]


@pytest.mark.parametrize(("text", "known"), [("10.0.0.1", True), ("fe80::1%eth0", True), ("ntp.example", False), ("", False)])
def test_an_address_and_a_name_differ(text: str, known: bool) -> None:
    assert is_address(text) is known
