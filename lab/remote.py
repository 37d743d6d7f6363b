# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to the nodes over SSH on loopback: readiness and remote commands (paramiko), and a user's own session (ssh)."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import paramiko

from lab.errors import LabError, console_tail
from lab.paths import LabFolder
from lab.plan import Node

# Failures while a node boots are expected. The lab itself reports those that matter.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

#: The errors while a node is still booting.
NOT_YET = (OSError, EOFError, paramiko.SSHException)


@dataclass(frozen=True)
class RemoteResult:
    """The result of a remote command."""

    status: int
    stdout: str
    stderr: str


def connect(node: Node, folder: LabFolder, *, timeout_seconds: float = 10.0) -> paramiko.SSHClient:
    """Return a connection as root. The host key must be the image's."""
    client = paramiko.SSHClient()
    client.load_host_keys(str(folder.known_hosts))
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    client.connect(
        "127.0.0.1", port=node.ssh_port, username="root", key_filename=str(folder.key), timeout=timeout_seconds,
        banner_timeout=timeout_seconds, auth_timeout=timeout_seconds, allow_agent=False, look_for_keys=False,
    )  # fmt: skip
    return client


def execute(node: Node, folder: LabFolder, command: str, *, timeout_seconds: float = 60.0) -> RemoteResult:
    """Run a command in the node's shell, wait for its end, and return its result."""
    with closing(connect(node, folder)) as client:
        _stdin, stdout, stderr = client.exec_command(command, timeout=timeout_seconds)
        out, err = stdout.read().decode(), stderr.read().decode()
        return RemoteResult(stdout.channel.recv_exit_status(), out, err)


def wait_until_ready(
    nodes: list[Node],
    folder: LabFolder,
    *,
    timeout_seconds: float,
    alive: Callable[[Node], bool],
    booted: Callable[[Node], bool],
    ready: Callable[[Node], None],
) -> None:
    """Wait until every node has finished booting; `ready` is called for each when it has.

    Raises LabError with a node whose process has ended, or with the nodes that have not answered in time.
    """
    deadline = time.monotonic() + timeout_seconds
    missing = list(nodes)
    while missing:
        for node in list(missing):
            if not alive(node):
                raise LabError(f"{node.name} has ended while it was starting.{console_tail(folder.node(node.name))}")
            if booted(node) and _answers(node, folder):
                missing.remove(node)
                ready(node)
        if time.monotonic() > deadline:
            names = ", ".join(node.name for node in missing)
            raise LabError(f"No answer on SSH within {timeout_seconds:.0f} s from {names}.{console_tail(folder.node(missing[0].name))}")
        if missing:
            time.sleep(0.1 if len(missing) > 4 else 0.3)


def _answers(node: Node, folder: LabFolder) -> bool:
    """Return whether the node accepts the lab's key and its boot has no jobs left to run."""
    try:
        with closing(connect(node, folder)) as client:
            _stdin, stdout, _stderr = client.exec_command("systemctl is-system-running", timeout=20)
            return stdout.read().decode().strip() in {"running", "degraded"}
    except NOT_YET:
        return False


def ssh_argv(node: Node, folder: LabFolder) -> list[str]:
    """Return the ssh command for a user's session. Raises LabError if another user owns the key."""
    if not os.access(folder.key, os.R_OK):
        raise LabError(f"The key of this lab belongs to {folder.key.owner()}: run this as that user, or through sudo.")
    return [
        "ssh", "-q", "-i", str(folder.key), "-p", str(node.ssh_port), "-o", f"UserKnownHostsFile={folder.known_hosts}",
        "-o", "GlobalKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "root@127.0.0.1",
    ]  # fmt: skip
