# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a service says of its limits: a real /proc/self/limits, and the same with other numbers."""

from __future__ import annotations

from pathlib import Path

ASK = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits"]
REEXEC = (["systemctl", "daemon-reexec"], 0, "", "")
LIMITED = (Path(__file__).parents[1] / "fixtures/proc/limits-6.18.txt").read_text(encoding="utf-8")
OPEN_FILES = "Max open files            20000                20000                files     "
MEMLOCK = "Max locked memory         8388608              8388608              bytes     "


def limits(soft: str, hard: str) -> str:
    return LIMITED.replace(MEMLOCK, f"Max locked memory         {soft:<20} {hard:<20} bytes     ")


def with_files(text: str, number: int) -> str:
    return text.replace(OPEN_FILES, f"Max open files            {number:<20} {number:<20} files     ")


def service(text: str, rc: int = 0) -> tuple[list[str], int, str, str]:
    return (ASK, rc, text, "")


BOUND = service(LIMITED)
FREE = service(with_files(limits("unlimited", "unlimited"), 131072))
