# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for the quality of service of an mlx5 NIC: a kernel module, built here for the kernels of the lab's image, and mlnx_qos.

Native: in an emulated machine the same compilation takes minutes.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from pathlib import Path

from lab import image, paths
from lab.errors import LabError
from lab.plan import PCI_BUSES
from lab.shell import run
from lab.standins.deb import Deb, File

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "module"
VERSION = "1.0"
HEADERS = re.compile(r"linux-headers-(\d+\.\d+\.\d+-\d+-[a-z0-9]+)_[^_]+_amd64\.deb")
#: What the headers of a kernel need, by how the file's name begins.
BESIDE = ("linux-headers-{abi}-common_", "linux-kbuild-", "linux-compiler-")
STACKS = ("inbox", "ofed")


def make(out: Path, *, stack: str, packages: Path | None = None) -> Path:
    """Write standin-qos_1.0_amd64.deb into the folder. stack: "ofed" has OFED's files and mlnx_qos, "inbox" upstream's debugfs.

    packages: where the headers of the kernels are; the image's own repository by default.
    """
    devices = ",".join(f"0000:{bus + 1:02x}:00.0" for bus in PCI_BUSES)
    options = f"options standin_qos devices={devices} ofed={int(stack == 'ofed')}\n"
    modules = build_modules(packages or image_packages())
    files = {
        "etc/modprobe.d/standin-qos.conf": File(f"# A stand-in of rdma.cluster's lab.\n{options}"),
        "etc/modules-load.d/standin-qos.conf": File("# A stand-in of rdma.cluster's lab.\nstandin_qos\n"),
        "etc/kernel/postinst.d/standin-qos": File((FOLDER / "install_module.sh").read_text(), 0o755),
        **{f"usr/lib/standin-qos/{kernel}/standin_qos.ko": File(data) for kernel, data in modules.items()},
    }
    if stack == "ofed":
        files["usr/bin/mlnx_qos"] = File("#!/usr/bin/python3\n" + (FOLDER / "mlnx_qos").read_text(), 0o755)
    scripts = {name: (FOLDER / name).read_text() for name in ("postinst", "prerm")}
    summary = "what an mlx5 NIC has for quality of service, on other NICs"
    return Deb("standin-qos", VERSION, summary, fields={"Depends": "kmod"}, files=files, scripts=scripts).build(out)


def image_packages() -> Path:
    """The package repository of today's image; LabError if there is no image yet."""
    folder = image.Image(paths.images() / image.recipe_hash()).root / "srv/packages"
    if not folder.is_dir():
        raise LabError(f"{folder} is not there: the first `lab up` makes the image whose kernels' headers are needed.")
    return folder


def build_modules(packages: Path) -> dict[str, bytes]:
    """standin_qos.ko by kernel ("6.1.0-55-amd64"), for every kernel whose headers are there; built once."""
    headers = {found[1]: path for path in sorted(packages.glob("linux-headers-*.deb")) if (found := HEADERS.fullmatch(path.name))}
    if not headers:
        raise LabError(f"{packages} holds no headers of a kernel (linux-headers-6.1.0-55-amd64_…_amd64.deb).")
    return {kernel: _cached(kernel, [path, *_beside(kernel, packages)]) for kernel, path in headers.items()}


def _beside(kernel: str, packages: Path) -> list[Path]:
    abi = kernel.rpartition("-")[0]
    found = []
    for begin in BESIDE:
        paths_of = sorted(packages.glob(f"{begin.format(abi=abi)}*.deb"))
        if not paths_of:
            raise LabError(f"{packages} has the headers of {kernel}, but no {begin.format(abi=abi)}….deb.")
        found += paths_of
    return found


def _cached(kernel: str, debs: list[Path]) -> bytes:
    digest = hashlib.sha256("\n".join([kernel, *(path.name for path in debs)]).encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(f"{file.name}\n".encode() + file.read_bytes())
    target = paths.base() / "standins" / f"qos-{digest.hexdigest()[:16]}.ko"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as name:
            _build(kernel, debs, Path(name)).rename(target)
    return target.read_bytes()


def _build(kernel: str, debs: list[Path], folder: Path) -> Path:
    """Unpack the headers, let them point at each other where they lie now, and compile."""
    for deb in debs:
        run(["dpkg-deb", "-x", deb, folder / "tree"])
    tree = folder / "tree/usr/src" / f"linux-headers-{kernel}"
    makefile = tree / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/tree/usr/src/"))
    shutil.copytree(SOURCE, folder / "module")
    run(["make", "-s", "-C", tree, f"M={folder}/module", "modules"], timeout_seconds=300)
    built = folder / "module/standin_qos.ko"
    run(["strip", "--strip-debug", built])
    return built
