# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for NVIDIA's apt repository of a DOCA release: flat, signed by a key of its own, with packages of the same names."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from pathlib import Path

from lab.shell import run
from lab.standins.deb import EPOCH, Deb, File
from lab.standins.packages import Ofed, kernel_source, ofed_packages, template

#: The version of OFED that a release of DOCA contains. Before 3.2, modules for other kernels come from doca-kernel-support.
OFED_OF_RELEASE = {"2.9.1": "24.10-1.1.4", "3.2.0": "25.10-1.7.1", "3.2.1": "25.10-1.7.2"}
KEY_FILE = "GPG-KEY-Mellanox.pub"
SIGNER = "rdma.cluster lab stand-in <root@localhost>"
USERSPACE = "ofed-scripts, mlnx-tools, rdma-core (>= 2400)"
KERNEL = {"2": "mlnx-ofed-kernel-modules | mlnx-ofed-kernel-dkms", "3": "mlnx-ofed-kernel-dkms | mlnx-ofed-kernel-modules"}
#: Seconds that doca-kernel-support works in addition to its build.
SLOW_SECONDS = 3


def make(release: str, out: Path, *, breaks_build: bool = False) -> Path:
    """Write the repository of a release into the folder: packages, lists, signatures and the public key. The folder is returned."""
    for package in packages(release, breaks_build=breaks_build):
        package.build(out)
    index = run(["env", f"--chdir={out}", "dpkg-scanpackages", "--multiversion", "."], timeout_seconds=120)
    (out / "Packages").write_text(index)
    run(["gzip", "--keep", "--force", "--no-name", out / "Packages"])
    (out / "Release").write_text(_release(release, out))
    _sign(out)
    return out


def packages(release: str, *, breaks_build: bool = False) -> list[Deb]:
    """All packages of a release."""
    ofed = Ofed(OFED_OF_RELEASE[release])
    version = f"{release}-125000"
    kernel = KERNEL[release[0]]
    return [
        *ofed_packages(ofed, breaks_build=breaks_build),
        *_others(ofed),
        Deb("doca-ofed", version, "of the profile doca-ofed", fields={"Depends": f"{USERSPACE}, openmpi, {kernel}"}),
        Deb("doca-ofed-userspace", version, "of doca-ofed without the kernel's part", fields={"Depends": f"{USERSPACE}, openmpi"}),
        Deb("doca-networking", version, "of the profile doca-networking", fields={"Depends": f"{USERSPACE}, openmpi, {kernel}"}),
        Deb("doca-networking-userspace", version, "of doca-networking without the kernel's part", fields={"Depends": USERSPACE}),
        Deb("doca-roce", version, "of the profile doca-roce", fields={"Depends": f"{USERSPACE}, {kernel}"}),
        Deb("doca-roce-userspace", version, "of doca-roce without the kernel's part", fields={"Depends": USERSPACE}),
        *_kernel_support(ofed, version, breaks_build=breaks_build),
    ]


def _others(ofed: Ofed) -> list[Deb]:
    """What the vendor's repository also offers: an rdma-core in the distribution's place, an MPI, and a DKMS that a pin must keep out."""
    number = ofed.short.replace(".", "")
    useless = "#!/bin/sh\n# A stand-in of rdma.cluster's lab.\necho 'a stand-in for the vendor dkms: pin it out' >&2\nexit 1\n"
    mpi = "#!/bin/sh\n# A stand-in of rdma.cluster's lab for mpirun.\necho 'mpirun: a stand-in'\n"
    return [
        Deb("rdma-core", f"{number}.0.11-1.{number}", "of rdma-core, in the distribution's place"),
        Deb(
            "openmpi",
            f"4.1.9a1-1.{number}",
            "of openmpi",
            architecture="all",
            files={"usr/mpi/gcc/openmpi-4.1.9a1/bin/mpirun": File(mpi, 0o755)},
        ),
        Deb(
            "dkms",
            "3.99.0-1",
            "of the vendor's dkms: a pin keeps it out",
            architecture="all",
            files={"usr/sbin/dkms": File(useless, 0o755)},
        ),
    ]


def _kernel_support(ofed: Ofed, version: str, *, breaks_build: bool) -> list[Deb]:
    """doca-extra with doca-kernel-support, and the source that it builds."""
    words = {"RELEASE": version, "OFED": f"{ofed.version}.0", "DKMS": ofed.dkms, "SLOW": str(SLOW_SECONDS)}
    tool = File(template("doca/doca-kernel-support", words), 0o755)
    source = {
        f"usr/share/doca-ofed-source/mlnx-ofed-kernel/{name}": file for name, file in kernel_source(ofed, breaks_build=breaks_build).items()
    }
    number = ofed.short.replace(".", "")
    extra = {"Depends": "doca-ofed-source, dpkg-dev, gcc, make"}
    return [
        Deb("doca-ofed-source", f"{ofed.version}-1", "of the drivers' source", architecture="all", files=source),
        Deb(
            "doca-extra",
            f"{number}.0.14-1",
            "doca-kernel-support",
            fields=extra,
            files={"opt/mellanox/doca/tools/doca-kernel-support": tool},
        ),
    ]


def _release(release: str, folder: Path) -> str:
    """The Release file of a flat repository: origin, label (by which a pin finds it), date, and the lists' sizes and sums."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime(EPOCH))
    lines = [
        "Origin: NVIDIA (a stand-in of rdma.cluster's lab)", "Label: DOCA-HOST", f"Version: {release}", "Architectures: amd64",
        f"Date: {date}", "Description: a stand-in, nothing of NVIDIA's", "SHA256:",
    ]  # fmt: skip
    for name in ("Packages", "Packages.gz"):
        content = (folder / name).read_bytes()
        lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}")
    return "\n".join(lines) + "\n"


def _sign(folder: Path) -> None:
    """InRelease and Release.gpg, by a key that is made for this and forgotten; its public half is KEY_FILE, armoured.

    The key and the signatures are as old as the lists: a machine whose clock is behind takes them too.
    """
    with tempfile.TemporaryDirectory(prefix="gpg") as home:
        Path(home).chmod(0o700)
        moment = time.strftime("%Y%m%dT%H%M%S", time.gmtime(EPOCH))
        gpg = ["env", f"GNUPGHOME={home}", "gpg", "--batch", "--yes", "--quiet", "--faked-system-time", moment, "--passphrase", ""]
        try:
            run([*gpg, "--quick-generate-key", SIGNER, "rsa3072", "sign", "never"], timeout_seconds=120)
            run([*gpg, "--armor", "--output", folder / KEY_FILE, "--export"])
            run([*gpg, "--output", folder / "InRelease", "--clearsign", folder / "Release"])
            run([*gpg, "--armor", "--output", folder / "Release.gpg", "--detach-sign", folder / "Release"])
        finally:
            run(["env", f"GNUPGHOME={home}", "gpgconf", "--kill", "gpg-agent"], check=False)
    for name in (KEY_FILE, "InRelease", "Release.gpg"):
        os.utime(folder / name, (EPOCH, EPOCH))
