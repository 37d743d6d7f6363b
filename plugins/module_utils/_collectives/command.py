# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the command line and the variables of a run of nccl-tests: on one host without MPI, with Open MPI, or with Slurm's srun.

Sources: src/common.cu of nccl-tests (options), mpirun(1) of Open MPI 4 and 5, srun(1). Values of variables are never on a command line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

ALONE, MPIRUN, SRUN = "none", "mpirun", "srun"
LAUNCHERS = (ALONE, MPIRUN, SRUN)
#: operation → the program of nccl-tests.
PROGRAMS = {name: f"{name}_perf" for name in ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv", "broadcast", "reduce")}
#: Set for the run, independent of the host's files: the log proves the path of the data. All other variables are the host's own.
DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
#: The exit codes of mpirun after its --timeout: 4.1.4 with ETIMEDOUT, 5.0.11 with 256 - 15.
TIMED_OUT = (110, 241)
#: How long srun waits for hosts: a drained or busy host would keep it until it is stopped.
WAIT_SECONDS = 60
#: busbw counts from this size on, if a run has such sizes.
LARGE_BYTES = 2**28
#: Each rank has its own part of the data, in whole lines; elsewhere in whole elements (GetCollByteCount of all_gather.cu and others).
PARTED, LINE_BYTES, ELEMENT_BYTES = ("all_gather", "reduce_scatter", "alltoall"), 16, 4
#: A launcher's own limit is this much shorter than the limit at which it is stopped.
SPARE_SECONDS = 10


@dataclass(frozen=True)
class NcclRun:
    """hosts: their names for the launcher, none for the host itself; gpus: of each host, a rank each; folder: of the programs.

    program: the launcher's own, "" for the first on PATH; launcher_arguments: additional ones; interface: for MPI's own connections;
    as_root: whether Open MPI may run as root; environment: variables for every rank in addition to DEBUG.
    """

    operation: str
    gpus: int
    hosts: tuple[str, ...] = ()
    launcher: str = ALONE
    folder: str = ""
    program: str = ""
    launcher_arguments: tuple[str, ...] = ()
    interface: str = ""
    as_root: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    min_bytes: int = 2**30
    max_bytes: int = 2**33
    step_factor: int = 2
    iterations: int = 20
    warmup_iterations: int = 5
    timeout_seconds: int = 300

    @property
    def nhosts(self) -> int:
        return max(1, len(self.hosts))

    @property
    def ranks(self) -> int:
        """Return the number of ranks on all hosts together."""
        return self.nhosts * self.gpus


def run_sizes(min_bytes: int, max_bytes: int, step_factor: int = 2) -> list[int]:
    """Return the sizes in bytes of nccl-tests (-b, -e, -f), the smallest first; none if min_bytes is the larger one."""
    sizes = []
    size = min_bytes
    while size <= max_bytes:
        sizes.append(size)
        size *= step_factor
    return sizes


def large_bytes(sizes: Sequence[int], operation: str, ranks: int) -> int:
    """Return the size from which busbw counts: the first large size of a run, else its largest, as nccl-tests prints it.

    sizes: in bytes, from run_sizes; at least one. It is rounded down to what its ranks can share.
    """
    size = next((size for size in sizes if size >= LARGE_BYTES), sizes[-1])
    unit_bytes = LINE_BYTES * ranks if operation in PARTED else ELEMENT_BYTES
    return size - size % unit_bytes or size


def environment(run: NcclRun) -> dict[str, str]:
    """Return the variables of the run in addition to the host's own."""
    return {**run.environment, **DEBUG}


def command(run: NcclRun) -> list[str]:
    """Return the whole command line. Raises ValueError for an invalid run."""
    if run.operation not in PROGRAMS:
        raise ValueError(f"not an operation of nccl-tests: {run.operation!r}; expected one of {', '.join(PROGRAMS)}")
    if run.gpus < 1 or run.min_bytes > run.max_bytes or run.step_factor < 2:
        raise ValueError(
            f"not a valid run: {run.gpus} GPUs, from {run.min_bytes} to {run.max_bytes} bytes by a factor of {run.step_factor}"
        )
    if len(set(run.hosts)) != len(run.hosts) or not all(map(_HOST.fullmatch, run.hosts)):
        raise ValueError(f"hosts must be names or IPv4 addresses, each once: {', '.join(map(repr, run.hosts))}")
    if not all(map(_VARIABLE.fullmatch, run.environment)):
        raise ValueError(f"not names of variables: {', '.join(name for name in run.environment if not _VARIABLE.fullmatch(name))}")
    if run.launcher == ALONE:
        if len(run.hosts) > 1:
            raise ValueError(f"{len(run.hosts)} hosts need a launcher: {MPIRUN} or {SRUN}")
        return _test(run, gpus=run.gpus)
    if not run.hosts:
        raise ValueError(f"{run.launcher} needs the names of its hosts")
    return [*(_mpirun(run) if run.launcher == MPIRUN else _srun(run)), *_test(run, gpus=1)]


def _test(run: NcclRun, gpus: int) -> list[str]:
    """Return the command of one process. gpus: of each process."""
    program = PROGRAMS[run.operation]
    sizes = ["-b", str(run.min_bytes), "-e", str(run.max_bytes), "-f", str(run.step_factor)]
    rest = ["-g", str(gpus), "-n", str(run.iterations), "-w", str(run.warmup_iterations), "-c", "1"]
    return [f"{run.folder.rstrip('/')}/{program}" if run.folder else program, *sizes, *rest]


def _mpirun(run: NcclRun) -> list[str]:
    """Return the command with mpirun. MPI itself moves only a few bytes of each rank, so it uses TCP, and no rail under test.

    Not bound: with few ranks Open MPI would keep each, and with it NCCL's own threads, on one core.
    """
    words = [run.program or "mpirun", *(["--allow-run-as-root"] if run.as_root else []), *run.launcher_arguments]
    words += ["--host", ",".join(f"{host}:{run.gpus}" for host in run.hosts), "-np", str(run.ranks)]
    words += ["--map-by", f"ppr:{run.gpus}:node", "--bind-to", "none", "--timeout", str(run.timeout_seconds), "--tag-output"]
    words += ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"]
    if run.interface:
        words += ["--mca", "btl_tcp_if_include", run.interface, "--mca", "oob_tcp_if_include", run.interface]
    # It must not stop to ask for a password or a host's key.
    words += ["--mca", "plm_rsh_args", "-o BatchMode=yes"]
    return [*words, *(word for name in sorted(environment(run)) for word in ("-x", name))]


def _srun(run: NcclRun) -> list[str]:
    """Return the command with srun. Each task has the environment of srun itself (--export=ALL).

    Whole hosts and no binding, unless launcher_arguments set something else: by default srun gives each task, with NCCL's threads, one
    core.
    """
    words = [run.program or "srun", "--exclusive", "--mem=0", "--cpu-bind=none", f"--immediate={WAIT_SECONDS}", *run.launcher_arguments]
    words += ["--nodelist", ",".join(run.hosts), "--nodes", str(run.nhosts)]
    words += ["--ntasks", str(run.ranks), "--ntasks-per-node", str(run.gpus), "--export=ALL", "--kill-on-bad-exit=1"]
    return [*words, "--time", str(math.ceil(run.timeout_seconds / 60))]


def deadline_seconds(run: NcclRun) -> int:
    """Return the time after which the run is stopped from outside."""
    return run.timeout_seconds + (0 if run.launcher == ALONE else SPARE_SECONDS)


#: "[1,3]<stdout>:", with the name of the launcher before an @ in some versions. Open MPI 5 adds a space after it, and uses WILDCARD for
#: itself.
_TAG = re.compile(r"\[(?:[\w.-]{1,200}@)?[0-9]{1,10},([0-9]{1,9}|WILDCARD)\]<std(?:out|err|diag)>:")
#: A sentence that Open MPI 5 breaks in its box: its end is on the next line.
_BROKEN_OFF = re.compile(r"(?:mpirun|mpiexec|prterun) noticed that process rank [^\n]{1,400} exited on\s*$")
#: A rank that never ends its line is not waited for.
_LONGEST = 65_536


def untangled(lines: Iterable[str]) -> Iterator[str]:
    """Return whole lines without their tags; lines without a tag are unchanged. An unfinished piece comes last, without a line end.

    The first tag shows whether a space belongs to it: neither nccl-tests nor NCCL starts a line with one.
    """
    pending: dict[str, str] = {}
    spaced: bool | None = None
    for line in lines:
        before, *pieces = _TAG.split(line) if ">:" in line else [line]
        if before:
            yield before
        for rank, tagged in zip(pieces[::2], pieces[1::2]):
            if spaced is None and tagged != "\n":
                spaced = tagged.startswith(" ")
            whole = pending.pop(rank, "") + (tagged.removeprefix(" ") if spaced else tagged)
            if whole.endswith("\n") or len(whole) > _LONGEST:
                yield whole
            elif whole:
                pending[rank] = whole
    yield from pending.values()


def whole_sentences(lines: Iterable[str]) -> Iterator[str]:
    """Return the same number of lines, with a sentence that Open MPI has broken on its second line, and nothing on the first."""
    begun = ""
    for line in lines:
        if begun:
            yield "\n"
            yield f"{begun.rstrip()} {line}"
            begun = ""
        elif _BROKEN_OFF.match(line):
            begun = line
        else:
            yield line
    if begun:
        yield begun
