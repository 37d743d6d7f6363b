# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that has booted, kept in files: the machines of a lab start from it instead of booting each for itself.

One machine, the template, boots the image without a cable and waits (`/usr/local/lib/lab/identity` on its disk). Then its memory, its
disk and the state of its devices are kept beside the image. A machine that starts from them maps the memory privately, gets NICs of its
own, and reads who it is from its second serial port: name, machine ID, MAC, SSH host key and the time.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError, console_tail
from lab.plan import Node
from lab.qmp import Monitor
from lab.shell import log, run

#: On the template's kernel command line: the service `lab-identity` waits there.
TEMPLATE_ARGUMENT = "lab.template"
TEMPLATE = Node(0, "template", 0, hashlib.sha256(b"template").hexdigest()[:32], "52:54:00:fe:ff:fe", ())
#: What the service says.
WAITING, KNOWN = b"waiting", b"known"
#: The memory is in files of its own, which machines share until they write: the stream of QEMU leaves it out.
CAPABILITIES = [{"capability": "x-ignore-shared", "state": True}]
BOOT_SECONDS = 300
MOVE_SECONDS = 60


@dataclass(frozen=True)
class State:
    """What is kept of the template; nothing in it is written to by a running lab."""

    path: Path

    @property
    def disk(self) -> Path:
        return self.path / "disk.qcow2"

    @property
    def devices(self) -> Path:
        return self.path / "devices"

    def memory(self, numa_node: int) -> Path:
        return self.path / f"memory{numa_node}"


def of(image: Path, sources: Sequence[object]) -> State:
    """The state of an image for this QEMU and for the machine that the modules `sources` describe, made or not."""
    digest = hashlib.sha256(run(["qemu-system-x86_64", "--version"]).encode())
    for source in sources:
        digest.update(inspect.getsource(source).encode())  # type: ignore[arg-type]
    return State(image / f"state-{digest.hexdigest()[:12]}")


def make(state: State, start: Callable[[State], None], stop: Callable[[Path], None]) -> None:
    """Boot the template and keep it as `state`. start: powers it on with all that is its in the given folder; stop: off."""
    started = time.monotonic()
    log("state     booting a machine to keep it (once an image; about half a minute) ...")
    for rest in state.path.parent.glob(".state-*"):
        shutil.rmtree(rest)
    build = State(state.path.parent / f".{state.path.name}")
    build.path.mkdir()
    try:
        start(build)
        with _serial(build.path) as connection:
            _wait_for(connection, WAITING, build.path, BOOT_SECONDS)
        with Monitor(build.path / "qmp.sock") as monitor:
            monitor.execute("stop")
            monitor.execute("migrate-set-capabilities", capabilities=CAPABILITIES)
            monitor.execute("migrate", uri=f"exec:cat > {build.devices}")
            monitor.wait_for_migration(MOVE_SECONDS)
        stop(build.path)
        build.path.rename(state.path)
    finally:
        if build.path.exists():
            stop(build.path)
            shutil.rmtree(build.path)
    log(f"state     kept after {time.monotonic() - started:.0f} s, {state.path}")


def _wait_for(connection: socket.socket, word: bytes, folder: Path, timeout_seconds: float) -> None:
    """Until the machine says `word` on its second serial port; LabError names its console if it does not."""
    received = b""
    connection.settimeout(timeout_seconds)
    while word not in received:
        try:
            part = connection.recv(4096)
        except TimeoutError:
            raise LabError(f"{folder.name} does not say '{word.decode()}' within {timeout_seconds:.0f} s.{console_tail(folder)}") from None
        if not part:
            raise LabError(f"{folder.name} has ended before it printed '{word.decode()}'.{console_tail(folder)}")
        received += part


def resume(state: State, folder: Path, node: Node, devices: Sequence[dict[str, object]]) -> None:
    """Bring a QEMU that waits for a state (`-incoming defer -S`) to life as `node`, with `devices` plugged in (device_add's words)."""
    with Monitor(folder / "qmp.sock") as monitor:
        monitor.execute("migrate-set-capabilities", capabilities=CAPABILITIES)
        monitor.execute("migrate-incoming", uri=f"exec:cat {state.devices}")
        monitor.wait_for_migration(MOVE_SECONDS)
        for device in devices:
            monitor.execute("device_add", **device)
        monitor.execute("cont")
    with _serial(folder) as connection:
        connection.sendall(identity(node, folder).encode())
        # What is not read yet is lost with the connection.
        _wait_for(connection, KNOWN, folder, MOVE_SECONDS)


def make_host_key(folder: Path) -> None:
    """An SSH host key of the machine's own: `host_key` and `host_key.pub`."""
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab host", "-f", folder / "host_key"])


def identity(node: Node, folder: Path) -> str:
    """The line that makes the template this node; the time is the caller's now."""
    key = base64.b64encode((folder / "host_key").read_bytes()).decode()
    return f"{node.name} {node.machine_id} {node.management_mac} {key} {time.time():.3f}\n"


def _serial(folder: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(folder / "identity.sock"))
    return connection
