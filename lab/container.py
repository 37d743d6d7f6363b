# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a systemd-nspawn container: systemd as PID 1 in a fraction of a second, no kernel of its own.

Each container has a network namespace (its rails are veth pairs), an overlay over the image's root tree, and a control
group of its own. A forwarder brings its SSH to 127.0.0.1.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from lab import namespace, process
from lab.errors import LabError
from lab.image import Image
from lab.plan import Node, Plan, Rail
from lab.shell import ENVIRONMENT, run

CGROUPS = Path("/sys/fs/cgroup")
#: systemd in a container watches files; the kernel's default of 128 ends at about 18 containers.
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES_PER_NODE = 16


def node_namespace(lab: str, node: str) -> str:
    return f"rdma-{lab}-{node}"


def prepare(plan: Plan, folder: Path) -> None:
    """Once a lab, before its containers: enough inotify instances, and the way to their SSH."""
    before = int(INOTIFY_LIMIT.read_text())
    needed = 128 + INOTIFY_INSTANCES_PER_NODE * len(plan.nodes)
    if before < needed:
        (folder / "inotify.before").write_text(str(before))
        INOTIFY_LIMIT.write_text(str(needed))
    for node in plan.nodes:
        run(["ip", "netns", "add", node_namespace(plan.name, node.name)])
        namespace.ip(node_namespace(plan.name, node.name), "link", "set", "lo", "up")
    _start_forwarder(plan, folder)


def create(plan: Plan, node: Node, folder: Path, _image: Image) -> None:
    """The node's folder, its identity and its cables; nothing runs yet."""
    for part in ("upper/etc", "work", "root"):
        (folder / part).mkdir(parents=True)
    (folder / "upper/etc/hostname").write_text(f"{node.name}\n")
    (folder / "upper/etc/machine-id").write_text(f"{node.machine_id}\n")
    for rail in node.rails:
        peer = ["peer", "name", f"eth{rail.index + 1}", "address", rail.mac, "netns", node_namespace(plan.name, node.name)]
        namespace.ip(plan.namespace, "link", "add", rail.cable, "type", "veth", *peer)
        namespace.plug(plan.namespace, rail)


def start(plan: Plan, node: Node, folder: Path, image: Image) -> None:
    """Power the container on; returns before it has booted."""
    root = folder / "root"
    if not os.path.ismount(root):
        layers = f"lowerdir={image.root},upperdir={folder / 'upper'},workdir={folder / 'work'}"
        run(["mount", "-t", "overlay", "overlay", "-o", layers, root])
    groups = [_make_group(hierarchy, plan.name, node.name) for hierarchy in _hierarchies()]
    argv = [
        "systemd-nspawn", "--quiet", "--boot", "--keep-unit", "--register=no", f"--directory={root}", f"--machine={node.name}",
        f"--network-namespace-path={namespace.path(node_namespace(plan.name, node.name))}",
        "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe", "--kill-signal=SIGRTMIN+3",
    ]  # fmt: skip

    def enter_groups() -> None:
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    with (folder / "console.log").open("ab") as console:
        started = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=ENVIRONMENT, start_new_session=True,
            preexec_fn=enter_groups,
        )  # fmt: skip
    (folder / "pid").write_text(str(started.pid))


def _hierarchies() -> list[Path]:
    """The control group hierarchies that systemd in a container looks at: hybrid (v1 and v2) or v2 alone."""
    hybrid = [CGROUPS / name for name in ("systemd", "unified") if (CGROUPS / name / "cgroup.procs").exists()]
    return hybrid or [CGROUPS]


def _make_group(hierarchy: Path, lab: str, node: str) -> Path:
    group = hierarchy / f"rdma-{lab}" / node
    group.mkdir(parents=True, exist_ok=True)
    return group


def is_running(folder: Path) -> bool:
    return process.is_ours(folder / "pid", str(folder))


def stop(folder: Path) -> None:
    """Pull the plug: nspawn's death takes the container along."""
    process.end(folder / "pid", str(folder), first=signal.SIGKILL)


def set_carrier(_folder: Path, _rail: Rail, *, up: bool) -> None:
    """Nothing to do: a veth's carrier follows its other end."""
    del up


def remove(lab: str, folder: Path) -> None:
    """Take away what a stopped container leaves outside its folder: mount, namespace, control groups."""
    root = folder / "root"
    if os.path.ismount(root):
        run(["umount", root])
    namespace.delete(node_namespace(lab, folder.name))
    for hierarchy in _hierarchies():
        _remove_groups(hierarchy / f"rdma-{lab}" / folder.name)
        group = hierarchy / f"rdma-{lab}"
        if group.is_dir() and not any(path.is_dir() for path in group.iterdir()):
            group.rmdir()


def _remove_groups(group: Path) -> None:
    """Remove a control group and those below it (they hold no processes any more)."""
    for path, _folders, _files in os.walk(group, topdown=False):
        os.rmdir(path)


def _start_forwarder(plan: Plan, folder: Path) -> None:
    from lab import forward

    listeners = [forward.listen(node.ssh_port) for node in plan.nodes]
    try:
        routes = [
            f"{listener.fileno()}:{node_namespace(plan.name, node.name)}"
            for listener, node in zip(listeners, plan.nodes, strict=True)
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
    """End what `prepare` started and give back the kernel setting that it changed."""
    process.end(folder / "forward.pid", str(folder))
    before = folder / "inotify.before"
    if before.exists():
        INOTIFY_LIMIT.write_text(before.read_text())
