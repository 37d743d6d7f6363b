# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a host: a kernel setting is as planned only if it is so now and after a boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import Sysctl, parse_uptime, read_boot
from ansible_collections.rdma.cluster.plugins.module_utils._host.sysctl import BootValue
from tests.unit.builders.trees import write_tree

KEY, FILE = "net.ipv4.conf.all.arp_ignore", "/etc/sysctl.d/90-rdma-cluster.conf"


@pytest.mark.parametrize(
    ("live", "boot", "differs"),
    [
        ("2", "2", False),
        ("1", "2", True),
        ("2", "1", True),
        ("2", "3", True),
        ("1", "1", True),
        (None, "2", True),
        ("2", None, True),
        ("1", None, True),
        (None, None, True),
    ],
)
def test_a_setting_is_as_planned_only_now_and_after_a_boot(live: str | None, boot: str | None, differs: bool) -> None:
    sysctl = Sysctl({KEY: live}, {KEY: None if boot is None else BootValue(boot, FILE)})
    assert sysctl.differs(KEY, "2") is differs


def test_a_setting_that_was_not_read_is_not_proven() -> None:
    assert Sysctl({}, {}).differs(KEY, "2") is True


def test_the_uptime_and_the_boot(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        """
        /proc/uptime: 4711.08 1234.50
        /etc/machine-id: uninitialized
        /proc/sys/kernel/hostname: gpu0001
        /proc/sys/kernel/random/boot_id: aed15043-de8e-499a-b2c1-71cb48a76dae
        """,
    )
    boot = read_boot(SysRoot(str(tmp_path)))
    assert (boot.uptime_seconds, boot.machine_id, boot.hostname) == (4711.08, None, "gpu0001")
    assert boot.boot_id == "aed15043-de8e-499a-b2c1-71cb48a76dae"
    with pytest.raises(ParseError, match="not an uptime"):
        parse_uptime("up 3 days")
