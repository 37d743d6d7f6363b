# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command lines of nccl-tests, whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import (
    NcclRun,
    command,
    deadline_seconds,
    environment,
    large_bytes,
    run_sizes,
)

SIZES = "-b 1073741824 -e 8589934592 -f 2"
ALONE = NcclRun("all_reduce", 8, folder="/opt/nccl-tests/build/")
TWO = NcclRun("all_gather", 8, ("192.0.2.1", "gpu-2.example"), "mpirun", environment={"LD_LIBRARY_PATH": "/opt/nccl/lib"})


def test_one_host_runs_one_process_for_all_gpus() -> None:
    assert command(ALONE) == f"/opt/nccl-tests/build/all_reduce_perf {SIZES} -g 8 -n 20 -w 5 -c 1".split()
    assert (ALONE.ranks, deadline_seconds(ALONE)) == (8, 300)


def test_open_mpi_starts_a_process_for_each_gpu() -> None:
    words = "mpirun --host 192.0.2.1:8,gpu-2.example:8 -np 16 --map-by ppr:8:node --bind-to none --timeout 300 --tag-output"
    words += " --mca pml ob1 --mca btl self,tcp"
    names = "-x LD_LIBRARY_PATH -x NCCL_DEBUG -x NCCL_DEBUG_SUBSYS"
    rest = ["--mca", "plm_rsh_args", "-o BatchMode=yes", *names.split()]
    assert command(TWO) == [*words.split(), *rest, *f"all_gather_perf {SIZES} -g 1 -n 20 -w 5 -c 1".split()]
    assert (TWO.ranks, deadline_seconds(TWO)) == (16, 310)


def test_open_mpi_with_everything_that_a_site_may_say() -> None:
    run = replace(TWO, program="/opt/ompi/bin/mpirun", as_root=True, launcher_arguments=("--prefix", "/opt/ompi"), interface="eno1")
    words = command(run)
    assert words[:5] == ["/opt/ompi/bin/mpirun", "--allow-run-as-root", "--prefix", "/opt/ompi", "--host"]
    at = words.index("btl_tcp_if_include")
    assert words[at - 1 : at + 5] == ["--mca", "btl_tcp_if_include", "eno1", "--mca", "oob_tcp_if_include", "eno1"]


def test_slurm() -> None:
    run = replace(TWO, launcher="srun", hosts=("gpu-1", "gpu-2"), launcher_arguments=("--mpi=pmix",), timeout_seconds=301)
    words = "srun --exclusive --mem=0 --cpu-bind=none --immediate=60 --mpi=pmix --nodelist gpu-1,gpu-2 --nodes 2"
    words += " --ntasks 16 --ntasks-per-node 8 --export=ALL --kill-on-bad-exit=1 --time 6"
    assert command(run) == [*words.split(), *f"all_gather_perf {SIZES} -g 1 -n 20 -w 5 -c 1".split()]


def test_the_log_is_switched_on_whatever_else_is_set_and_no_value_is_on_the_command_line() -> None:
    run = replace(TWO, environment={"NCCL_DEBUG": "WARN", "TOKEN": "hidden"})
    assert environment(run) == {"TOKEN": "hidden", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}
    assert not any("hidden" in word for word in command(run))


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (replace(ALONE, operation="gather"), "not an operation of nccl-tests: 'gather'"),
        (replace(ALONE, gpus=0), "not a valid run: 0 GPUs"),
        (replace(ALONE, min_bytes=2, max_bytes=1), "not a valid run: 8 GPUs, from 2 to 1 bytes"),
        (replace(TWO, launcher="none"), "2 hosts need a launcher"),
        (replace(TWO, hosts=()), "mpirun needs the names of its hosts"),
        (replace(TWO, hosts=("a", "a")), "each once"),
        (replace(TWO, hosts=("a:9", "b")), "names or IPv4 addresses"),
        (replace(TWO, hosts=("-x", "b")), "names or IPv4 addresses"),
        (replace(TWO, hosts=("a,c", "b")), "names or IPv4 addresses"),
        (replace(TWO, environment={"A=B": "1"}), "not names of variables: A=B"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_run_is_refused(run: NcclRun, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        command(run)


def test_the_sizes_of_a_run_are_those_that_nccl_tests_steps_through() -> None:
    """for (size = minbytes; size <= maxbytes; size *= stepfactor): the last one need not be max_bytes."""
    assert run_sizes(2**30, 2**33) == [2**30, 2**31, 2**32, 2**33]
    assert run_sizes(2**20, 100_000_000)[-1] == 2**26
    assert run_sizes(1000, 1000) == [1000]
    assert run_sizes(1, 100, 10) == [1, 10, 100]


@pytest.mark.parametrize(
    ("sizes", "operation", "ranks", "expected"),
    [
        (run_sizes(2**30, 2**33), "all_reduce", 24, 2**30),
        (run_sizes(2**20, 2**33), "all_reduce", 16, 2**28),
        (run_sizes(2**20, 100_000_000), "all_reduce", 16, 2**26),
        (run_sizes(1_000_000, 2**33), "all_reduce", 16, 512_000_000),
        (run_sizes(2**30 + 3, 2**30 + 3), "all_reduce", 16, 2**30),
        # Of 1 GiB each of 24 ranks has 44739242 bytes and two thirds, of which whole lines of 16 bytes are used.
        (run_sizes(2**30, 2**30), "all_gather", 24, 24 * 44739232),
        (run_sizes(2**30, 2**30), "alltoall", 24, 24 * 44739232),
        (run_sizes(2**30, 2**30), "reduce_scatter", 16, 2**30),
        (run_sizes(8, 8), "alltoall", 16, 8),
    ],
)
def test_a_rate_counts_from_a_size_on_that_the_run_prints(sizes: list[int], operation: str, ranks: int, expected: int) -> None:
    assert large_bytes(sizes, operation, ranks) == expected
