# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines kept once each, and no more of them than a person reads."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import Lines
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import LogLine


def test_what_differs_in_pointers_and_ports_is_one_line() -> None:
    lines = Lines()
    for number in range(40):
        lines.add(f" peer 10.0.0.2<{number}> of 0x{number:x} failed\n", f"gpu{number:02d}", "net.cc", 7)
    hosts = tuple(f"gpu{number:02d}" for number in range(16))
    assert lines.to_lines() == (LogLine("peer 10.0.0.2<0> of 0x0 failed", "net.cc", 7, 40, hosts),)
    assert lines.left_out == 0


def test_of_one_place_twenty_texts_are_kept() -> None:
    lines = Lines()
    for number in range(50):
        lines.add(f"rank {number}", "gpu1", "net.cc", 7)
    lines.add("another place", "gpu1", "net.cc", 8)
    assert (len(lines.to_lines()), lines.left_out) == (21, 30)


def test_in_all_five_hundred_lines_are_kept() -> None:
    lines = Lines()
    for number in range(600):
        lines.add(f"line {number} {'x' * 1000}", None)
    assert (len(lines.to_lines()), lines.left_out, len(lines.to_lines()[0].text)) == (500, 100, 500)
