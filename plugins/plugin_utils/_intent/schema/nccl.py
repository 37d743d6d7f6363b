# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent's schema for NCCL, its installation and the collectives that measure it."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import MPIRUN, PROGRAMS, SRUN
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import FILE, MESH, NONE
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    ABSOLUTE,
    ENVIRONMENT_NAME,
    HOST,
    INTERFACE,
    NCCL_NAME,
    NCCL_VALUE,
    VERSION,
    Key,
    Section,
    choice,
    flag,
    integer,
    keys,
    matching,
    named,
    number,
    optional,
    text,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema import driver

#: plugin_utils/_intent/schema/nccl_profiles.py has the settings of each.
PROFILES = ("default", "debug_first_run", "rail_only", "mesh", "cloud")
#: plugin_utils/_nccl/launchers.py has a file for each.
LAUNCHERS = ("profile_d", "slurm", "openmpi")
PACKAGE = matching(r"[a-z0-9A-Z][a-z0-9A-Z+._-]{1,127}", "a package name (libnccl2)")
PACKAGE_VERSION = matching(
    r"[0-9][A-Za-z0-9.+:_-]{0,127}",
    "the full version of a package in quotes ('2.30.7-1+cuda13.0'), as `apt-cache policy` or `rpm -q` shows it",
)
PLUGIN_NAME = matching(r"[a-z0-9][a-z0-9_-]{0,31}", "lower-case letters, digits, _ and -, at most 32 (mesh)")
PLUGIN_VERSION = matching(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", "a version or commit in quotes ('679a394')")


def _place(meaning: str) -> Key:
    return driver.one_place(
        meaning,
        file=driver.ON_CONTROL_NODE,
        host_file=text("A file that is already on the hosts.", ABSOLUTE),
        url=text("URL from which each host downloads the file.", driver.URL),
    )


SOURCE = _place("Location of the file.")
TESTS = optional(
    keys(
        "nccl-tests, built with MPI on each host from an archive of the source. Without it, nothing is installed or removed.",
        version=text("Version of nccl-tests. A source with another version is refused.", VERSION, required=True),
        source=SOURCE,
        checksum=text("SHA-256 of the archive.", driver.SHA256, required=True),
        built=flag("The archive contains programs that are built for these hosts; nothing is compiled.", False),
        folder=text(
            "Destination folder; the programs are in its folder `build`. The whole folder is replaced.", ABSOLUTE, default="/opt/nccl-tests"
        ),
        cuda_home=text("Folder of CUDA, with `bin/nvcc`.", ABSOLUTE, default="/usr/local/cuda"),
        mpi_home=text(
            "Folder of MPI, with `include/mpi.h` and `lib`. Required unless `built` is set (Debian: /usr/lib/x86_64-linux-gnu/openmpi).",
            ABSOLUTE,
        ),
        nccl_home=text("Folder of NCCL, with `include/nccl.h` and `lib`, if the compiler does not find it by itself.", ABSOLUTE),
        architectures=Key(
            (list,),
            "Compute capabilities to compile for (90: H100 and H200). Without it, all that the makefile names, which takes far longer.",
            each=integer("A compute capability.", 50, 199),
        ),
        build_minutes=integer("Maximum duration of the build.", 1, 600, default=60),
    )
)
INSTALL = keys(
    "Parts of NCCL to install on the hosts.",
    kind=choice(
        "`none`: nothing; `packages`: packages from the repositories of the host; `files`: package files.",
        "none",
        "none",
        "packages",
        "files",
    ),
    packages=named(
        "The packages by name: libnccl2, libnccl-dev, openmpi-bin.",
        PACKAGE,
        keys(
            "A package.",
            version=text(
                "Version of the package. Required for `kind: files`. Without it, any version from the repository is accepted.",
                PACKAGE_VERSION,
            ),
            source=SOURCE,
            checksum=text("`kind: files` only, and required: SHA-256 of the file.", driver.SHA256),
        ),
    ),
    tests=TESTS,
)
PLUGIN = keys(
    "A network plugin of NCCL ([NCCL](nccl.md#network-plugins)).",
    kind=choice(
        "`none`: NCCL's own network; `mesh`: nccl-mesh-plugin, for cables between hosts; `file`: the library of any other plugin.",
        NONE,
        NONE,
        MESH,
        FILE,
    ),
    name=text(
        "Name of the plugin. Its library is `/opt/rdma-cluster/nccl/NAME/libnccl-net-NAME.so`. Required for `kind: file`, else `mesh`.",
        PLUGIN_NAME,
    ),
    version=text("Version or commit of the plugin, as a record.", PLUGIN_VERSION),
    source=_place("`kind: mesh`: location of an archive of the source. Each host builds it, without root's rights."),
    file=_place("Location of a library that is built for these hosts. Required for `kind: file`."),
    checksum=text("SHA-256 of the archive or the library. Required for both.", driver.SHA256),
    variables=named(
        "Variables of the plugin (`NCCL_MESH_GID_INDEX`). They are written with those of NCCL.",
        NCCL_NAME,
        Key((str, int), "Its value.", form=NCCL_VALUE),
    ),
    build_minutes=integer("Maximum duration of the build.", 1, 60, default=5),
    transfer_seconds=integer(
        "Maximum duration of a transfer between two hosts ([the check](nccl.md#network-plugins)), with the start of the plugin.",
        10,
        600,
        default=45,
    ),
)
SECTIONS: dict[str, Section] = {
    "rdma_nccl": Section(
        keys(
            "Settings of NCCL ([NCCL](nccl.md)).",
            conf_file=text("Path of NCCL's own file.", ABSOLUTE, default="/etc/nccl.conf"),
            environment_file=text(
                "Path of a file with the same variables for units and shells.", ABSOLUTE, default="/etc/rdma-cluster/nccl.env"
            ),
            version=text("The NCCL version in use. Versions before 2.21 need the GID index.", VERSION),
            profile=choice(
                "Settings in addition to those derived from rails and fabric. `debug_first_run`: NCCL_DEBUG=INFO until the "
                "collectives stage has passed, then WARN; `rail_only`: a fabric that does not join the rails; `mesh`: cables "
                "between hosts, each with its own subnet; `cloud`: use `topology_file` even if the facts do not show a virtual "
                "machine.",
                "default",
                *PROFILES,
            ),
            launchers=Key(
                (list,),
                "Additional files to write. `profile_d`: for logins; `slurm`: a task prolog; `openmpi`: for `mpirun --tune`.",
                each=choice("A launcher.", None, *LAUNCHERS),
            ),
            socket_ifname=text(
                "The interface of NCCL's own connections. Without it, the interface of `rdma_fabric.management`. Without that as well, the "
                "interface of Ansible's SSH session, if that is known, not loopback and not a rail.",
                INTERFACE,
            ),
            topology_file=text(
                "Path of a topology file on the hosts, for NCCL on virtual machines, which do not show the real topology. Not "
                "used elsewhere.",
                ABSOLUTE,
            ),
            variables=named("Variables that override those derived from rails.", NCCL_NAME, Key((str, int), "Its value.", form=NCCL_VALUE)),
            install=INSTALL,
            plugin=PLUGIN,
        ),
        ("nccl",),
    ),
}


COLLECTIVES = Section(
    keys(
        "Measurement of collectives, and the values that they must reach.",
        operation=choice("Operation of nccl-tests for the ladder of hosts.", "all_reduce", *PROGRAMS),
        also=Key((list,), "Other operations to run on the last set of the ladder.", each=choice("An operation.", None, *PROGRAMS)),
        gpus=integer("Number of GPUs used on each host. Without it, all GPUs in the facts.", 1, 64),
        launcher=choice("Launcher of a run on several hosts.", MPIRUN, MPIRUN, SRUN),
        launcher_program=text("Path of the launcher. Without it, the first one on the session's PATH.", ABSOLUTE),
        launcher_arguments=Key(
            (list,), "Additional arguments of the launcher. Every user on the host can read them.", each=text("An argument.")
        ),
        allow_root=flag("Allow root to run Open MPI. Without it, a run needs a user whose key all hosts accept.", False),
        address=text(
            "Address at which the launcher reaches this host. Without it, the address of Ansible's SSH session, otherwise the host name.",
            HOST,
        ),
        interface=text("Interface of Open MPI's own connections. Without it, `rdma_nccl.socket_ifname`.", INTERFACE),
        folder=text(
            "Folder of the nccl-tests programs. Without it, the folder of `rdma_nccl.install`, otherwise the session's PATH.",
            ABSOLUTE,
        ),
        environment=named(
            "Variables of a run in addition to those of the host. Do not put secrets here.",
            ENVIRONMENT_NAME,
            Key((str, int), "Its value.", form=NCCL_VALUE),
        ),
        min_bytes=integer("Smallest size of a run.", 1, 2**40, default=2**30),
        max_bytes=integer("Largest size of a run; each size is twice the one before.", 1, 2**40, default=2**33),
        iterations=integer("Number of measurements of each size.", 1, 1_000_000, default=20),
        timeout_seconds=integer("Time limit of a run.", 1, 86400, default=300),
        repeats=integer("Number of runs of the last set of the ladder, to see the spread of its figures.", 1, 100, default=3),
        min_busbw_gbps=number(
            "Required busbw between hosts, instead of the value that their NICs allow, in 10^9 bit/s. nccl-tests prints "
            "GB/s; 1 GB/s is 8 of these.",
            0,
        ),
        nvlink_busbw_gbps=number("Required busbw of a single host, in 10^9 bit/s. Without it, the figure is reported and not judged.", 0),
        fail_below=number("Less than this fraction of what the NICs allow is an error.", 0, 1, default=0.80),
        warn_below=number("Less than this fraction is a warning.", 0, 1, default=0.90),
    ),
    ("collectives",),
)
