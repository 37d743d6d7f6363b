# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that MLNX_OFED and DOCA-OFED have in common, and a third party's module on top of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.standins.deb import Deb, File

FOLDER = Path(__file__).parent
#: Put into mlx5_core's source where a build is to fail: the compiler names the line.
SABOTAGE_LINE = "\tstandin_missing_helper(THIS_MODULE);\n"
DKMS_DEPENDS = "dkms, make, kmod, mlnx-ofed-kernel-utils"


@dataclass(frozen=True)
class Ofed:
    """A version of OFED in its spellings: 24.10-1.1.4.0 of MLNX_OFED, 25.10-1.7.1 of DOCA-OFED."""

    version: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d\d\.\d\d-\d+\.\d+\.\d+(\.\d+)?", self.version):
            raise LabError(f"A version of OFED is like 24.10-1.1.4.0; got '{self.version}'.")

    @property
    def short(self) -> str:
        """24.10."""
        return self.version.split("-")[0]

    @property
    def base(self) -> str:
        """1.1.4: the release without its last number, as modules and packages have it."""
        return ".".join(self.version.split("-")[1].split(".")[:3])

    @property
    def module(self) -> str:
        """24.10-1.1.4: what `modinfo --field version` says."""
        return f"{self.short}-{self.base}"

    @property
    def scripts(self) -> str:
        """24.10.OFED.24.10.1.1.4: the version of ofed-scripts."""
        return f"{self.short}.OFED.{self.short}.{self.base}"

    @property
    def dkms(self) -> str:
        """24.10.OFED.24.10.1.1.4.1: the version of the kernel packages, and DKMS's."""
        return f"{self.scripts}.1"


def template(path: str, words: dict[str, str]) -> str:
    """A file below lab/standins with each @WORD@ replaced."""
    text = (FOLDER / path).read_text()
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def kernel_source(ofed: Ofed, *, breaks_build: bool = False) -> dict[str, File]:
    """The source of the two modules, by file name."""
    words = {"DKMS": ofed.dkms, "MODULE": ofed.module, "SABOTAGE": SABOTAGE_LINE if breaks_build else ""}
    names = ("Kbuild", "Makefile", "dkms.conf", "mlx5_core.c", "mlx_compat.c", "publish_symbols.sh")
    return {name: File(template(f"kernel/{name}", words), 0o755 if name.endswith(".sh") else 0o644) for name in names}


def ofed_packages(ofed: Ofed, *, breaks_build: bool = False, swallows_failure: bool = False) -> list[Deb]:
    """ofed-scripts, mlnx-tools, mlnx-ofed-kernel-utils and mlnx-ofed-kernel-dkms, in the order in which they are installed.

    breaks_build: the source does not compile. swallows_failure: the failure is not reported.
    """
    return [
        _scripts(ofed),
        Deb("mlnx-tools", f"{ofed.short}-0.{ofed.dkms.replace('.', '')[-8:]}", "of mlnx-tools, no tools"),
        _utils(ofed),
        _kernel_dkms(ofed, breaks_build=breaks_build, swallows_failure=swallows_failure),
    ]


def _scripts(ofed: Ofed) -> Deb:
    words = {"OFED": ofed.module, "DKMS": ofed.dkms, "SHORT": ofed.short, "SCRIPTS": ofed.scripts}
    files = {
        "usr/bin/ofed_info": File(template("tools/ofed_info", words), 0o755),
        "usr/sbin/ofed_uninstall.sh": File(template("tools/ofed_uninstall.sh", words), 0o755),
    }
    return Deb("ofed-scripts", f"{ofed.scripts}-1", "ofed_info and the uninstaller", files=files)


def _utils(ofed: Ofed) -> Deb:
    files = {
        "etc/infiniband/openib.conf": File(template("tools/openib.conf", {})),
        "etc/init.d/openibd": File(template("tools/openibd", {}), 0o755),
        "lib/systemd/system/openibd.service": File(template("tools/openibd.service", {})),
    }
    scripts = {name: template(f"tools/utils.{name}", {}) for name in ("postinst", "prerm")}
    return Deb("mlnx-ofed-kernel-utils", f"{ofed.dkms}-1", "openibd", fields={"Depends": "kmod"}, files=files, scripts=scripts)


def _kernel_dkms(ofed: Ofed, *, breaks_build: bool, swallows_failure: bool) -> Deb:
    words = {"NAME": "mlnx-ofed-kernel", "DKMS": ofed.dkms, "SWALLOW": "|| true" if swallows_failure else ""}
    source = kernel_source(ofed, breaks_build=breaks_build)
    return Deb(
        "mlnx-ofed-kernel-dkms",
        f"{ofed.dkms}-1",
        "mlx_compat and mlx5_core, built by DKMS; they drive no hardware",
        architecture="all",
        fields={"Depends": DKMS_DEPENDS, "Conflicts": "mlnx-ofed-kernel-modules"},
        files={f"usr/src/mlnx-ofed-kernel-{ofed.dkms}/{name}": file for name, file in source.items()},
        scripts={name: template(f"tools/dkms.{name}", words) for name in ("postinst", "prerm")},
    )


def ulp_package() -> Deb:
    """A third party's module, which holds mlx_compat while it is loaded."""
    words = {"NAME": "standin-ulp", "DKMS": "1.0", "SWALLOW": ""}
    source = {
        "standin_ulp.c": "standin_ulp.c",
        "standin_ulp.kbuild": "Kbuild",
        "standin_ulp.mk": "Makefile",
        "standin_ulp.conf": "dkms.conf",
    }
    return Deb(
        "standin-ulp-dkms",
        "1.0-1",
        "a third party's module on top of the stack",
        architecture="all",
        fields={"Depends": "dkms, make, kmod, mlnx-ofed-kernel-dkms | mlnx-ofed-kernel-modules"},
        files={f"usr/src/standin-ulp-1.0/{target}": File(template(f"kernel/{name}", {})) for name, target in source.items()},
        scripts={"postinst": template("tools/dkms.postinst", words), "prerm": template("tools/ulp.prerm", words)},
    )
