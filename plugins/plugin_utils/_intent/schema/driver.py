# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for driver, firmware settings and GPUDirect."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    ABSOLUTE,
    FILE,
    VERSION,
    Key,
    Section,
    choice,
    flag,
    integer,
    keys,
    matching,
    named,
    text,
)

STACKS = ("keep", "inbox", "doca", "mlnx_ofed")
#: The packages of DOCA-Host with a driver or its userspace, as named in the installation guide of DOCA 2.9 to 3.4.
PROFILES = (
    *("doca-ofed", "doca-networking", "doca-roce", "doca-all"),
    *("doca-ofed-userspace", "doca-networking-userspace", "doca-roce-userspace", "doca-all-userspace"),
)
STACK_VERSION = matching(
    r"[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?(-[0-9]{1,3}(\.[0-9]{1,3}){1,3})?",
    "a version in quotes, like '24.10-1.1.4.0' for MLNX_OFED, or a release like '3.2.0' for DOCA",
)
URL = matching(
    r"(https?://[A-Za-z0-9._:\[\]-]+|file:)/[A-Za-z0-9._~/%+-]*",
    "a URL without a user or a query (https://example.org/folder/file)",
)
SHA256 = matching(r"sha256:[0-9a-fA-F]{64}", "'sha256:' and 64 hexadecimal digits", lower=True)
OPTION = matching(r"--[a-z][a-z0-9-]{0,63}(=[A-Za-z0-9_./:,+=-]{1,255})?", "one long option of mlnxofedinstall (--without-dkms)")
MODULE = matching(r"[a-z][a-z0-9_]{0,54}", "the name of a kernel module (mlx5_core)")
PARAMETERS = matching(r"[a-z0-9_]+=[A-Za-z0-9_.,:+-]*( [a-z0-9_]+=[A-Za-z0-9_.,:+-]*)*", "module parameters ('prof_sel=3 probe_vf=0')")
FIRMWARE_NAME = matching(r"[A-Z][A-Za-z0-9_]{1,63}", "the name of a firmware setting without an index (LINK_TYPE_P1)")
FIRMWARE_VALUE = matching(r"[A-Za-z0-9_.]{1,64}", "a number, or the name of a value (DEVICE_DEFAULT)")
PSID = matching(r"[A-Z0-9_]{6,16}", "the PSID of a board (MT_0000000838)")
FIRMWARE_VERSION = matching(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,5}", "a firmware version in quotes ('28.39.1002')")


def one_place(meaning: str, **places: Key) -> Key:
    """Return a file in one of several places."""
    return Key((dict,), meaning, one_of=True, keys=places)


ON_CONTROL_NODE = text("A file on the control node. A relative path starts at the folder of the inventory.", FILE)
SECTIONS: dict[str, Section] = {
    "rdma_driver": Section(
        keys(
            "The driver stack and its installation.",
            stack=choice(
                "`keep`: check the installed stack, and never replace it; install the distribution's packages only if there is no "
                "MLNX_OFED or DOCA-OFED. `inbox`: the distribution's packages; `doca`: DOCA-OFED from NVIDIA's repository; `mlnx_ofed`: "
                "the older bundle, which ended with 24.10. Replacing an installed stack needs `driver_switch_allowed`.",
                "keep",
                *STACKS,
            ),
            version=text(
                'Version of the bundle (`mlnx_ofed`) or release (`doca`). Required for both; there is no "latest".', STACK_VERSION
            ),
            source=one_place(
                "`mlnx_ofed` only: location of the bundle, `MLNX_OFED_LINUX-VERSION-DISTRIBUTION-ARCHITECTURE.tgz`.",
                file=ON_CONTROL_NODE,
                host_file=text("A file that is already on the hosts.", ABSOLUTE),
                url=text("URL from which each host downloads the file.", URL),
            ),
            checksum=text("`mlnx_ofed` only, and required: SHA-256 of the bundle.", SHA256),
            add_kernel_support=Key(
                (bool,),
                "Build packages for the running kernel (`--add-kernel-support`; for DOCA before 3.2 `doca-kernel-support`). "
                "Without it, this is done except for `mlnx_ofed` on Debian and Ubuntu: there DKMS builds for every kernel, which "
                "this option would disable.",
            ),
            with_nvmf=flag("`mlnx_ofed` only: also build NVMe over Fabrics (`--with-nvmf`).", False),
            without_fw_update=flag("`mlnx_ofed` only: do not update the firmware of the NICs (`--without-fw-update`).", True),
            force=flag(
                "`mlnx_ofed` only: pass `--force`. The installer then also removes packages that depend on the packages it replaces.", False
            ),
            flags=Key((list,), "`mlnx_ofed` only: additional options of `mlnxofedinstall`.", each=text("An option.", OPTION)),
            profile=choice("`doca` only: the package that installs the others as dependencies.", "doca-ofed", *PROFILES),
            repository=keys(
                "`doca` only: the repository.",
                url=text(
                    "URL of the repository. Without it, the folder on linux.mellanox.com for the release, distribution and architecture.",
                    URL,
                ),
                key=one_place(
                    "The key that signs the repository.",
                    file=ON_CONTROL_NODE,
                    url=text("URL from which the control node downloads the file.", URL),
                ),
                key_checksum=text("SHA-256 of the key's file. A key that matches is trusted.", SHA256),
            ),
            module_options=named(
                "Parameters of kernel modules, written to `/etc/modprobe.d`.",
                MODULE,
                Key((str,), "Parameters of the module.", form=PARAMETERS),
            ),
            hold_kernel=flag("Hold back newer kernels of the distribution while a stack is built for this one.", False),
            build_minutes=integer("Maximum duration of an installation.", 1, 600, default=60),
        ),
        ("preflight", "driver"),
    ),
    "rdma_firmware": Section(
        keys(
            "Firmware settings of the rails' NICs. Firmware versions are compared and never updated.",
            settings=named(
                "Settings by their names in mlxconfig, the same on every NIC.",
                FIRMWARE_NAME,
                Key((str, int), "Its value.", form=FIRMWARE_VALUE),
            ),
            link_type=flag("Set the link type (`LINK_TYPE_Pn`) of ports that support both to the rail's `link_layer`.", True),
            versions=named(
                "Expected firmware versions, by the PSID of the board.", PSID, Key((str,), "Firmware version.", form=FIRMWARE_VERSION)
            ),
        ),
        ("driver",),
    ),
    "rdma_gpudirect": Section(
        keys(
            "The path by which NICs reach GPU memory.",
            path=choice(
                "`auto`: DMA-BUF if it can work, otherwise peer memory; `none`: neither is set up.",
                "auto",
                "auto",
                "dmabuf",
                "peermem",
                "none",
            ),
            driver_version=text("The oldest accepted version of the NVIDIA driver.", VERSION),
        ),
        ("gpu",),
    ),
}
