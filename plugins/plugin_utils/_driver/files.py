# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that add NVIDIA's DOCA repository to a host: its key, an entry bound to that key, and the excluded packages.

Sources: sources.list(5) (deb822, Signed-By), apt_preferences(5), dnf.conf(5) (gpgcheck, priority, excludepkgs).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile

APT_KEY, APT_ENTRY, APT_PIN = (
    "/etc/apt/keyrings/rdma-cluster-doca.asc",
    "/etc/apt/sources.list.d/rdma-cluster-doca.sources",
    "/etc/apt/preferences.d/rdma-cluster-doca",
)
DNF_KEY, DNF_ENTRY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-rdma-cluster-doca", "/etc/yum.repos.d/rdma-cluster-doca.repo"
PATHS = (APT_KEY, APT_ENTRY, APT_PIN, DNF_KEY, DNF_ENTRY)
KEY_OF = {"debian": APT_KEY, "rpm": DNF_KEY}
#: DOCA's copies of distribution packages: its dkms differs from the one that built other modules.
KEPT_OUT = ("dkms",)
#: doca-ofed itself depends on DOCA's openmpi; smaller profiles keep the distribution's.
MPI, NEEDS_MPI = "openmpi", ("doca-ofed", "doca-all", "doca-ofed-userspace", "doca-all-userspace")
HEADER = "# Managed by rdma.cluster.\n"
_APT_ENTRY = """\
{header}Types: deb
URIs: {url}
Suites: ./
Signed-By: {key}
"""
# Below 500, the priority of other repositories: their packages are preferred, and packages of the same mirror stay available. The rest
# keeps 500: apt 2.6 does not install DOCA-OFED if its dependencies have a lower priority than the distribution's.
_APT_PIN = """\
Package: {packages}
Pin: origin "{origin}"
Pin-Priority: 100
"""
# rdma-core of DOCA and of the distribution have the same package name: the lower number wins.
_DNF_ENTRY = """\
{header}[rdma-cluster-doca]
name=DOCA {version}
baseurl={url}
enabled=1
gpgcheck=1
{signed}gpgkey=file://{key}
priority=50
excludepkgs={packages}
"""


def kept_out(profile: str) -> list[str]:
    """Return the packages of the repository that are excluded for a profile."""
    return [*KEPT_OUT, *(() if profile in NEEDS_MPI else (MPI,))]


def repository_files(family: str, *, url: str, version: str, profile: str, key: str | None) -> list[ManagedFile]:
    """Return the files for the package manager of a family ("debian" | "rpm"). key: the text of the key; None if it is already there."""
    packages = kept_out(profile)
    if family == "rpm":
        entry = _DNF_ENTRY.format(header=HEADER, version=version, url=url, key=DNF_KEY, packages=",".join(packages), signed=_signed(url))
        files = [ManagedFile(DNF_ENTRY, entry)]
    else:
        files = [
            ManagedFile(APT_ENTRY, _APT_ENTRY.format(header=HEADER, url=url, key=APT_KEY)),
            ManagedFile(APT_PIN, HEADER + _APT_PIN.format(packages=" ".join(packages), origin=urlsplit(url).hostname or "")),
        ]
    return [*([ManagedFile(KEY_OF[family], key)] if key is not None else []), *files]


def _signed(url: str) -> str:
    """Return the line that makes dnf verify the package lists, if the transport does not: over http, old lists could be injected.

    apt always verifies its lists (Signed-By).
    """
    return "repo_gpgcheck=1\n" if urlsplit(url).scheme == "http" else ""


def no_repository() -> list[ManagedFile]:
    """Return the removal of all these files, for both package managers."""
    return [ManagedFile(path, None) for path in PATHS]


#: kernel-img.conf(5), linux-image's postinst: run-parts with the release as first argument. Headers may be configured after the image.
DEBIAN = ("/etc/kernel/postinst.d/zz-rdma-cluster-driver", "/etc/kernel/header_postinst.d/zz-rdma-cluster-driver")
#: kernel-install(8): COMMAND KERNEL-VERSION …
RPM = ("/etc/kernel/install.d/95-rdma-cluster-driver.install",)
HOOK_PATHS = (*DEBIAN, *RPM)
_ARGUMENTS = {"debian": "kernel=${1:?}", "rpm": '[ "${1:?}" = add ] || exit 0\nkernel=${2:?}'}
_BODY = """\
#!/bin/sh
# Managed by rdma.cluster: the RDMA driver for a kernel is built when that is installed, before it is booted.
{arguments}
built() {{
    modinfo -k "$kernel" -F filename mlx5_core 2>/dev/null | grep -q -e /updates/ -e /extra/ -e /weak-updates/
}}
built && exit 0
{tries}
message="rdma.cluster: kernel $kernel has no RDMA driver but the stock one, which its boot would take: $why"
echo "$message" >&2
logger --priority kern.err --tag rdma-cluster -- "$message" || true
exit 0
"""
_BY_DKMS = """\
if [ -e "/lib/modules/$kernel/build/Makefile" ]; then
    dkms autoinstall -k "$kernel" >&2
    why="read /var/lib/dkms/*/*/build/make.log"
else
    why="its headers are not installed"
fi
built && exit 0"""
_BY_NOBODY = 'why="install MLNX_OFED or DOCA-OFED again for it: run the driver stage after the reboot, or hold the kernel"'


def hook_files(family: str | None, *, planned: bool, dkms: bool = True) -> list[ManagedFile]:
    """Return the hook for the package manager of a family ("debian" | "rpm"), and the removal of the other family's hook.

    planned: whether a hook is planned. Without it, or without a family, both are removed. dkms: whether DKMS has the modules. Otherwise
    they cannot be built for a kernel that is not running, and the hook only warns.
    """
    own = {"debian": DEBIAN, "rpm": RPM}.get(family or "", ()) if planned else ()
    text = _BODY.format(arguments=_ARGUMENTS[str(family)], tries=_BY_DKMS if dkms else _BY_NOBODY) if own else None
    return [ManagedFile(path, text if path in own else None, 0o755) for path in HOOK_PATHS]
