# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the intent's schema that is about NCCL, its installation and the collectives that measure it."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import MPIRUN, PROGRAMS, SRUN
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


COLLECTIVES = Section(
    keys(
        "How collectives are run, and what they must reach.",
        operation=choice("The operation of nccl-tests that the ladder of hosts runs.", "all_reduce", *PROGRAMS),
        also=Key((list,), "Others that are run on the last set of the ladder.", each=choice("An operation.", None, *PROGRAMS)),
        gpus=integer("GPUs of each host that take part; all that the facts tell of, where it is absent.", 1, 64),
        launcher=choice("What starts a run on several hosts.", MPIRUN, MPIRUN, SRUN),
        launcher_program=text("Where that is; the first on the path of the session where it is absent.", ABSOLUTE),
        launcher_arguments=Key((list,), "More arguments of the launcher; everybody on the host can read them.", each=text("An argument.")),
        allow_root=flag("Tell Open MPI that root may run it; without it, a run needs a user whose key all hosts know.", False),
        address=text("Where the launcher reaches this host; by itself where our own session came in, else its name.", HOST),
        interface=text("The interface of Open MPI's own connections; `rdma_nccl.socket_ifname` where it is absent.", INTERFACE),
        folder=text(
            "Where the programs of nccl-tests are; by itself where `rdma_nccl.install` has put them, else on the path of the session.",
            ABSOLUTE,
        ),
        environment=named(
            "Variables of a run beside those of the host, no secrets among them.",
            ENVIRONMENT_NAME,
            Key((str, int), "Its value.", form=NCCL_VALUE),
        ),
        min_bytes=integer("The smallest size of a run.", 1, 2**40, default=2**30),
        max_bytes=integer("No size of a run is larger; each is twice the one before.", 1, 2**40, default=2**33),
        iterations=integer("How often each size is measured.", 1, 1_000_000, default=20),
        timeout_seconds=integer("After this a run is ended.", 1, 86400, default=300),
        repeats=integer("How often the last set of the ladder is run, to see how far its figures lie apart.", 1, 100, default=3),
        min_busbw_gbps=number(
            "busbw between hosts, in the place of what their NICs allow, in 10^9 bit/s; nccl-tests prints GB/s, 8 of them.",
            0,
        ),
        nvlink_busbw_gbps=number("busbw of one host alone, in 10^9 bit/s; without it that figure is told and not judged.", 0),
        fail_below=number("Below this fraction of what the NICs allow is an error.", 0, 1, default=0.80),
        warn_below=number("Below this fraction of it is a warning.", 0, 1, default=0.90),
    ),
    ("collectives",),
)
