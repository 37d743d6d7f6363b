# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of a bare host: a root tree for containers, a disk with kernel and initrd for machines.

Made by mmdebstrap from the distribution and the package sources of this very machine, and cached by a hash of its recipe.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import kernels, paths
from lab.errors import LabError
from lab.shell import ENVIRONMENT, log, run

RECIPE = Path(__file__).parent / "recipe"
DISK_GIB = 6
NEEDED_GIB = 6


@dataclass(frozen=True)
class Image:
    """A finished image; nothing in it is written to by a running lab."""

    path: Path

    @property
    def root(self) -> Path:
        return self.path / "root"

    @property
    def disk(self) -> Path:
        return self.path / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.path / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.path / "initrd.img"

    @property
    def key(self) -> Path:
        return self.path / "id_ed25519"

    @property
    def host_key(self) -> str:
        return (self.path / "host_key.pub").read_text().split(" lab")[0].strip()


def words(file: Path) -> list[str]:
    """The words of a list file: one a line, `#` comments."""
    return [line.strip() for line in file.read_text().splitlines() if line.strip() and not line.startswith("#")]


def distribution() -> tuple[str, str]:
    """This machine's distribution and its release: ("debian", "bookworm")."""
    release = platform.freedesktop_os_release()
    name, codename = release.get("ID", ""), release.get("VERSION_CODENAME", "")
    if name not in kernels.META_PACKAGES or not codename:
        raise LabError(
            f"The lab is built from this machine's own distribution, Debian or Ubuntu; this one is '{name}'. "
            "Run it in a container: docs/lab.md, What it needs."
        )
    if platform.machine() != "x86_64":
        raise LabError(f"The lab's machines are x86_64; this machine is {platform.machine()}.")
    return name, codename


def recipe_hash() -> str:
    """A hash of all that decides what the image holds, but for the packages' versions of the day."""
    digest = hashlib.sha256("\n".join(distribution()).encode())
    for file in sorted(path for path in [Path(__file__), Path(kernels.__file__), *RECIPE.rglob("*")] if path.is_file()):
        digest.update(f"{file.name} {file.stat().st_mode & 0o111:o}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def ensure() -> Image:
    """The image of today's recipe, built if it is not there yet."""
    folder = paths.images()
    folder.mkdir(parents=True, exist_ok=True)
    image = Image(folder / recipe_hash())
    with _lock(folder / ".lock"):
        if image.path.is_dir():
            log(f"image     cached, {image.path}")
            return image
        for rest in folder.glob(".build-*"):
            shutil.rmtree(rest)
        need_disk(folder)
        _build(folder, image)
    return image


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def need_disk(folder: Path) -> None:
    """LabError unless the folder has room for an image and the disks of a lab."""
    free_gib = shutil.disk_usage(folder).free / 2**30
    if free_gib < NEEDED_GIB:
        raise LabError(f"{folder} has {free_gib:.1f} GiB free; an image and its machines need {NEEDED_GIB} GiB there.")


def _build(folder: Path, image: Image) -> None:
    started = time.monotonic()
    log("image     building (once; about 2 minutes) ...")
    build = folder / f".build-{os.getpid()}"
    build.mkdir()
    try:
        _bootstrap(build)
        log("image     writing the disk ...")
        run(["truncate", f"--size={DISK_GIB}G", build / "disk.raw"])
        # A journal, since the tests cut the power of machines in the middle of installations.
        run(["mke2fs", "-q", "-t", "ext4", "-J", "size=32", "-d", build / "root", build / "disk.raw"], timeout_seconds=300)
        build.rename(image.path)
    finally:
        if build.exists():
            shutil.rmtree(build)
    log(f"image     built in {time.monotonic() - started:.0f} s, {image.path}")


def _bootstrap(build: Path) -> None:
    """mmdebstrap into build/root, its log beside it; the log's errors are quoted if it fails."""
    name, codename = distribution()
    # A mirror keeps only the newest versions: old lists would name kernels that are no longer there. Another apt at work is no matter.
    run(["apt-get", "-qq", "update"], timeout_seconds=300, check=False)
    packages = [*words(RECIPE / "packages.txt"), *kernels.image_packages(name)]
    offered = " ".join([*words(RECIPE / "driver_packages.txt"), *kernels.META_PACKAGES[name]])
    argv = [
        "mmdebstrap", "--variant=minbase", "--format=directory", f"--include={','.join(packages)}",
        '--aptopt=Acquire::Languages "none"',
        "--skip=cleanup/apt",
        "--dpkgopt=force-unsafe-io",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        f'--essential-hook=cp -rT {RECIPE / "files"} "$1"',
        f'--customize-hook={RECIPE / "customize.sh"} "$1" {build} {offered}',
        codename, str(build / "root"), *sources(name),
    ]  # fmt: skip
    log_file = build.parent / "build.log"
    with log_file.open("w") as output:
        # In a session of its own: dpkg would touch the terminal, which stops a process in the background for good.
        done = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=ENVIRONMENT, start_new_session=True
        )
        try:
            status = done.wait(timeout=1200)
        except BaseException:
            # Its clean-up unmounts what it mounted: ask first.
            done.send_signal(signal.SIGTERM)
            done.wait(timeout=60)
            raise
    if status:
        lines = [line for line in log_file.read_text(errors="replace").splitlines() if line.startswith(("E:", "W:"))]
        raise LabError(f"mmdebstrap failed: {lines[-1] if lines else 'no reason given'} (all of it: {log_file}).")


def sources(distribution_name: str) -> list[str]:
    """This machine's own package sources for its distribution, as one-line entries."""
    listed = run(
        [
            "apt-get", "indextargets", "Created-By: Packages",
            "--format", "$(ORIGIN)|deb {options}$(REPO_URI) $(RELEASE) $(COMPONENT)",
        ]
    )  # fmt: skip
    keyring = Path(f"/usr/share/keyrings/{distribution_name}-archive-keyring.gpg")
    options = f"[signed-by={keyring}] " if keyring.exists() else ""
    entries = {entry for origin, entry in (line.split("|", 1) for line in listed.splitlines()) if origin.lower() == distribution_name}
    if not entries:
        raise LabError("apt knows no package lists of this distribution: run `apt-get update` first.")
    return sorted(entry.replace("{options}", options) for entry in entries)
