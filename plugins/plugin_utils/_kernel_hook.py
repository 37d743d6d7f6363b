# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hook that builds the driver for a kernel when that is installed, so that it is there before the kernel is booted.

DKMS has hooks of its own. This one runs after them, tries once more what they have left, and says loudly what the next boot would
take otherwise; of a stack that DKMS does not have it only says that. It never fails: a package manager that stops half way leaves a
host worse than a warning does, and the check driver.next_kernel finds such a kernel in any case.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._files import ManagedFile

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


def hook_files(family: str | None, *, wished: bool, dkms: bool = True) -> list[ManagedFile]:
    """The hook for the package manager of a family, and for no other. family: "debian" | "rpm"; None, or not wished: none at all.

    dkms: whether DKMS has the modules; without it nothing can be built for a kernel that does not run, and the hook only warns.
    """
    own = {"debian": DEBIAN, "rpm": RPM}.get(family or "", ()) if wished else ()
    text = _BODY.format(arguments=_ARGUMENTS[str(family)], tries=_BY_DKMS if dkms else _BY_NOBODY) if own else None
    return [ManagedFile(path, text if path in own else None, 0o755) for path in HOOK_PATHS]
