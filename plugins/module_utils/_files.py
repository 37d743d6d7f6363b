# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that the collection owns on a host: compared, written only when they differ, replaced as a whole."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


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
    before = path.read_text(encoding="utf-8") if path.exists() else None
    if before != file.content:
        return FileChange(file.path, before, file.content)
    if before is not None and path.stat().st_mode & 0o7777 != file.mode:
        return FileChange(file.path, f"mode {path.stat().st_mode & 0o7777:04o}\n", f"mode {file.mode:04o}\n")
    return None


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
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
