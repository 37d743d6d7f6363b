# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check this machine for the requirements of a lab: all missing ones are reported at once, each with its remedy.

`python3 -m lab.preflight` runs before anything is installed: it needs only Python, and does not check what `make prepare` installs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab import container, image, paths
from lab.errors import LabError
from lab.plan import Plan, make_plan
from lab.shell import ENVIRONMENT, run

AS_ROOT = Path(__file__).parent / "as_root"
PROGRAM = Path(__file__).parent / "lab"
PACKAGES = Path(__file__).parent / "packages.txt"
#: One command of each package in packages.txt that has commands.
COMMANDS = (
    *("qemu-system-x86_64", "qemu-img", "mmdebstrap", "mke2fs", "dpkg-scanpackages", "systemd-nspawn", "gpg"),
    *("nft", "ip", "tc", "ssh", "ssh-keygen"),
)

FABRIC_PACKAGES = Path(__file__).parent / "fabric-packages.txt"
FABRIC_COMMANDS = ("ibsim", "opensm", "ibnetdiscover", "ibportstate")

CLOS_PACKAGES = Path(__file__).parent / "clos-packages.txt"
CLOS_COMMANDS = ("vtysh", "lldpcli", "ip", "nft")

TUN = Path("/dev/net/tun")
MEMINFO = Path("/proc/meminfo")
#: The memory of a machine and its QEMU: docs/lab.md, What it needs.
MACHINE_MIB = 896
OLDEST_PYTHON = (3, 11)
PRIVILEGED = "if this is a container, start it with --privileged"


def check(plan: Plan) -> None:
    """Raise LabError with all missing requirements of a lab, if there are any."""
    _refuse(plan, [*_before_packages(plan), *_packages(), *_ports(plan), *_privileges(plan)])
    if plan.clos:
        check_clos()


def check_fabric() -> None:
    """Raise LabError unless the simulator, the subnet manager and the tools of a fabric are installed.

    The remedy masks Debian's opensm, which would start on every InfiniBand port of the machine, beside the manager of that real fabric.
    """
    if missing := _missing(FABRIC_COMMANDS):
        names = " ".join(image.words(FABRIC_PACKAGES))
        raise LabError(f"Missing on this machine: {missing}. Install them with: systemctl mask opensm.service && apt-get install {names}")


def check_clos() -> None:
    """Raise LabError unless FRR, lldpd and the tools of a routed Clos network are installed.

    The remedy masks Debian's services, which would start daemons of this machine itself.
    """
    if missing := _missing(CLOS_COMMANDS):
        names = " ".join(image.words(CLOS_PACKAGES))
        masked = "systemctl mask frr.service lldpd.service"
        raise LabError(f"Missing on this machine: {missing}. Install them with: {masked} && apt-get install {names}")


def need_folder() -> None:
    """Continue as root if only root may write to the lab's folder, as after `make lab`. Otherwise a fabric alone needs no root."""
    if not os.access(_existing(paths.fabrics()), os.W_OK):
        need_root(f"to write below {paths.base()} (RDMA_LAB_DIR can be a folder of yours)")


def need_root(what_for: str = "to make network namespaces, mounts and control groups") -> None:
    """Continue as root: for other users, the command starts again through sudo. Returns only for root. Raises LabError without sudo."""
    if os.geteuid() == 0:
        return
    if not has_sudo():
        raise LabError(_no_root())
    sys.stdout.flush()
    os.execv(AS_ROOT, [str(AS_ROOT), what_for, str(PROGRAM), *sys.argv[1:]])


def has_sudo() -> bool:
    return shutil.which("sudo") is not None


def _no_root() -> str:
    return "The lab needs root, and there is no sudo here: apt-get install sudo as root, or run all of it as root"


def _refuse(plan: Plan, missing: list[str]) -> None:
    if len(missing) == 1:
        raise LabError(f"{missing[0]}.")
    if missing:
        lines = "".join(f"\n  {number}. {line}." for number, line in enumerate(missing, 1))
        raise LabError(f"This machine lacks {len(missing)} things that a lab of {len(plan.nodes)} {plan.kind}s needs:{lines}")


def _before_packages(plan: Plan) -> Iterator[str]:
    """Yield missing requirements that no package provides: root, distribution, memory, disk, devices."""
    if os.geteuid() and not has_sudo():
        yield _no_root()
    try:
        image.distribution()
    except LabError as error:
        yield str(error).rstrip(".")
    yield from _memory(plan)
    try:
        image.need_disk(_existing(paths.base()))
    except LabError as error:
        yield f"{str(error).rstrip('.')}: free some, or set RDMA_LAB_DIR to a folder on a larger disk"
    if plan.kind == "machine" and not TUN.exists():
        yield f"{TUN} is missing: modprobe tun as root; in a container, start it with --device {TUN}"


def _memory(plan: Plan) -> Iterator[str]:
    """Yield a lack of memory. Machines allocate it only as they use it, so too many of them fail late, by the kernel's OOM killer."""
    if plan.kind != "machine":
        return
    fields = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
    free = int(fields["MemAvailable"].split()[0]) // 1024
    if free < MACHINE_MIB * len(plan.nodes):
        fitting = free // MACHINE_MIB
        advice = f"make lab NODES={fitting}, or lab up --nodes {fitting}" if fitting > 1 else "end other programs"
        yield f"{free} MiB of memory are available, and {len(plan.nodes)} machines need {MACHINE_MIB * len(plan.nodes)} MiB: {advice}"


def _existing(path: Path) -> Path:
    """Return the path, or the nearest existing folder above it."""
    return path if path.exists() else _existing(path.parent)


def _packages() -> Iterator[str]:
    """Yield missing commands, all of which one command installs, or missing package sources for the image."""
    try:
        name, _codename = image.distribution()
    except LabError:
        return
    names = " ".join(image.words(PACKAGES))
    if missing := _missing(COMMANDS):
        as_root = f"apt-get update && apt-get install --no-install-recommends {names}"
        yield f"Missing commands: {missing}. Run `make prepare`, or as root: {as_root}"
        return
    try:
        image.sources(name)
    except LabError as error:
        yield str(error).rstrip(".")


def _missing(commands: tuple[str, ...]) -> str:
    return ", ".join(name for name in commands if shutil.which(name, path=ENVIRONMENT["PATH"]) is None)


def _ports(plan: Plan) -> Iterator[str]:
    if busy := [str(node.ssh_port) for node in plan.nodes if not is_free(node.ssh_port)]:
        yield f"Ports of 127.0.0.1 that other programs use: {', '.join(busy)}. Choose others with --port-base"


def is_free(port: int) -> bool:
    """Return whether a program can listen on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _privileges(plan: Plan) -> Iterator[str]:
    """Yield operations that a container refuses even to root. Each is tried in temporary namespaces."""
    if os.geteuid() or _missing(("ip",)):
        return
    if refusal := _trial("true"):
        yield f"Network and mount namespaces are refused to root ({refusal}): {PRIVILEGED}"
        return
    trials = {"mount": "mount -t tmpfs lab /run", "bridge": "ip link add lab0 type bridge"}
    if plan.kind == "machine":
        trials["tun"] = "ip tuntap add lab1 mode tap"
    else:
        trials["veth"] = "ip link add lab1 type veth"
    for name, command in trials.items():
        if refusal := _trial(*command.split()):
            module = "" if name == "mount" else f", or load the kernel module on the computer itself: modprobe {name}"
            yield f"`{command}` is refused to root ({refusal}): {PRIVILEGED}{module}"
    if plan.kind == "container":
        yield from _containers()


def _containers() -> Iterator[str]:
    """Yield missing requirements of containers: control groups, and a file system for overlays. A container's root is itself an overlay."""
    for hierarchy in container.hierarchies():
        if not os.access(hierarchy, os.W_OK):
            yield f"Control groups cannot be made ({hierarchy} is read-only): {PRIVILEGED}"
    with tempfile.TemporaryDirectory(dir=_existing(paths.base())) as folder:
        for part in ("lower", "upper", "work", "root"):
            (Path(folder) / part).mkdir()
        layers = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
        if refusal := _trial("mount", "-t", "overlay", "lab", "-o", layers, f"{folder}/root"):
            yield f"{paths.base()} carries no overlay file system ({refusal}): put it, or RDMA_LAB_DIR, on a volume with ext4 or XFS"


def _trial(*command: str) -> str:
    """Return why a command fails in its own mount and network namespaces ("Operation not permitted"); "" if it works."""
    try:
        run(["unshare", "--mount", "--net", *command])
    except LabError as error:
        return str(error).rsplit(": ", 1)[-1]
    return ""


def main(given: list[str] | None = None) -> None:
    """Check this machine before `make lab` installs anything: report all requirements that no package provides, then run sudo once."""
    words = argparse.ArgumentParser(description=main.__doc__)
    words.add_argument("--name", required=True)
    words.add_argument("--nodes", type=int, required=True)
    words.add_argument("--python", required=True, help="what the control node runs on")
    arguments = words.parse_args(given)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if sys.version_info < (3, 10):  # noqa: UP036 (this is whatever python3 the machine has)
        sys.exit(f"lab: python3 is {version}, and the lab needs 3.11. Run it on a newer distribution or in a container: docs/lab.md.")
    try:
        plan = make_plan(arguments.name, "machine", arguments.nodes, 1024)
        missing = [] if paths.LabFolder.of(plan.name).path.exists() else [*_before_packages(plan)]
        if arguments.python == "python3" and sys.version_info < OLDEST_PYTHON:
            newer = "apt-get install python3.11-venv as root, then make lab PYTHON=python3.11"
            missing.append(f"python3 is {version}, and ansible-core needs 3.11 or newer: {newer}")
        _refuse(plan, missing)
    except LabError as error:
        sys.exit(f"lab: {error}")
    if os.geteuid():
        os.execv(AS_ROOT, [str(AS_ROOT), "to install packages, and to make network namespaces, bridges, TAPs and mounts", "true"])


if __name__ == "__main__":
    main()
