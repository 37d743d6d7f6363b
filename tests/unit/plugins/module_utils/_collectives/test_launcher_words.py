# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What launchers say of a run that did not end well: Open MPI 5.0.11 on two H100, Slurm 22.05.8 among containers."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.judge import check_exit
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.start import MOST, launcher_words, read_output

NO_PROGRAM = """--------------------------------------------------------------------------
prterun was unable to launch the specified application as it could not
access an executable:

   Executable: /opt/nccl-tests/build/all_reduce_perf
   Node: vm

while attempting to start process rank 0.
--------------------------------------------------------------------------
"""
DRAINED = """srun: Required node not available (down, drained or reserved)
srun: job 29 queued and waiting for resources
srun: error: Unable to allocate resources: Requested nodes are busy
"""


def test_a_message_of_several_lines_is_one_sentence() -> None:
    assert launcher_words(NO_PROGRAM) == (
        "prterun was unable to launch the specified application as it could not access an executable: "
        "Executable: /opt/nccl-tests/build/all_reduce_perf Node: vm while attempting to start process rank 0."
    )


def test_what_nccl_tests_prints_is_not_the_launcher_s() -> None:
    row = "   268435456      67108864     float     sum      -1   900.26  298.18  298.18       0   902.54  297.42  297.42       0\n"
    assert launcher_words(f"# nThread 1\n#\n{row}mpirun: killed\n") == "mpirun: killed"
    assert len(launcher_words("word " * 1000)) == MOST


def test_a_run_that_did_not_start_says_why(tmp_path: Path) -> None:
    for text, status, problem, words in (
        (NO_PROGRAM, 183, "", "exit status 183; prterun was unable to launch"),
        (DRAINED, 1, "", "exit status 1; srun: Required node not available (down, drained or reserved) srun: job 29 queued"),
        (DRAINED, None, "srun did not end within 18 seconds", "srun did not end within 18 seconds; srun: Required node not available"),
    ):
        (tmp_path / "output").write_text(text)
        outcome = read_output(str(tmp_path / "output"), host="gpu1", subject="a run", exit_status=status, problem=problem)
        assert check_exit(outcome).observed.startswith(words)
