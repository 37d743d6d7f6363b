# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must be true of this machine before a lab is made: each failure is one sentence."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

from lab import paths
from lab.errors import LabError
from lab.image import need_disk
from lab.plan import Plan
from lab.shell import ENVIRONMENT

PACKAGES = Path(__file__).parent / "packages.txt"
#: One command of each package in packages.txt that has commands.
COMMANDS = (
    *("qemu-system-x86_64", "qemu-img", "mmdebstrap", "mke2fs", "dpkg-scanpackages", "systemd-nspawn", "gpg"),
    *("nft", "ip", "tc", "ssh", "ssh-keygen"),
)

FABRIC_PACKAGES = Path(__file__).parent / "fabric-packages.txt"
FABRIC_COMMANDS = ("ibsim", "opensm", "ibnetdiscover", "ibportstate")


def check(plan: Plan) -> None:
    """LabError for the first thing that is missing."""
    need_root()
    _need_commands(COMMANDS, PACKAGES, "")
    paths.base().mkdir(parents=True, exist_ok=True)
    need_disk(paths.base())
    if plan.kind == "machine" and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise LabError("Machines need /dev/net/tun, and it cannot be opened here.")
    for node in plan.nodes:
        _need_port(node.ssh_port)


def check_fabric() -> None:
    """LabError unless the simulator, the subnet manager and the tools of a fabric are here; root is not needed.

    Debian's opensm starts itself on every InfiniBand port of the machine, beside whatever manager that fabric has: hence the mask.
    """
    _need_commands(FABRIC_COMMANDS, FABRIC_PACKAGES, "systemctl mask opensm.service && ")


def _need_commands(commands: tuple[str, ...], packages: Path, before: str) -> None:
    missing = [name for name in commands if shutil.which(name, path=ENVIRONMENT["PATH"]) is None]
    if missing:
        names = " ".join(line for line in packages.read_text().splitlines() if line and not line.startswith("#"))
        raise LabError(f"Missing on this machine: {', '.join(missing)}. Install them with: {before}apt-get install {names}")


def need_root() -> None:
    if os.geteuid():
        raise LabError("The lab makes network namespaces and mounts: run it as root.")


def _need_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise LabError(f"Port {port} on 127.0.0.1 is in use by another program; choose others with --port-base.") from None
