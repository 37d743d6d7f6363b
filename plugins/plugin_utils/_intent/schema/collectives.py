# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the intent's schema that is about collectives."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import MPIRUN, PROGRAMS, SRUN
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import (
    ABSOLUTE,
    ENVIRONMENT_NAME,
    HOST,
    INTERFACE,
    NCCL_VALUE,
    Key,
    Section,
    choice,
    flag,
    integer,
    keys,
    named,
    number,
    text,
)

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
