# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the intent's schema that says what NCCL is told, and what is installed of it."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    ABSOLUTE,
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
    optional,
    text,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema import driver

#: plugin_utils/_intent/schema/nccl_profiles.py says what each sets.
PROFILES = ("default", "debug_first_run", "rail_only", "mesh", "cloud")
#: plugin_utils/_nccl/launchers.py has a file for each.
LAUNCHERS = ("profile_d", "slurm", "openmpi")
PACKAGE = matching(r"[a-z0-9A-Z][a-z0-9A-Z+._-]{1,127}", "the name of a package (libnccl2)")
PACKAGE_VERSION = matching(
    r"[0-9][A-Za-z0-9.+:_-]{0,127}",
    "the whole version of a package in quotes ('2.30.7-1+cuda13.0'), as `apt-cache policy` or `rpm -q` has it",
)
SOURCE = driver.one_place(
    "Where the file is.",
    file=driver.ON_CONTROL_NODE,
    host_file=text("A file that is on the hosts already.", ABSOLUTE),
    url=text("From where each host fetches it.", driver.URL),
)
TESTS = optional(
    keys(
        "nccl-tests, made with MPI on each host from the archive of its source; left alone where it is absent.",
        version=text("Its version; a source that says another one is refused.", VERSION, required=True),
        source=SOURCE,
        checksum=text("The archive's SHA-256.", driver.SHA256, required=True),
        built=flag("The archive has the programs themselves, made for these hosts: nothing is compiled.", False),
        folder=text("Where it goes; the programs are in `build` there. The whole folder is replaced.", ABSOLUTE, default="/opt/nccl-tests"),
        cuda_home=text("Where CUDA is, with `bin/nvcc`.", ABSOLUTE, default="/usr/local/cuda"),
        mpi_home=text(
            "Where MPI is, with `include/mpi.h` and `lib`; needed unless `built` (Debian: /usr/lib/x86_64-linux-gnu/openmpi).", ABSOLUTE
        ),
        nccl_home=text("Where NCCL is, with `include/nccl.h` and `lib`, if not where the compiler looks by itself.", ABSOLUTE),
        architectures=Key(
            (list,),
            "The compute capabilities to compile for (90: H100 and H200); without, all that its makefile names, which takes far longer.",
            each=integer("A compute capability.", 50, 199),
        ),
        build_minutes=integer("How long the build may take.", 1, 600, default=60),
    )
)
INSTALL = keys(
    "What of NCCL is installed on the hosts.",
    kind=choice(
        "`none`: nothing; `packages`: packages from the repositories that the host has; `files`: packages that are given as files.",
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
            version=text("Its version; `kind: files` needs it, and of a repository whatever is there is good without.", PACKAGE_VERSION),
            source=SOURCE,
            checksum=text("`kind: files` only, and needed there: the file's SHA-256.", driver.SHA256),
        ),
    ),
    tests=TESTS,
)
SECTIONS: dict[str, Section] = {
    "rdma_nccl": Section(
        keys(
            "What NCCL is told ([NCCL](nccl.md)).",
            conf_file=text("Where NCCL's own file is.", ABSOLUTE, default="/etc/nccl.conf"),
            environment_file=text("The same for units and shells.", ABSOLUTE, default="/etc/rdma-cluster/nccl.env"),
            version=text("The version of NCCL in use; before 2.21 it must be told the GID index.", VERSION),
            profile=choice(
                "What is set beside what follows from rails and fabric. `debug_first_run`: NCCL_DEBUG=INFO until the collectives stage has "
                "passed, then WARN; `rail_only`: a fabric that does not join the rails; `mesh`: cables between hosts, each a subnet; "
                "`cloud`: `topology_file` is believed whether or not the facts show a virtual machine.",
                "default",
                *PROFILES,
            ),
            launchers=Key(
                (list,),
                "Which further files are written: `profile_d`: for logins; `slurm`: a task prolog; `openmpi`: for `mpirun --tune`.",
                each=choice("A launcher.", None, *LAUNCHERS),
            ),
            socket_ifname=text(
                "The interface of NCCL's own connections. Where it is absent: that of Ansible's SSH session, if it is known, not loopback"
                " and no rail.",
                INTERFACE,
            ),
            topology_file=text(
                "A topology that the hosts have as a file, for NCCL on virtual machines, which show none of their own; left out elsewhere.",
                ABSOLUTE,
            ),
            variables=named("Variables that win over those derived from rails.", NCCL_NAME, Key((str, int), "Its value.", form=NCCL_VALUE)),
            install=INSTALL,
        ),
        ("nccl",),
    ),
}
