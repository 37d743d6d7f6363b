# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that the collection manages on a host: compared, and written only when they differ.

Files that belong to the collection alone are replaced as a whole. In a file that others write too, such as nccl.conf, only a marked
block is managed.

The control node compares too (`files_differ`), using what rdma_facts reports (`managed_files`). So a host without differences is not
contacted again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

#: Where our files are: folder, and the beginning of their names.
MANAGED = (
    ("/etc", "nccl.conf"),
    ("/etc/NetworkManager/conf.d", "60-rdma-"),
    ("/etc/NetworkManager/system-connections", "60-rdma-"),
    ("/etc/apt/keyrings", "rdma-cluster-"),
    ("/etc/apt/preferences.d", "rdma-cluster-"),
    ("/etc/apt/sources.list.d", "rdma-cluster-"),
    ("/etc/chrony", "rdma-cluster-"),
    ("/etc/chrony/sources.d", "rdma-cluster"),
    ("/etc/kernel/header_postinst.d", "zz-rdma-cluster"),
    ("/etc/kernel/install.d", "95-rdma-cluster"),
    ("/etc/kernel/postinst.d", "zz-rdma-cluster"),
    ("/etc/modprobe.d", "rdma-cluster"),
    ("/etc/modules-load.d", "rdma-cluster"),
    ("/etc/netplan", "90-rdma-"),
    ("/etc/pki/rpm-gpg", "RPM-GPG-KEY-rdma-cluster"),
    ("/etc/profile.d", "rdma-cluster-"),
    ("/etc/rdma-cluster", ""),
    ("/etc/security/limits.d", "90-rdma-cluster.conf"),
    ("/etc/sysctl.d", "99-zz-rdma-cluster.conf"),
    ("/etc/systemd/logind.conf.d", "90-rdma-cluster.conf"),
    ("/etc/systemd/network", "60-rdma-"),
    ("/etc/systemd/system", "rdma-"),
    ("/etc/systemd/system.conf.d", "90-rdma-cluster.conf"),
    ("/etc/systemd/system/chrony.service.d", "60-rdma-cluster"),
    ("/etc/systemd/system/chronyd.service.d", "60-rdma-cluster"),
    ("/etc/systemd/system/nftables.service.d", "60-rdma-cluster.conf"),
    ("/etc/systemd/user.conf.d", "90-rdma-cluster.conf"),
    ("/etc/tuned/rdma-cluster", "tuned.conf"),
    ("/etc/udev/rules.d", "90-rdma-cluster"),
    ("/etc/yum.repos.d", "rdma-cluster-"),
    ("/run/rdma-cluster", "firmware-written"),
    ("/run/rdma-cluster", "network-reload"),
    ("/usr/local/lib/rdma-cluster", ""),
)


#: The folder that is the collection's alone.
OWN_FOLDER = "/etc/rdma-cluster/"
#: The lines around a managed block, and the first lines of such files from when they were replaced as a whole.
BEGIN = "# BEGIN rdma.cluster: do not edit this block; all other lines are kept"
END = "# END rdma.cluster"
WHOLE_HEADER = "# Managed by rdma.cluster"
#: The prefix of a line that the block replaces.
REPLACED = "# replaced by rdma.cluster: "
#: What facts report about the files of a host, by path: see managed_files.
Files = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ManagedFile:
    """The planned state of a file. content: None removes it, bytes are a program. mode: permission bits.

    block: content is a marked block; all other lines are kept, and so are the mode and owner of an existing file. replaced: the names
    of variables whose lines outside of the block become comments.
    """

    path: str
    content: str | bytes | None
    mode: int = 0o644
    block: bool = False
    replaced: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The content of a text file; "" for a file to be removed."""
        return self.content if isinstance(self.content, str) else ""


@dataclass(frozen=True)
class FileChange:
    """A difference between a file and its plan. None: it did not exist, or is removed."""

    path: str
    before: str | None
    after: str | None

    def to_diff(self) -> dict[str, str]:
        """Return the change in the form that Ansible's --diff prints."""
        return {
            "before_header": self.path,
            "after_header": self.path,
            "before": self.before or "",
            "after": self.after or "",
        }


def is_shared(path: str) -> bool:
    """Return whether others may write a file too, so that only a block of it is managed."""
    return not path.startswith(OWN_FOLDER)


def shared_files(others: Sequence[str] = ()) -> list[str]:
    """Return the files with a managed block. others: paths that the intent sets for files of ours."""
    return [path for path in dict.fromkeys(("/etc/nccl.conf", *others)) if is_shared(path)]


def split_block(text: str) -> tuple[list[str], str | None]:
    """Return the lines of a file outside its managed block, without line ends, and the block's text, None without a block.

    A file that begins like those that were replaced as a whole has no lines of others. A block without its end does not count.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    ends = lines.index(END) if BEGIN in lines and END in lines else -1
    begins = lines.index(BEGIN) if ends >= 0 else -1
    if 0 <= begins < ends:
        return [*lines[:begins], *lines[ends + 1 :]], "".join(f"{line}\n" for line in lines[begins + 1 : ends])
    return ([] if lines[:1] == [WHOLE_HEADER] else lines), None


def with_block(text: str, block: str, replaced: Collection[str] = ()) -> str:
    """Return the text of a file with this block at its end. replaced: variables whose lines outside of the block become comments."""
    lines, _block = split_block(text)
    kept = [f"{REPLACED}{line}" if line.partition("=")[0] in replaced else line for line in lines]
    return "".join(f"{line}\n" for line in [*kept, BEGIN]) + block + f"{END}\n"


def outside_block(text: str) -> str:
    """Return the lines of others in a file with a managed block."""
    return "".join(f"{line}\n" for line in split_block(text)[0])


def managed_files(
    sys: SysRoot, others: Sequence[str] = (), shared: Sequence[str] = (), read_shared: Callable[[str], Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Return our files on a host: path → {"sha256": of its bytes, in hex, "mode": permission bits, "owner": "0:0"}.

    Files in shared also have "block", the SHA-256 of the managed block, None without one, and "others", the result of read_shared for the
    lines of others.

    others: paths that the intent sets for files of ours, in addition to their usual places.
    """
    ours = [f"{folder}/{name}" for folder, prefix in MANAGED for name in sys.list_dir(folder) if name.startswith(prefix)]
    found = {}
    for path in sorted({*ours, *others}):
        data = sys.read_bytes(path)
        if data is not None:
            found[path] = {"sha256": hashlib.sha256(data).hexdigest(), "mode": sys.mode(path), "owner": sys.owner(path)}
            if path in shared and read_shared is not None:
                text = data.decode("utf-8", "surrogateescape")
                block = split_block(text)[1]
                digests = {"block": None if block is None else _digest_of(block), "others": read_shared(outside_block(text))}
                found[path].update(digests)
    return found


def _digest_of(content: str | bytes) -> str:
    return hashlib.sha256(as_bytes(content)).hexdigest()


def differs(file: ManagedFile, files: Files | None) -> bool:
    """Return whether a file differs from its plan, according to the facts of its host; True if these do not cover files."""
    if files is None:
        return True
    if file.content is None:
        return file.path in files
    seen = files.get(file.path)
    if file.block:
        return not _has_block(seen, file)
    planned = described(file.content, file.mode)
    return seen is None or any(seen[key] != value for key, value in planned.items())


def _has_block(seen: Mapping[str, Any] | None, file: ManagedFile) -> bool:
    """Return whether a file has the block of a managed file, and none of the other lines that it replaces."""
    current = seen or {}
    return current.get("block") == _digest_of(file.text) and not set(file.replaced) & set(current.get("others") or ())


def others_of(files: Files | None, path: str) -> Mapping[str, str]:
    """Return the variables that lines of others set in a file with a managed block, according to the facts of its host."""
    return (files or {}).get(path, {}).get("others") or {}


def described(content: str | bytes, mode: int) -> dict[str, Any]:
    """Return what facts report about a file that matches its plan: modules run as root."""
    return {"sha256": hashlib.sha256(as_bytes(content)).hexdigest(), "mode": mode, "owner": "0:0"}


def as_bytes(content: str | bytes) -> bytes:
    """Return the bytes of a file with this content."""
    return content.encode() if isinstance(content, str) else content


def files_differ(wanted: Sequence[ManagedFile], files: Files | None) -> bool:
    """Return whether any of the files differs."""
    return any(differs(file, files) for file in wanted)


def listed_diff(header: str, items: Sequence[str], gone: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return changes other than files in the same form: a line for each item that is added or removed; empty without items."""
    before, after = ("".join(f"{item}\n" for item in each) for each in (gone, items))
    return [{"before_header": header, "after_header": header, "before": before, "after": after}] if items or gone else []


def setting_diff(header: str, was: object, planned: object) -> dict[str, str]:
    """Return one setting of the running system in the same form: each setting that differs is a line of drift.jsonl."""
    return {"before_header": header, "after_header": header, "before": f"{was}\n", "after": f"{planned}\n"}


def ensure_files(files: list[ManagedFile], *, check_mode: bool) -> list[FileChange]:
    """Apply the plan of the files and return those that differed; in check mode only return them."""
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
    wanted = _wanted(file, before)
    if before != wanted:
        return FileChange(file.path, _shown(before), _shown(wanted))
    if before is None or file.block:
        return None
    status = path.stat()
    seen = attributes(status.st_mode & 0o7777, status.st_uid, status.st_gid)
    planned = attributes(file.mode, os.geteuid(), os.getegid())
    return FileChange(file.path, seen, planned) if seen != planned else None


def _wanted(file: ManagedFile, before: bytes | None) -> bytes | None:
    """Return the planned bytes of the file. before: its current bytes."""
    if file.content is None or not file.block:
        return None if file.content is None else as_bytes(file.content)
    text = (before or b"").decode("utf-8", "surrogateescape")
    return with_block(text, file.text, file.replaced).encode("utf-8", "surrogateescape")


def _shown(data: bytes | None) -> str | None:
    """Return the text of a file; for a binary file, which has NUL bytes, its checksum."""
    if data is None or b"\0" not in data:
        return None if data is None else data.decode("utf-8", "replace")
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}\n"


def attributes(mode: int, uid: int, gid: int) -> str:
    """Return mode and owner as lines of a diff."""
    return f"mode {mode:04o}\nowner {uid}:{gid}\n"


def _write(file: ManagedFile) -> None:
    path = Path(file.path)
    if file.content is None:
        path.unlink()
        return
    # A file that others write too may be a link to their own file, with a mode and owner of their choice.
    path = Path(os.path.realpath(path)) if file.block else path
    status = path.stat() if file.block and path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = _wanted(file, path.read_bytes() if status is not None else None) or b""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(wanted)
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(temporary, file.mode if status is None else status.st_mode & 0o7777)
        os.chown(temporary, *((os.geteuid(), os.getegid()) if status is None else (status.st_uid, status.st_gid)))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
