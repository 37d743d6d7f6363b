# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's variables for its output, its checks and its loading.

A part of the table of _nccl_variables, which names the sources of its facts.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import (
    choice,
    integer,
    path,
    switch,
    text,
    words,
    yes_or_no,
)

VARIABLES = (
    choice(
        "NCCL_CHECK_MODE",
        "DEFAULT DEBUG_LOCAL DEBUG_GLOBAL",
        "DEFAULT",
        "how much of the arguments is checked",
        since="2.29.7",
        debugging=True,
    ),
    switch(
        "NCCL_CHECK_POINTERS",
        "0",
        "1 checks pointers at every call",
        debugging=True,
        deprecated=True,
        instead="NCCL_CHECK_MODE=DEBUG_LOCAL",
    ),
    path("NCCL_CONF_FILE", "not set", "in the environment only: file to read instead of $HOME/.nccl.conf", since="2.23.4"),
    choice(
        "NCCL_DEBUG",
        "VERSION WARN ATTN INFO ABORT TRACE",
        "not set",
        "what it prints: VERSION, WARN, INFO, TRACE; INFO is for a check, not for every job",
    ),
    path("NCCL_DEBUG_FILE", "standard output", "where it prints; %h is the host, %p the process"),
    words(
        "NCCL_DEBUG_LEVELS",
        "VERSION WARN ATTN INFO ABORT TRACE ALL",
        "not set",
        "which levels are printed, each by its name",
        since="2.32.3",
    ),
    words(
        "NCCL_DEBUG_SUBSYS",
        "INIT COLL P2P SHM NET GRAPH TUNING ENV ALLOC ALLOC_HOST CALL PROXY NVLS BOOTSTRAP REG PROFILE RAS DESTROY ALL",
        "INIT,BOOTSTRAP,ENV",
        "which parts print with NCCL_DEBUG=INFO; NET shows the path of each channel",
    ),
    text("NCCL_DEBUG_TIMESTAMP_FORMAT", "[%F %T]", "how a time before a line looks", since="2.26.2"),
    words(
        "NCCL_DEBUG_TIMESTAMP_LEVELS",
        "VERSION WARN ATTN INFO ABORT TRACE ALL",
        "WARN",
        "which lines have a time before them",
        since="2.26.2",
    ),
    integer("NCCL_DIAGNOSTICS_ECC_THRESHOLD", 0, None, "0", "errors of a GPU's memory from which on a check fails", since="2.31.2"),
    text("NCCL_ENV_PLUGIN", "not set", "plugin that gives NCCL its variables", since="2.28.7"),
    text("NCCL_NO_CACHE", "not set", "variables that are looked up again each time", since="2.29.7"),
    switch("NCCL_NVTX_DISABLE", "0", "1 leaves out the ranges that profilers show", since="2.28.3"),
    yes_or_no("NCCL_PARAM_DUMP_ALL", "FALSE", "TRUE prints all variables at the start", since="2.30.3"),
    text("NCCL_PROFILER_PLUGIN", "not set", "profiler plugin", since="2.23.4"),
    switch("NCCL_PROGRESS_COUNTERS", "0", "1 counts how far collectives are", since="2.32.3"),
    integer("NCCL_PROGRESS_COUNTER_MONITOR_POLL_MS", 1, None, "1000", "milliseconds between looks at these counters", since="2.32.3"),
    integer(
        "NCCL_PROGRESS_COUNTER_MONITOR_STALE_MS",
        1,
        None,
        "5000",
        "milliseconds until a stopped counter is reported",
        since="2.32.3",
    ),
    integer("NCCL_PROGRESS_COUNTER_MONITOR_STALE_WARN_SEC", 1, None, "600", "seconds after which it is warned of", since="2.32.3"),
    integer("NCCL_PROXY_DUMP_SIGNAL", -1, 64, "-1: none", "signal upon which the proxy prints its state", since="2.14.3"),
    text(
        "NCCL_RAS_ADDR",
        "localhost:28028",
        "where its status is asked for; other users of the host need another port",
        since="2.24.3",
        debugging=True,
    ),
    switch("NCCL_RAS_ENABLE", "1", "whether its status can be asked for (ncclras)", since="2.24.3", debugging=True),
    integer("NCCL_RAS_TIMEOUT_FACTOR", 1, None, "1", "makes the waits of its status service longer", since="2.24.3", debugging=True),
    switch("NCCL_REPORT_CONNECT_PROGRESS", "0", "1 prints how far connecting is", since="2.19.4"),
    integer(
        "NCCL_RMA_PROXY_DUMP_SIGNAL",
        -1,
        64,
        "-1: none",
        "signal upon which the proxy of one-sided operations prints its state",
        since="2.29.2",
    ),
    switch("NCCL_RUN_DIAGNOSTICS", "0", "1 checks GPUs and network at the start", since="2.31.2"),
    switch("NCCL_RUN_RAS_DIAGNOSTICS", "0", "1 lets the status service run these checks", since="2.31.2"),
    yes_or_no("NCCL_SET_THREAD_NAME", "0", "1 names NCCL's threads", since="2.12.7"),
    text("NCCL_TUNER_PLUGIN", "not set", "tuner plugin", since="2.19.1"),
    yes_or_no("NCCL_WARN_ENABLE_DEBUG_INFO", "0", "1 prints as with INFO after the first warning", since="2.19.4"),
)
