# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether machines can use KVM here: the CPU must support it, and /dev/kvm must open."""

from __future__ import annotations

import os
from pathlib import Path

DEVICE = Path("/dev/kvm")
CPUINFO = Path("/proc/cpuinfo")


def usable() -> bool:
    return has_flag() and not refusal()


def has_flag() -> bool:
    """Return whether the CPU reports hardware virtualization, Intel's (vmx) or AMD's (svm)."""
    return bool(set(CPUINFO.read_text().split()) & {"vmx", "svm"})


def refusal() -> str:
    """Return why /dev/kvm cannot be opened ("Permission denied"); "" if it can. Opening is the only proof: a container may refuse root."""
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""


def remark() -> str:
    """Return why machines are emulated although the CPU supports KVM, and the remedy; "" if there is no remedy.

    The lab runs QEMU as root, so no user has to be in the group `kvm`: only a container refuses root.
    """
    if not has_flag() or not (why := refusal()):
        return ""
    if DEVICE.exists():
        return f"{DEVICE} cannot be opened ({why}), so the CPU is emulated, which is slow. In a container: start it with --device {DEVICE}"
    return f"{DEVICE} is missing, so the CPU is emulated, which is slow. On this machine, as root: modprobe kvm_intel || modprobe kvm_amd"
