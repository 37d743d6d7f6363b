# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for an MLNX_OFED_LINUX tarball: the real one's layout, an installer that behaves like it, and packages that build."""

from __future__ import annotations

import gzip
import re
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.standins.deb import EPOCH, File, set_times, write_tree
from lab.standins.packages import Ofed, ofed_packages, template

PROGRAMS = ("mlnxofedinstall", "mlnx_add_kernel_support.sh", "uninstall.sh")


@dataclass(frozen=True)
class Sabotage:
    """What goes wrong on purpose. way: "", "build", "silent" or "headers"; slow_seconds between the steps; return_code 0 for none."""

    way: str = ""
    slow_seconds: int = 0
    return_code: int = 0

    @property
    def settings(self) -> str:
        """The file that the installer reads."""
        values = f"SABOTAGE={self.way}\nSLOW_SECONDS={self.slow_seconds}\nRETURN_CODE={self.return_code}\n"
        return f"# A stand-in of rdma.cluster's lab: what goes wrong on purpose.\n{values}"


def parse_sabotage(text: str) -> Sabotage:
    """ "build,slow=5": at most one of build, silent and headers, slow=SECONDS, rc=N. LabError for anything else."""
    words = [word for word in text.split(",") if word]
    ways = [word for word in words if word in {"build", "silent", "headers"}]
    numbers = {found[1]: int(found[2]) for word in words if (found := re.fullmatch(r"(slow|rc)=(\d{1,4})", word))}
    if len(ways) > 1 or len(ways) + len(numbers) != len(words):
        raise LabError(f"Sabotage is one of build, silent and headers, slow=SECONDS and rc=N, with commas between; got '{text}'.")
    return Sabotage("".join(ways), numbers.get("slow", 0), numbers.get("rc", 0))


def make(version: str, out: Path, *, distro: str, sabotage: Sabotage) -> Path:
    """Write MLNX_OFED_LINUX-VERSION-DISTRO-x86_64.tgz into the folder; the same arguments give the same bytes."""
    ofed = Ofed(version)
    name = f"MLNX_OFED_LINUX-{version}-{distro}-x86_64"
    broken = sabotage.way in {"build", "silent"}
    files = {
        ".arch": File("x86_64\n"),
        ".mlnx": File(f"{version}\n"),
        ".standin": File(sabotage.settings),
        "LICENSE": File("This is a stand-in of rdma.cluster's lab. It holds nothing of NVIDIA's; GPL-3.0-or-later.\n"),
        "distro": File(f"{distro}\n"),
        "docs/README": File(f"A stand-in of rdma.cluster's lab for MLNX_OFED_LINUX-{version}.\n"),
        "src/README": File("A stand-in: the source of the modules is in DEBS/mlnx-ofed-kernel-dkms_*.deb.\n"),
        **{program: File(template(f"mlnx_ofed/{program}", {}), 0o755) for program in PROGRAMS},
    }
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / name
        write_tree(tree, files)
        (tree / "DEBS").mkdir()
        for package in ofed_packages(ofed, breaks_build=broken, swallows_failure=sabotage.way == "silent"):
            package.build(tree / "DEBS")
        set_times(tree)
        return _pack(tree, out / f"{name}.tgz")


def _pack(tree: Path, target: Path) -> Path:
    """tree as a .tgz with one folder at its top: sorted, root's, without a time in gzip's header."""
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, EPOCH) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for path in [tree, *sorted(tree.rglob("*"))]:
            member = archive.gettarinfo(path, f"{tree.name}/{path.relative_to(tree)}" if path != tree else tree.name)
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            with path.open("rb") if path.is_file() else tempfile.TemporaryFile() as content:
                archive.addfile(member, content)
    return target
