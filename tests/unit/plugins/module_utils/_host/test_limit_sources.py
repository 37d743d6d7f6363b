# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The line of systemd's configuration that wins, of trees as an administrator leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.limit_sources import (
    LimitSource,
    manager_source,
    parse_setting,
    service_source,
    unit_source,
)
from tests.unit.builders.trees import write_tree

SETS = r": [Manager]\nDefaultLimitMEMLOCK=64M"
UNIT = r": # site\n[Service]\nLimitMEMLOCK=64K"
DROP_INS = [
    (f"/etc/systemd/system.conf.d/10-site.conf{SETS}", "/etc/systemd/system.conf.d/10-site.conf"),
    (f"/usr/lib/systemd/system.conf.d/95-vendor.conf{SETS}", "/usr/lib/systemd/system.conf.d/95-vendor.conf"),
    (f"/etc/systemd/system.conf.d/95-site.txt{SETS}", None),
    ("/etc/systemd/system.conf.d/95-site.conf: [Manager]", None),
    # Hidden by an empty file of its name in /etc.
    (f"/usr/lib/systemd/system.conf.d/95.conf{SETS}\n/etc/systemd/system.conf.d/95.conf: ", None),
    (f"/run/systemd/system.conf.d/97.conf{SETS}\n/etc/systemd/system.conf.d/95.conf{SETS}", "/run/systemd/system.conf.d/97.conf"),
    (f"/etc/systemd/system.conf{SETS}", "/etc/systemd/system.conf"),
    (f"/etc/systemd/system.conf{SETS}\n/etc/systemd/system.conf.d/01.conf{SETS}", "/etc/systemd/system.conf.d/01.conf"),
]


@pytest.mark.parametrize(("tree", "expected"), DROP_INS)
def test_the_default_of_the_manager(tmp_path: Path, tree: str, expected: str | None) -> None:
    sys = SysRoot(str(write_tree(tmp_path, tree)))
    assert manager_source(sys, "MEMLOCK") == (LimitSource(expected, 2, "64M") if expected else None)
    assert manager_source(sys, "NOFILE") is None


UNITS = [
    (f"/usr/lib/systemd/system/slurmd.service{UNIT}", "/usr/lib/systemd/system/slurmd.service"),
    (f"/etc/systemd/system/slurmd.service.d/zz-site.conf{UNIT}", "/etc/systemd/system/slurmd.service.d/zz-site.conf"),
    (f"/etc/systemd/system/service.d/zz-site.conf{UNIT}", "/etc/systemd/system/service.d/zz-site.conf"),
    (f"/etc/systemd/system/sshd.service.d/zz-site.conf{UNIT}", None),
    (
        f"/etc/systemd/system/service.d/zz.conf{UNIT}\n/usr/lib/systemd/system/slurmd.service.d/aa.conf{UNIT}",
        "/etc/systemd/system/service.d/zz.conf",
    ),
    (r"/etc/systemd/system/slurmd.service: [Unit]\nLimitMEMLOCK=64K", None),
]


@pytest.mark.parametrize(("tree", "expected"), UNITS)
def test_a_unit_and_its_drop_ins(tmp_path: Path, tree: str, expected: str | None) -> None:
    found = unit_source(SysRoot(str(write_tree(tmp_path, tree))), "slurmd.service", "MEMLOCK")
    assert found == (LimitSource(expected, 3, "64K") if expected else None)


def test_what_a_transient_service_gets(tmp_path: Path) -> None:
    default = f"/etc/systemd/system.conf.d/90-rdma-cluster.conf{SETS}"
    sys = SysRoot(str(write_tree(tmp_path / "a", default)))
    assert service_source(sys, "MEMLOCK") == LimitSource("/etc/systemd/system.conf.d/90-rdma-cluster.conf", 2, "64M")
    sys = SysRoot(str(write_tree(tmp_path / "b", f"{default}\n/etc/systemd/system/service.d/zz-site.conf{UNIT}")))
    assert service_source(sys, "MEMLOCK") == LimitSource("/etc/systemd/system/service.d/zz-site.conf", 3, "64K")


SETTINGS = [
    ("[Manager]\nDefaultLimitMEMLOCK=64M\n", (2, "64M")),
    ("[Manager]\n DefaultLimitMEMLOCK = 64M \nDefaultLimitMEMLOCK=8M:infinity\n", (3, "8M:infinity")),
    ("[Manager]\n#DefaultLimitMEMLOCK=64M\n;DefaultLimitMEMLOCK=64M\nDefaultLimitNOFILE=1024\n", None),
    ("DefaultLimitMEMLOCK=64M\n[Other]\nDefaultLimitMEMLOCK=64M\n", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), SETTINGS)
def test_the_last_setting_in_its_section_counts(text: str, expected: tuple[int, str] | None) -> None:
    assert parse_setting(text, "[Manager]", "DefaultLimitMEMLOCK") == expected


def test_a_file_that_may_not_be_read_names_no_line(tmp_path: Path) -> None:
    class Closed(SysRoot):
        def read_bytes(self, path: str) -> bytes | None:
            raise PermissionError(13, "Permission denied", path)

    sys = Closed(str(write_tree(tmp_path, f"/etc/systemd/system.conf.d/zz.conf{SETS}")))
    assert service_source(sys, "MEMLOCK") is None
