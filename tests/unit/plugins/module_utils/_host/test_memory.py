# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""/proc/meminfo, whole and without its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.memory import Memory, parse_meminfo, read_memory

TEXT = """\
MemTotal:       65780112 kB
MemFree:         1203400 kB
MemAvailable:   32100100 kB
Active(anon):    1234567 kB
Shmem:             12345 kB
HugePages_Total:    1024
HugePages_Free:     1000
Hugepagesize:       2048 kB
Hugetlb:         4194304 kB
"""
KIB = 1024


def test_a_whole_file() -> None:
    assert parse_meminfo(TEXT) == Memory(65780112 * KIB, 32100100 * KIB, 12345 * KIB, 4194304 * KIB, 1000 * 2048 * KIB)
    # Before Linux 4.20 only huge pages of the default size are reported.
    assert parse_meminfo(TEXT.replace("Hugetlb:         4194304 kB\n", "")).huge_bytes == 1024 * 2048 * KIB


def test_what_is_not_reported_is_none_or_not_used() -> None:
    total = parse_meminfo("MemTotal: 1024 kB\n")
    assert total == Memory(1024 * KIB, None)
    assert (total.shared_bytes, total.huge_bytes, total.huge_free_bytes) == (0, 0, 0)


@pytest.mark.parametrize("missing", ["MemTotal"])
def test_a_file_without_what_matters_is_refused(missing: str) -> None:
    text = "".join(line for line in TEXT.splitlines(keepends=True) if not line.startswith(missing))
    with pytest.raises(ParseError, match=f"no {missing} in the memory of a host"):
        parse_meminfo(text)


def test_a_host_without_the_file_has_no_memory_to_report(tmp_path: Path) -> None:
    assert read_memory(SysRoot(str(tmp_path))) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(TEXT)
    memory = read_memory(SysRoot(str(tmp_path)))
    assert memory is not None
    assert memory.total_bytes == 65780112 * KIB
