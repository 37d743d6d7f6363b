# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""facts_here.py on a lab machine, which gets the module's code for it and keeps nothing."""

from __future__ import annotations

import io
import tarfile
from contextlib import closing
from pathlib import Path

from lab.cluster import Lab
from lab.plan import Node
from lab.remote import RemoteResult, connect

CODE = "plugins/module_utils"
PACKAGE = f"ansible_collections/rdma/cluster/{CODE}"
SCRIPT = "facts_here.py"
SHELL = f"folder=$(mktemp -d) && trap 'rm -r $folder' EXIT && tar x -C $folder && cd $folder && PYTHONPATH=$folder python3 {SCRIPT} plain"


def run(lab: Lab, node: Node, root: Path) -> RemoteResult:
    """Send the code, run it, and return its result."""
    with closing(connect(node, lab.folder)) as client:
        stdin, stdout, stderr = client.exec_command(SHELL, timeout=300)
        stdin.write(_archive(root))
        stdin.channel.shutdown_write()
        out, err = stdout.read().decode(), stderr.read().decode()
        return RemoteResult(stdout.channel.recv_exit_status(), out, err)


def _archive(root: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(Path(__file__).parent / SCRIPT, SCRIPT)
        for file in sorted((root / CODE).glob("*.py")):
            archive.add(file, f"{PACKAGE}/{file.name}")
    return buffer.getvalue()
