# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has its storage behind RDMA. The line of Lustre is that of a real machine, those of NFS have its form."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.storage_uses import (
    Mount,
    StorageUse,
    mount_protocol,
    parse_mounts,
    read_storage_uses,
)
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.trees import write_tree

LUSTRE = "192.168.65.3@o2ib:192.168.65.4@o2ib:/work-st /work lustre rw,localflock 0 0"
NFS = "10.0.0.1:/export /data nfs4 rw,relatime,vers=4.2,hard,proto=rdma,port=20049,timeo=600,sec=sys,addr=10.0.0.1 0 0"
TCP = "10.0.0.1:/export /data nfs4 rw,relatime,vers=4.2,hard,proto=tcp,timeo=600,sec=sys,addr=10.0.0.1 0 0"
BESIDE = """\
sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0
/dev/sda1 / ext4 rw,relatime,errors=remount-ro 0 0
systemd-1 /proc/sys/fs/binfmt_misc autofs rw,relatime,fd=32,pgrp=1,timeout=0,minproto=5,maxproto=5,direct,pipe_ino=9502 0 0
"""


def test_mounts() -> None:
    text = BESIDE + r"server:/a\040b\134 /mnt/tab\011and\043line\012break nfs rw,proto=tcp 0 0" + "\n /nameless tmpfs rw 0 0\n"
    assert parse_mounts(text)[1:] == [
        Mount("/dev/sda1", "/", "ext4", ("rw", "relatime", "errors=remount-ro")),
        Mount(
            "systemd-1",
            "/proc/sys/fs/binfmt_misc",
            "autofs",
            ("rw", "relatime", "fd=32", "pgrp=1", "timeout=0", "minproto=5", "maxproto=5", "direct", "pipe_ino=9502"),
        ),
        Mount("server:/a b\\", "/mnt/tab\tand#line\nbreak", "nfs", ("rw", "proto=tcp")),
        Mount("", "/nameless", "tmpfs", ("rw",)),
    ]


def test_no_mounts() -> None:
    assert parse_mounts("") == []


@pytest.mark.parametrize("line", ["sysfs /sys sysfs rw 0", "sysfs /sys sysfs rw 0 0 0", "36 35 98:0 / /mnt rw - ext3 /dev/root rw"])
def test_another_line_is_quoted(line: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_mounts(f"{BESIDE}{line}\n")
    assert repr(line) in str(caught.value)


@given(text=garbled(BESIDE + NFS))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_mounts, text)


@pytest.mark.parametrize(
    ("line", "protocol"),
    [
        pytest.param(NFS, "NFS", id="NFS 4"),
        pytest.param(NFS.replace("nfs4", "nfs").replace("=rdma", "=rdma6"), "NFS", id="NFS 3, IPv6"),
        pytest.param(TCP, None, id="NFS by TCP"),
        pytest.param(TCP.replace("sec=sys", "mountproto=rdma"), None, id="another option of NFS"),
        pytest.param(LUSTRE, "Lustre", id="Lustre"),
        pytest.param(LUSTRE.replace("@o2ib", "@o2ib12"), "Lustre", id="another network of Lustre"),
        pytest.param(LUSTRE.replace("4@o2ib", "4@tcp"), "Lustre", id="Lustre, one server by TCP"),
        pytest.param(LUSTRE.replace("@o2ib", "@tcp"), None, id="Lustre by TCP"),
        pytest.param("//files/home /home cifs rw,vers=3.1.1,addr=10.0.0.1,rdma,sec=none 0 0", "SMB", id="SMB Direct"),
        pytest.param("//files/home /home cifs rw,vers=3.1.1,addr=10.0.0.1,sec=none 0 0", None, id="SMB by TCP"),
        pytest.param("tmpfs /rdma tmpfs rw,rdma,proto=rdma 0 0", None, id="no network"),
    ],
)
def test_what_a_mount_rides(line: str, protocol: str | None) -> None:
    assert mount_protocol(parse_mounts(line)[0]) == protocol


#: /sys of a host with a local NVMe drive and remote ones by TCP and RDMA, and an iSCSI session each by TCP and iSER.
STORAGE = f"""
    /proc/mounts: {(BESIDE + NFS).replace(chr(10), chr(92) + "n")}
    /sys/class/nvme/nvme0 -> ../../devices/pci0000:00/0000:00:01.0/nvme/nvme0
    /sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/transport: pcie
    /sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/address: 0000:00:01.0
    /sys/class/nvme/nvme1 -> ../../devices/virtual/nvme-fabrics/ctl/nvme1
    /sys/devices/virtual/nvme-fabrics/ctl/nvme1/transport: rdma
    /sys/devices/virtual/nvme-fabrics/ctl/nvme1/address: traddr=10.0.0.2,trsvcid=4420,src_addr=10.0.0.9
    /sys/devices/virtual/nvme-fabrics/ctl/nvme1/subsysnqn: nqn.2014-08.org.nvmexpress:scratch
    /sys/class/nvme/nvme2 -> ../../devices/virtual/nvme-fabrics/ctl/nvme2
    /sys/devices/virtual/nvme-fabrics/ctl/nvme2/transport: tcp
    /sys/class/iscsi_session/session1 -> ../../devices/platform/host6/session1/iscsi_session/session1
    /sys/devices/platform/host6/session1/iscsi_session/session1/targetname: iqn.2003-01.org.linux-iscsi.slow
    /sys/class/scsi_host/host6/proc_name: iscsi_tcp
    /sys/class/iscsi_session/session2 -> ../../devices/pci0000:00/0000:3d:00.0/host7/session2/iscsi_session/session2
    /sys/devices/pci0000:00/0000:3d:00.0/host7/session2/iscsi_session/session2/targetname: iqn.2003-01.org.linux-iscsi.fast
    /sys/class/scsi_host/host7/proc_name: iscsi_iser
    /sys/class/iscsi_connection/connection1:0/persistent_address: 10.0.0.3
    /sys/class/iscsi_connection/connection2:0/persistent_address: 10.0.0.4
"""


def test_everything_that_is_in_use(tmp_path: Path) -> None:
    assert read_storage_uses(SysRoot(str(write_tree(tmp_path, STORAGE)))) == [
        StorageUse("mount", "/data from 10.0.0.1:/export by NFS over RDMA"),
        StorageUse("nvme", "nvme1 from 10.0.0.2 by NVMe over RDMA (nqn.2014-08.org.nvmexpress:scratch)"),
        StorageUse("iser", "session2 from 10.0.0.4 by iSER (iqn.2003-01.org.linux-iscsi.fast)"),
    ]


def test_what_is_not_reported_is_left_out_of_the_words(tmp_path: Path) -> None:
    text = """
        /proc/mounts: tmpfs /run tmpfs rw 0 0
        /sys/class/nvme/nvme1/transport: rdma
        /sys/class/iscsi_session/session2 -> ../../devices/platform/host7/session2/iscsi_session/session2
        /sys/class/scsi_host/host7/proc_name: iscsi_iser
    """
    uses = read_storage_uses(SysRoot(str(write_tree(tmp_path, text))))
    assert [use.what for use in uses or ()] == ["nvme1 by NVMe over RDMA", "session2 by iSER"]


def test_nothing_is_in_use(tmp_path: Path) -> None:
    assert read_storage_uses(SysRoot(str(write_tree(tmp_path, f"/proc/mounts: {TCP}")))) == []


def test_where_mounts_are_not_reported_nothing_is_known(tmp_path: Path) -> None:
    assert read_storage_uses(SysRoot(str(write_tree(tmp_path, "/sys/class/nvme/nvme1/transport: rdma")))) is None


def test_another_form_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=r"^/proc/mounts: not a mount: 'nonsense'"):
        read_storage_uses(SysRoot(str(write_tree(tmp_path, "/proc/mounts: nonsense"))))


def test_the_mounts_of_this_system() -> None:
    text = Path("/proc/mounts").read_text(encoding="utf-8")
    assert len(parse_mounts(text)) == text.count("\n") > 0
    assert read_storage_uses(SysRoot("/")) is not None
