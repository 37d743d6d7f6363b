# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that the collection owns on a host: compared, written only when they differ, replaced as a whole.

The control node compares too (`files_differ`), by what rdma_facts says of them (`managed_files`), so that a host on which
nothing differs is not asked again.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

#: Where files of ours lie: folder, and what their names begin with.
MANAGED = (
    ("/etc", "nccl.conf"),
    ("/etc/apt/keyrings", "rdma-cluster-"),
    ("/etc/apt/preferences.d", "rdma-cluster-"),
    ("/etc/apt/sources.list.d", "rdma-cluster-"),
    ("/etc/chrony/sources.d", "rdma-cluster"),
    ("/etc/kernel/header_postinst.d", "zz-rdma-cluster"),
    ("/etc/kernel/install.d", "95-rdma-cluster"),
    ("/etc/kernel/postinst.d", "zz-rdma-cluster"),
    ("/etc/modprobe.d", "rdma-cluster"),
    ("/etc/modules-load.d", "rdma-cluster"),
    ("/etc/pki/rpm-gpg", "RPM-GPG-KEY-rdma-cluster"),
    ("/etc/rdma-cluster", ""),
    ("/etc/security/limits.d", "90-rdma-cluster.conf"),
    ("/etc/sysctl.d", "99-zz-rdma-cluster.conf"),
    ("/etc/systemd/logind.conf.d", "90-rdma-cluster.conf"),
    ("/etc/systemd/network", "60-rdma-"),
    ("/etc/systemd/system", "rdma-"),
    ("/etc/systemd/system.conf.d", "90-rdma-cluster.conf"),
    ("/etc/systemd/user.conf.d", "90-rdma-cluster.conf"),
    ("/etc/tuned/rdma-cluster", "tuned.conf"),
    ("/etc/udev/rules.d", "90-rdma-cluster"),
    ("/etc/yum.repos.d", "rdma-cluster-"),
    ("/usr/local/lib/rdma-cluster", ""),
)


@dataclass(frozen=True)
class ManagedFile:
    """A file as it shall be; content None: it shall not exist. mode: permission bits."""

    path: str
    content: str | None
    mode: int = 0o644


@dataclass(frozen=True)
class FileChange:
    """A file that was not as it should be; None: it did not exist, or shall not."""

    path: str
    before: str | None
    after: str | None

    def to_diff(self) -> dict[str, str]:
        """In the shape that Ansible's --diff prints."""
        return {
            "before_header": self.path,
            "after_header": self.path,
            "before": self.before or "",
            "after": self.after or "",
        }


def managed_files(sys: SysRoot, others: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Each file of ours that a host has: path → {"sha256": of its bytes, in hex, "mode": permission bits, "owner": "0:0"}.

    others: paths that the intent gives to files of ours, beside the places where they lie otherwise.
    """
    ours = [f"{folder}/{name}" for folder, prefix in MANAGED for name in sys.list_dir(folder) if name.startswith(prefix)]
    found = {}
    for path in sorted({*ours, *others}):
        data = sys.read_bytes(path)
        if data is not None:
            found[path] = {"sha256": hashlib.sha256(data).hexdigest(), "mode": sys.mode(path), "owner": sys.owner(path)}
    return found


def differs(file: ManagedFile, facts: Mapping[str, Any]) -> bool:
    """Whether a file is not as it shall be, by the facts of its host; True if they do not tell."""
    there = facts.get("files")
    if there is None:
        return True
    if file.content is None:
        return bool(file.path in there)
    return bool(there.get(file.path) != described(file.content, file.mode))


def described(content: str, mode: int) -> dict[str, Any]:
    """What facts say of a file that is as it shall be: modules run as root."""
    return {"sha256": hashlib.sha256(content.encode()).hexdigest(), "mode": mode, "owner": "0:0"}


def files_differ(files: Sequence[ManagedFile], facts: Mapping[str, Any]) -> bool:
    """Whether any of them does."""
    return any(differs(file, facts) for file in files)


def own_source(module: ModuleType) -> str:
    """The text of one of our own files that is to be installed; also from within the archive in which Ansible sends a module."""
    return inspect.getsource(module)


def listed_diff(header: str, items: Sequence[str]) -> list[dict[str, str]]:
    """What is done beside files, in the same shape: a line for each item that comes to be; nothing for none."""
    after = "".join(f"{item}\n" for item in items)
    return [{"before_header": header, "after_header": header, "before": "", "after": after}] if items else []


def ensure_files(files: list[ManagedFile], *, check_mode: bool) -> list[FileChange]:
    """Make the files as they shall be and return those that were not; in check mode only return them."""
    changes = []
    for file in files:
        change = _difference(file)
        if change is not None:
            changes.append(change)
            if not check_mode:
                _write(file)
    return changes


def _difference(file: ManagedFile) -> FileChange | None:
    path = Path(file.path)
    before = path.read_bytes() if path.exists() else None
    shown = None if before is None else before.decode("utf-8", "replace")
    if before != (None if file.content is None else file.content.encode()):
        return FileChange(file.path, shown, file.content)
    if before is None:
        return None
    status = path.stat()
    seen = attributes(status.st_mode & 0o7777, status.st_uid, status.st_gid)
    wished = attributes(file.mode, os.geteuid(), os.getegid())
    return FileChange(file.path, seen, wished) if seen != wished else None


def attributes(mode: int, uid: int, gid: int) -> str:
    """Mode and owner as lines of a diff."""
    return f"mode {mode:04o}\nowner {uid}:{gid}\n"


def _write(file: ManagedFile) -> None:
    path = Path(file.path)
    if file.content is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(file.content)
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(temporary, file.mode)
        os.chown(temporary, os.geteuid(), os.getegid())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
