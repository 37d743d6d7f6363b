# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs in the forms that mlnxofedinstall, DKMS, dpkg, rpm and gcc write: which lines show why, and which logs they name."""

from __future__ import annotations

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._driver import ofed_log as log
from tests.unit.builders.garbled import garbled

# The forms are those of MLNX_OFED 4.5 to 24.10 on Debian's family, as reports of users have them.
DEBIAN = """\
Logs dir: /tmp/MLNX_OFED_LINUX.18160.logs
General log file: /tmp/MLNX_OFED_LINUX.18160.logs/general.log

This program will install the MLNX_OFED_LINUX package on your machine.

Checking SW Requirements...
Removing old packages...
Installing new packages
Installing ofed-scripts-24.10.OFED.24.10.1.1.4...
Installing mlnx-ofed-kernel-dkms-24.10.OFED.24.10.1.1.4.1...

\x1b[31mError: mlnx-ofed-kernel-dkms installation failed!\x1b[0m
Collecting debug info...
See:
\t/tmp/MLNX_OFED_LINUX.18160.logs/mlnx-ofed-kernel-dkms.debinstall.log
Removing newly installed packages...

\x1b[31mFailed to install MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64\x1b[0m
"""
INSTALL_LOG = """\
Setting up mlnx-ofed-kernel-dkms (24.10.OFED.24.10.1.1.4.1-1) ...
Loading new mlnx-ofed-kernel-24.10.OFED.24.10.1.1.4.1 DKMS files...
Building initial module for 6.8.0-58-generic
Error! Bad return status for module build on kernel: 6.8.0-58-generic (x86_64)
Consult /var/lib/dkms/mlnx-ofed-kernel/24.10.OFED.24.10.1.1.4.1/build/make.log for more information.
dpkg: error processing package mlnx-ofed-kernel-dkms (--install):
 installed mlnx-ofed-kernel-dkms package post-installation script subprocess returned error exit status 10
"""
MAKE_LOG = "\n".join(
    [
        "DKMS make.log for mlnx-ofed-kernel-24.10.OFED.24.10.1.1.4.1 for kernel 6.8.0-58-generic (x86_64)",
        *(f"/var/lib/dkms/x/build/main.c:{line}:14: error: unknown type name 'f{line}'" for line in range(100, 120)),
        "/var/lib/dkms/x/build/main.c:9:14: warning: unused variable",
        "make[2]: *** [scripts/Makefile.build:243: drivers/net/main.o] Error 1",
    ]
)
RED_HAT = """\
Note: This program will create MLNX_OFED_LINUX TGZ for rhel8.3 under /tmp/MLNX_OFED_LINUX-4.9 directory.
See log file /tmp/MLNX_OFED_LINUX-4.9/mlnx_iso.1_logs/mlnx_ofed_iso.1.log

ERROR: Failed executing "MLNX_OFED_SRC-4.9/install.pl --tmpdir /tmp/x --kernel-only"
ERROR: See /tmp/MLNX_OFED_LINUX-4.9/mlnx_iso.1_logs/mlnx_ofed_iso.1.log
Failed to build MLNX_OFED_LINUX for 4.18.0-240.22.1.el8.x86_64
"""


def test_the_first_cause_stands_in_its_order_and_repetition_does_not() -> None:
    lines = log.decisive("\n".join([DEBIAN, INSTALL_LOG, MAKE_LOG]))
    assert lines == [
        "Error: mlnx-ofed-kernel-dkms installation failed!",
        "Failed to install MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64",
        "Error! Bad return status for module build on kernel: 6.8.0-58-generic (x86_64)",
        "dpkg: error processing package mlnx-ofed-kernel-dkms (--install):",
        "installed mlnx-ofed-kernel-dkms package post-installation script subprocess returned error exit status 10",
        *(f"/var/lib/dkms/x/build/main.c:{line}:14: error: unknown type name 'f{line}'" for line in range(100, 103)),
        "make[2]: *** [scripts/Makefile.build:243: drivers/net/main.o] Error 1",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Error! Your kernel headers for kernel 6.8.0-58-generic cannot be found at /lib/modules/6.8.0-58-generic/build",
        "Your kernel headers for kernel 4.9.25 cannot be found at",
        "tar: x.ko: Cannot write: No space left on device",
        "modprobe: ERROR: could not insert 'mlx5_core': Required key not available",
        "mlx5_core: Unknown symbol ib_register_device (err -22)",
        "nvme: disagrees about version of symbol nvme_stop_ctrl",
        'ERROR: modpost: "mlx5_cmd" [/build/mlx5_ib.ko] undefined!',
        "/bin/sh: 1: gcc: not found",
        "ERROR: 'createrepo' is not installed!",
        "Unsupported installation option: '--with-nvfm'",
        "Error: The current MLNX_OFED_LINUX is intended for debian12.1",
        "yum install libusbx tcl fuse-libs tk",
        "E: Unable to locate package dkms",
        "error: Failed dependencies:",
        "    Bad exit status from /var/tmp/rpm-tmp.pCtjOS (%install)",
        "drivers/infiniband/core/cma.c:77:10: fatal error: rdma/rdma_cm.h: No such file or directory",
    ],
)
def test_each_of_these_lines_is_decisive(line: str) -> None:
    assert log.decisive(f"Installing x...\n{line}\nDone.\n") == [line.strip()]


@pytest.mark.parametrize(
    "line",
    [
        "Installing libibverbs1-2410mlnx54...",
        "Error! echo",
        "  CC [M]  drivers/error.o",
        "ERROR: See /tmp/a.log",
        "a.c:1:2: warning: error: no",
    ],
)
def test_and_of_these_none(line: str) -> None:
    assert log.decisive(line) == []


def test_at_most_twelve_of_at_most_three_hundred_characters_and_the_cause_is_never_pushed_out() -> None:
    text = [f"{word}: *** {number}" for word in ("make", "gmake") for number in range(20)]
    text += [f"Error! a{number}" for number in range(9)] + [f"dpkg: error {number}" for number in range(9)]
    text += [f"ERROR: b{number}" for number in range(9)] + [f"error: c{number}" for number in range(9)]
    text += [f"dnf install {number}" for number in range(9)] + [f"x.c:{'1' * 500}", f"x.c:1:1: error: {'y' * 900}"]
    lines = log.decisive("\n".join(text))
    assert len(lines) == log.MOST_LINES
    assert max(map(len, lines)) == log.MOST_CHARACTERS
    assert lines[-1].startswith("x.c:1:1: error: yyy")


def test_logs_that_are_named() -> None:
    assert log.log_paths(DEBIAN) == [
        "/tmp/MLNX_OFED_LINUX.18160.logs/mlnx-ofed-kernel-dkms.debinstall.log",
        "/tmp/MLNX_OFED_LINUX.18160.logs/general.log",
    ]
    assert log.log_paths(INSTALL_LOG) == ["/var/lib/dkms/mlnx-ofed-kernel/24.10.OFED.24.10.1.1.4.1/build/make.log"]
    assert log.log_paths(RED_HAT) == ["/tmp/MLNX_OFED_LINUX-4.9/mlnx_iso.1_logs/mlnx_ofed_iso.1.log"]
    assert log.log_paths("a/b.log x.log /etc/shadow /tmp/*.log /var/log.d/x") == []


def test_how_far_it_is() -> None:
    assert log.progress(DEBIAN[: DEBIAN.index("\n\n\x1b")]) == "Installing mlnx-ofed-kernel-dkms-24.10.OFED.24.10.1.1.4.1..."
    assert log.progress("Building initial module for 6.8.0-58-generic\n..........\n") == "Building initial module for 6.8.0-58-generic"
    assert log.progress("first\r 50 %\rlast\n\n") == "last"
    assert log.progress("") is None


def test_a_build_that_failed_whatever_the_exit_status() -> None:
    assert log.build_failed(INSTALL_LOG) == ["Error! Bad return status for module build on kernel: 6.8.0-58-generic (x86_64)"]
    assert log.build_failed("Error! There are no instances of module: mlnx-ofed-kernel\n") == []


def test_the_end_of_a_log() -> None:
    assert log.tail("a\nb\nc\n", 2) == ["b", "c"]
    assert log.tail(" \n", 2) == []


@given(garbled("\n".join([DEBIAN, INSTALL_LOG, RED_HAT])))
def test_any_text_is_read(text: str) -> None:
    lines = log.decisive(text)
    assert len(lines) <= log.MOST_LINES
    assert len(set(lines)) == len(lines)
    assert all(0 < len(line) <= log.MOST_CHARACTERS for line in lines)
    assert all(path.startswith("/") and path.endswith(".log") for path in log.log_paths(text))
    answer = log.progress(text)
    assert answer is None or 0 < len(answer) <= log.MOST_CHARACTERS
