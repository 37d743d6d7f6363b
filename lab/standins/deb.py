# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian packages from data, the same bytes each time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.shell import run

#: Every file's time, and no file's is later (2024-11-01): apt takes no list that comes from its future.
EPOCH = 1730419200
MAINTAINER = "rdma.cluster's lab <root@localhost>"


@dataclass(frozen=True)
class File:
    """What a package or a tarball holds at a path."""

    text: str | bytes
    mode: int = 0o644

    @property
    def data(self) -> bytes:
        return self.text.encode() if isinstance(self.text, str) else self.text


@dataclass(frozen=True)
class Deb:
    """One package; `files` by their path without a leading slash, `scripts` by name (postinst, prerm), `fields` such as Depends."""

    name: str
    version: str
    summary: str
    architecture: str = "amd64"
    fields: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, File] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        return f"{self.name}_{self.version.split(':')[-1]}_{self.architecture}.deb"

    @property
    def control(self) -> str:
        """The control file; every description says that this is a stand-in."""
        lines = {"Package": self.name, "Version": self.version, "Architecture": self.architecture, "Maintainer": MAINTAINER}
        return "".join(f"{key}: {value}\n" for key, value in {**lines, **self.fields, "Description": f"stand-in: {self.summary}"}.items())

    def build(self, folder: Path) -> Path:
        """Write the package into the folder; LabError if dpkg-deb fails."""
        target = folder / self.file_name
        documentation = File(f"{self.name} {self.version}: a stand-in of rdma.cluster's lab, not the vendor's package.\n")
        with tempfile.TemporaryDirectory() as name:
            tree = Path(name) / "tree"
            write_tree(tree, {**self.files, f"usr/share/doc/{self.name}/README": documentation})
            scripts = {f"DEBIAN/{script}": File(text, 0o755) for script, text in self.scripts.items()}
            write_tree(tree, {**scripts, "DEBIAN/control": File(self.control)})
            set_times(tree)
            run(["env", f"SOURCE_DATE_EPOCH={EPOCH}", "dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, target])
        return target


def write_tree(root: Path, files: Mapping[str, File]) -> None:
    """The files below root, with the modes that they have on a machine."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.data)
        target.chmod(content.mode)


def set_times(root: Path) -> None:
    """Every file and folder gets the one time; folders are 0755."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (EPOCH, EPOCH))
    root.chmod(0o755)
    os.utime(root, (EPOCH, EPOCH))
