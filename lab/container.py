# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a systemd-nspawn container: it starts systemd in a fraction of a second, and shares the kernel of this machine.

Each container has its own network namespace with veth pairs as rails, an overlay over the image's root tree, and a control group.
A forwarder makes its SSH reachable on 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from lab import namespace, process
from lab.errors import LabError
from lab.image import Image
from lab.plan import Node, Plan, Rail
from lab.shell import ENVIRONMENT, run

CGROUPS = Path("/sys/fs/cgroup")
#: systemd in a container watches files; the kernel's default of 128 is enough for about 18 containers.
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES_PER_NODE = 16
GONE_SECONDS = 10.0
#: The path in a container of its lab's network namespace.
FABRIC_NETWORK = "/run/lab-network"


def node_namespace(lab: str, node: str) -> str:
    return f"rdma-{lab}-{node}"


def prepare(plan: Plan, folder: Path, _image: Image) -> None:
    """Prepare this machine for a lab's containers: raise the inotify limit, and start the SSH forwarder."""
    before = int(INOTIFY_LIMIT.read_text())
    needed = 128 + INOTIFY_INSTANCES_PER_NODE * len(plan.nodes)
    if before < needed:
        (folder / "inotify.before").write_text(str(before))
        INOTIFY_LIMIT.write_text(str(needed))
    _start_forwarder(plan, folder)


def create(plan: Plan, node: Node, folder: Path, _image: Image) -> None:
    """Create the node's folder, identity and cables. Nothing is started."""
    for part in ("upper/etc", "work", "root"):
        (folder / part).mkdir(parents=True)
    (folder / "upper/etc/hostname").write_text(f"{node.name}\n")
    (folder / "upper/etc/machine-id").write_text(f"{node.machine_id}\n")
    inner = node_namespace(plan.name, node.name)
    run(["ip", "netns", "add", inner])
    namespace.ip(inner, "link", "set", "lo", "up")
    for rail in node.rails:
        peer = ["peer", "name", f"eth{rail.index + 1}", "address", rail.mac, "netns", inner]
        namespace.ip(plan.namespace, "link", "add", rail.cable, "type", "veth", *peer)
        namespace.plug(plan, rail)


def start(plan: Plan, node: Node, folder: Path, image: Image) -> None:
    """Start the container, without waiting for its boot."""
    root = folder / "root"
    if not os.path.ismount(root):
        layers = f"lowerdir={image.root},upperdir={folder / 'upper'},workdir={folder / 'work'}"
        run(["mount", "-t", "overlay", "overlay", "-o", layers, root])
    groups = [_group(hierarchy, plan.name, node.name) for hierarchy in hierarchies()]
    for group in groups:
        group.mkdir(parents=True, exist_ok=True)
    argv = [
        "systemd-nspawn", "--quiet", "--boot", "--keep-unit", "--register=no", f"--directory={root}", f"--machine={node.name}",
        f"--network-namespace-path={namespace.path(node_namespace(plan.name, node.name))}",
        "--capability=CAP_NET_ADMIN,CAP_NET_RAW",
        # A simulated InfiniBand fabric on this lab is in this namespace: the node's tools enter it (lab/fabric_host/tool).
        f"--bind={namespace.path(plan.namespace)}:{FABRIC_NETWORK}",
        "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe", "--kill-signal=SIGRTMIN+3",
    ]  # fmt: skip

    def enter_groups() -> None:
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    with (folder / "console.log").open("ab") as console:
        started = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=ENVIRONMENT, start_new_session=True,
            preexec_fn=enter_groups,  # noqa: PLW1509 (this program has one thread)
        )  # fmt: skip
    (folder / "pid").write_text(str(started.pid))


def hierarchies() -> list[Path]:
    """Return the control group hierarchies that systemd in a container uses: hybrid (v1 and v2) or only v2."""
    hybrid = [CGROUPS / name for name in ("systemd", "unified") if (CGROUPS / name / "cgroup.procs").exists()]
    return hybrid or [CGROUPS]


def _group(hierarchy: Path, lab: str, node: str) -> Path:
    return hierarchy / f"rdma-{lab}" / node


def _processes(group: Path) -> list[int]:
    """Return the processes in a control group and below it, as pids of this machine."""
    pids: list[int] = []
    for file in group.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            # A group may disappear while it is read.
            pids += [int(word) for word in file.read_text().split() if word != "0"]
    return pids


def is_running(folder: Path) -> bool:
    return process.is_ours(folder / "pid", str(folder))


def host_key(_folder: Path, image: Image) -> str:
    """Return the SSH host key of a container, which is that of the image."""
    return image.host_key


def has_booted(_folder: Path) -> bool:
    """Return True: a container boots so fast that an answer of its SSH is enough."""
    return True


def stop(folder: Path) -> None:
    """Power the container off: kill nspawn and all processes in the container's control groups, which outlive nspawn."""
    process.end(folder / "pid", str(folder), first=signal.SIGKILL)
    groups = [_group(hierarchy, folder.parent.name, folder.name) for hierarchy in hierarchies()]
    deadline = time.monotonic() + GONE_SECONDS
    while pids := [pid for group in groups for pid in _processes(group)]:
        if time.monotonic() > deadline:
            raise LabError(f"Processes of {folder.name} do not end within {GONE_SECONDS:.0f} s of its power-off.")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def set_carrier(_folder: Path, _rail: Rail, *, up: bool) -> None:
    """Do nothing: the carrier of a veth follows its other end."""
    del up


def remove(lab: str, folders: list[Path]) -> None:
    """Remove the mounts, namespaces and control groups that stopped containers leave outside their folders."""
    for folder in folders:
        if os.path.ismount(folder / "root"):
            run(["umount", folder / "root"])
    for path in namespace.path(node_namespace(lab, "node1")).parent.glob(node_namespace(lab, "node*")):
        namespace.delete(path.name)
    for hierarchy in hierarchies():
        _remove_groups(hierarchy / f"rdma-{lab}")


def _remove_groups(group: Path) -> None:
    """Remove a lab's control groups, which have no processes any more."""
    for path, _folders, _files in os.walk(group, topdown=False):
        os.rmdir(path)


def _start_forwarder(plan: Plan, folder: Path) -> None:
    from lab import forward

    listeners = [forward.listen(node.ssh_port) for node in plan.nodes]
    try:
        routes = [
            f"{listener.fileno()}:{node_namespace(plan.name, node.name)}" for listener, node in zip(listeners, plan.nodes, strict=True)
        ]
        with (folder / "forward.log").open("wb") as output:
            started = subprocess.Popen(
                [sys.executable, "-m", "lab.forward", str(folder), *routes], cwd=Path(__file__).parent.parent,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                pass_fds=[listener.fileno() for listener in listeners],
            )  # fmt: skip
    finally:
        for listener in listeners:
            listener.close()
    (folder / "forward.pid").write_text(str(started.pid))
    if not process.is_ours(folder / "forward.pid", str(folder)):
        raise LabError(f"The SSH forwarder does not start; see {folder}/forward.log.")


def stop_forwarder(folder: Path) -> None:
    """Stop the forwarder, and restore the inotify limit that `prepare` changed."""
    process.end(folder / "forward.pid", str(folder))
    before = folder / "inotify.before"
    if before.exists():
        INOTIFY_LIMIT.write_text(before.read_text())
