# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a job's log says went wrong: each kind of line, what came first and what followed, and logs that are empty, cut, long or torn."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.meanings import MEANINGS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import (
    MOST_PLACES,
    MOST_UNKNOWN,
    MOST_VALUES,
    UNKNOWN_LINE,
    UNKNOWN_WARNING,
    read_job_log,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import UNKNOWN
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.every import SIGNATURES, find_signature
from tests.unit.builders import class_lines, library_lines, tool_lines, torch_lines
from tests.unit.builders.garbled import garbled
from tests.unit.builders.job_lines import CAPTURED, DERIVED
from tests.unit.builders.library_lines import CALLS, GPUS, HEALTHY, LIBRARIES, PREFIXES, RENDEZVOUS, SETUP, TOOLS
from tests.unit.builders.program_lines import KERNEL, NCCL, OPEN_MPI, PERFTEST, PLUGINS, UCX

H200 = Path(__file__).parents[3] / "fixtures" / "h200"
H100 = H200.parent / "h100"
PROGRAMS = (*PERFTEST, *OPEN_MPI, *UCX, *NCCL, *KERNEL)
BESIDE = (*LIBRARIES, *library_lines.UCX, *TOOLS, *GPUS, *RENDEZVOUS, *CALLS, *SETUP)
ALL = (
    *CAPTURED,
    *DERIVED,
    *PLUGINS,
    *class_lines.NCCL,
    *((name, False, line) for name, line in (*PROGRAMS, *BESIDE, *class_lines.PROGRAMS, *torch_lines.LINES, *tool_lines.LINES)),
)
WARN = "[2026-11-20 09:{}:41] {}:100:200 [0] misc/ibvwrap.cc:278 NCCL WARN {}\n"
LOCKED = "Call to ibv_reg_mr failed with error Cannot allocate memory"
CLOSED = "socketProgress: Connection closed by remote peer node2<4000>"
RETRY = "NET/IB : Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129 (Send)"
SAMPLE = "".join(f"{line}\n" for _name, _info, line in ALL)


def h200(name: str) -> str:
    return (H200 / f"{name}.txt").read_text(encoding="utf-8")


def names(text: str) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in read_job_log(text.splitlines(keepends=True)).occurrences]


@pytest.mark.parametrize(("name", "info", "line"), ALL, ids=[f"{number}-{name}" for number, (name, _info, _line) in enumerate(ALL)])
def test_each_line_is_of_its_kind(name: str, info: bool, line: str) -> None:
    assert [each.name for each in read_job_log([f"{line}\n"]).occurrences] == [name]
    for prefix, rank in PREFIXES:
        occurrences = read_job_log([f"{prefix}{line}\r\n"]).occurrences
        assert [each.name for each in occurrences] == [name], prefix
        assert rank is None or rank in occurrences[0].ranks or occurrences[0].ranks
    found = find_signature(line, info=info)
    assert found is not None


@pytest.mark.parametrize("line", [*HEALTHY, *torch_lines.HARMLESS, *tool_lines.HARMLESS])
def test_a_healthy_line_of_these_programs(line: str) -> None:
    assert read_job_log([f"{line}\n"]).occurrences == ()


def test_colors_within_a_line_hide_nothing() -> None:
    line = WARN.format(30, "node2", LOCKED).replace("NCCL WARN ", "\x1b[1;31mNCCL\x1b[0m \x1b[31mWARN\x1b[0m ")
    occurrence = read_job_log([line]).occurrences[0]
    assert (occurrence.name, occurrence.hosts) == ("memory.locked", ("node2",))


@pytest.mark.parametrize(("kinds", "text"), class_lines.QUOTED, ids=["PyTorch", "XLA", "PyTorch, empty"])
def test_a_warning_that_another_program_quotes(kinds: tuple[str, ...], text: str) -> None:
    assert tuple(name for _kind, name in names(text)) == kinds


def test_the_lines_of_nccl_2_0_lack_its_name() -> None:
    line = "node1:100:200 [0] {} Call to ibv_reg_mr failed with error Cannot allocate memory\n"
    occurrence = read_job_log([line.format("misc/ibvwrap.cu:60 WARN")]).occurrences[0]
    assert (occurrence.name, occurrence.hosts) == ("memory.locked", ("node1",))
    assert read_job_log([line.format("INFO")]).occurrences == ()
    assert names("node1:100:200 [0] misc/new.cu:60 WARN something new\n") == [("unknown", UNKNOWN_WARNING)]


def test_each_signature_has_a_line() -> None:
    found = [find_signature(line, info=info) for _name, info, line in ALL]
    seen = {id(each[0]) for each in found if each is not None}
    assert [signature for signature in SIGNATURES if id(signature) not in seen] == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("E1201 10:01:12.112233  4711 new_part.cpp:77] Peer is of another kind", 1),
        ("[1,3]<stderr>:F1201 10:01:12.112233  4711 new_part.cpp:77] Peer is of another kind", 1),
        ("I1201 10:01:12.112233  4711 new_part.cpp:77] Peer is of another kind", 0),
        ("the code E1201 of 10:01:12 is in new_part.cpp:77] of the book", 0),
    ],
)
def test_a_line_at_level_error_is_listed_whatever_its_words_are(line: str, count: int) -> None:
    assert [each.name for each in read_job_log([f"{line}\n"]).occurrences] == [UNKNOWN_LINE] * count


def test_each_kind_has_a_meaning() -> None:
    assert {signature.name for signature in SIGNATURES} | {"mpi.absent", "net.differs", UNKNOWN_WARNING, UNKNOWN_LINE} == set(MEANINGS)
    assert {meaning.kind for meaning in MEANINGS.values()} == {"error", "symptom", "consequence", "remark", "unknown"}
    assert {name for meaning in MEANINGS.values() for name in meaning.explains} <= set(MEANINGS)


def test_a_missing_device_on_h200() -> None:
    log = read_job_log(h200("all_reduce_perf_no_ib_device_failed").splitlines(keepends=True))
    assert [(each.kind, each.name, each.count, each.line) for each in log.occurrences] == [
        ("remark", "ib.no_device", 1, 16),
        ("error", "net.none", 2, 20),
        ("symptom", "nccl.usage", 1, 32),
        ("consequence", "tests.failed", 2, 33),
    ]
    assert log.cause == "ib.no_device"
    assert (log.lines, log.cut, log.context.hosts) == (35, False, ("vm",))
    assert log.occurrences[1].first.time == "11-20 09:29:41"
    assert log.context.variables == {"NCCL_IB_HCA": {"mlx5_0": None}}
    assert log.context.versions == {"2.28.9+cuda13.0": {"vm": None}}


def test_a_missing_topology_file_on_h200_is_no_failure() -> None:
    log = read_job_log(h200("all_reduce_perf_topo_file_missing_debug_info").splitlines(keepends=True))
    topo = log.occurrences[-1]
    assert (topo.name, topo.count, topo.ranks, topo.hosts) == ("topo.file", 2, (0, 1), ("vm",))
    assert topo.fields == {"file": ("/nonexistent.xml",), "error": ("No such file or directory",)}
    assert (log.cause, log.context.nranks) == (None, 2)


@pytest.mark.parametrize("name", ["all_reduce_perf", "all_reduce_perf_debug_info"])
def test_a_log_without_failures(name: str) -> None:
    log = read_job_log(h200(name).splitlines(keepends=True))
    assert log.cause is None
    assert {each.kind for each in log.occurrences} <= {"remark"}


def test_the_first_error_is_the_cause_and_not_what_follows_it() -> None:
    lines = [WARN.format(30, "node2", CLOSED), WARN.format(29, "node1", LOCKED), WARN.format(31, "node3", RETRY)]
    log = read_job_log(lines)
    assert [(each.kind, each.name) for each in log.occurrences] == [
        ("consequence", "socket.closed"), ("error", "memory.locked"), ("error", "ib.retry"),
    ]  # fmt: skip
    assert log.cause == "memory.locked"


def test_times_count_where_all_errors_have_one() -> None:
    lines = [WARN.format(31, "node3", RETRY), WARN.format(29, "node1", LOCKED)]
    assert read_job_log(lines).cause == "memory.locked"
    assert read_job_log([lines[0].partition("] ")[2], lines[1]]).cause == "ib.retry"


def test_without_an_error_the_first_symptom_is_reported() -> None:
    symptom = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled system error (run with NCCL_DEBUG=INFO for details)\n"
    assert read_job_log([WARN.format(29, "node1", CLOSED), symptom]).cause == "nccl.system"


def test_a_port_that_went_down_explains_retries_that_follow_it() -> None:
    event = WARN.format(28, "node1", "NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)")
    retry = WARN.format(29, "node1", RETRY)
    assert read_job_log([event, retry]).cause == "ib.event"
    assert read_job_log([retry, event]).cause == "ib.retry"


@pytest.mark.parametrize("event", ["client reregistration(17)", "SM change(13)"])
def test_a_subnet_manager_that_starts_again_explains_no_retries(event: str) -> None:
    """Every port of the fabric has such events when the subnet manager is taken over by another one."""
    reregistered = WARN.format(28, "node1", f"NET/IB : mlx5_0:1 Got non-fatal async event: {event}")
    down = WARN.format(28, "node1", "NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)")
    retry = WARN.format(29, "node2", RETRY)
    assert read_job_log([reregistered, retry]).cause == "ib.retry"
    assert read_job_log([down, reregistered, retry]).cause == "ib.event"


def test_ranks_are_put_on_hosts() -> None:
    init = "node{}:{}:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank {} nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x2 - Init START\n"
    timeout = (
        "[rank1]:[E1218 20:27:21.4 P.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)\n"
    )
    log = read_job_log([init.format(1, 11, 0), init.format(2, 12, 1), timeout, WARN.format(29, "node1", LOCKED).replace(":100:", ":11:")])
    assert [(each.name, each.hosts, each.ranks) for each in log.occurrences] == [
        ("torch.timeout", ("node2",), (1,)),
        ("memory.locked", ("node1",), (0,)),
    ]
    assert log.occurrences[0].fields == {"sequence": ("7",), "operation": ("ALLREDUCE",)}


def test_a_rank_that_was_killed() -> None:
    line = "mpirun noticed that process rank 3 with PID 4711 on node node2 exited on signal 9 (Killed).\n"
    [killed] = read_job_log([line]).occurrences
    assert (killed.hosts, killed.ranks, killed.fields) == (("node2",), (3,), {"signal": ("9",)})


def test_a_rank_that_was_killed_as_open_mpi_5_says_it() -> None:
    """Its box breaks the sentence off; two H100, the rank on nodeb was killed."""
    log = read_job_log((H100 / "two_hosts_killed.txt").read_text(encoding="utf-8").splitlines(keepends=True))
    assert log.cause == "mpi.signal"
    killed = next(each for each in log.occurrences if each.name == "mpi.signal")
    assert (killed.hosts, killed.ranks, killed.fields, killed.line) == (("nodeb",), (1,), {"signal": ("9",)}, 104)
    assert (log.lines, log.cut) == (105, False)


def test_a_sentence_that_is_broken_off_at_the_end_of_the_log_is_nothing() -> None:
    assert read_job_log(["prterun noticed that process rank 1 with PID 1 on node node2 exited on\n"]).occurrences == ()


def test_versions_that_differ() -> None:
    line = "node{0}:1:1 [0] NCCL INFO NCCL version {1}\n"
    log = read_job_log([line.format(1, "2.28.9+cuda13.0"), line.format(2, "2.28.9+cuda13.0"), line.format(3, "2.21.5+cuda12.4")])
    [differs] = log.occurrences
    assert (differs.name, differs.hosts, differs.line) == ("version.differs", ("node1", "node2", "node3"), 3)
    assert differs.first.text == "NCCL version 2.21.5+cuda12.4, 2.28.9+cuda13.0"


@pytest.mark.parametrize("words", ["invalid usage", "something new"])
def test_pytorch_has_other_words_for_the_version(words: str) -> None:
    answer = "node1:1:1 [0] NCCL INFO NCCL version 2.10.3+cuda11.3\n"
    log = read_job_log([answer, f"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:957, {words}, NCCL version 21.0.3\n"])
    assert list(log.context.versions) == ["2.10.3+cuda11.3"]
    assert log.cause == ("nccl.usage" if words == "invalid usage" else None)


def test_processes_that_are_jobs_of_their_own() -> None:
    """nccl-tests without MPI under mpirun: B93."""
    head = "#  Rank  0 Group  0 Pid   {} on      node{} device  0 [0000:00:06] NVIDIA H200\n"
    end = "# Avg bus bandwidth    : 0 \n"
    assert names(head.format(1, 1) + head.format(2, 2) + end + end) == [("error", "mpi.absent")]
    assert names(head.format(1, 1) + end + head.format(2, 1) + end) == []
    alone = "node{0}:1{0}:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 1 cudaDev 0 busId 60 - Init START\n"
    assert names(alone.format(1)) == []
    assert names(alone.format(1) + alone.format(2)) == [("error", "mpi.absent")]
    assert names(alone.format(1) + alone.format(2) + alone.format(3).replace("nranks 1", "nranks 2")) == []


@pytest.mark.parametrize(
    ("text", "lines", "cut"), [("", 0, False), ("one\ntwo\n", 2, False), (WARN.format(29, "node1", LOCKED)[:-9], 1, True)]
)
def test_an_empty_log_and_one_that_is_cut_off(text: str, lines: int, cut: bool) -> None:
    log = read_job_log(text.splitlines(keepends=True))
    assert (log.lines, log.cut) == (lines, cut)


def test_a_line_that_is_cut_off_is_an_unknown_warning() -> None:
    text = h200("all_reduce_perf_no_ib_device_failed")
    cut = text[: text.index("any NET plugin") + 3]
    log = read_job_log(cut.splitlines(keepends=True))
    assert [each.name for each in log.occurrences] == ["ib.no_device", UNKNOWN_WARNING]
    assert log.occurrences[1].first.text == "Failed to initialize any"
    assert (log.cut, log.cause) == (True, None)


FROB = "[2026-11-20 09:29:41] {}:100:{} [0] transport/frob.cc:14 NCCL WARN Frobnication of channel {} at {} failed\n"


def test_unknown_warnings_are_kept_by_their_text_without_numbers_and_addresses() -> None:
    lines = [
        "node1:100:7 [0] NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 0 busId 1000\n",
        FROB.format("node1", 7, 1, "0x7f00"),
        FROB.format("node2", 8, 22, "fe80::1"),
        FROB.format("node1", 7, 3, "0xbeef").replace("Frobnication", "Another"),
        "node1:100:7 [0] NCCL INFO Frobnication is no warning\n",
    ]
    log = read_job_log(lines)
    first, other = log.occurrences
    assert (first.name, first.kind, first.count, first.line, first.source) == (UNKNOWN_WARNING, UNKNOWN, 2, 2, "NCCL transport/frob.cc")
    assert (first.first.text, first.hosts) == ("Frobnication of channel 1 at 0x7f00 failed", ("node1", "node2"))
    assert (first.ranks, other.count, log.cause) == ((3,), 1, None)


def test_kinds_of_unknown_warnings_have_a_bound() -> None:
    names = ["".join(letters) for letters in itertools.product("abcdefghijkl", repeat=2)]
    log = read_job_log(f"node1:1:2 [0] NCCL WARN {name} failed\n" for name in names)
    assert len(log.occurrences) == MOST_UNKNOWN + 1
    assert sum(each.count for each in log.occurrences) == len(names)


@given(garbled(SAMPLE))
def test_anything_can_be_read(text: str) -> None:
    log = read_job_log(text.splitlines(keepends=True))
    assert sum(each.count for each in log.occurrences) <= log.lines + 2


def test_what_is_kept_has_a_bound() -> None:
    lines = (WARN.format(29, f"node{number}", RETRY.replace("10.0.0.2", f"10.0.{number}.2")) for number in range(MOST_PLACES + 50))
    [retry] = read_job_log(lines).occurrences
    assert (retry.count, len(retry.hosts), len(retry.fields["peer"])) == (MOST_PLACES + 50, MOST_PLACES, MOST_VALUES)
    assert len(read_job_log(["x" * 10_000_000 + LOCKED]).occurrences) == 0


def job(lines: int) -> Iterator[str]:
    """A log as NCCL writes it for 512 ranks, with an error in each hundredth line."""
    for number in range(lines):
        rank = number % 512
        head = f"[1,{rank}]<stdout>:node{rank // 8}:{rank}:1 [{rank % 8}] NCCL INFO "
        texts = (
            f"{head}Channel 00/0 : {rank}[0] -> 1[1] [send] via NET/IB/0/GDRDMA{'x' * 60}\n",
            f"{head}Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1 [2] 1/-1/-1->0->-1{'x' * 60}\n",
            f"[1,{rank}]<stdout>:step {number} loss 2.31 tokens/s 8123.4 memory 63.2 GiB{'x' * 90}\n",
        )
        yield WARN.format(29, f"node{rank // 8}", RETRY) if number % 100 == 99 else texts[number % 3]


def test_a_large_log_takes_little_time() -> None:
    """A fifth of a million lines; 2 s of a processor's time are usual."""
    began = time.process_time()
    log = read_job_log(job(200_000))
    assert time.process_time() - began < 10
    assert [(each.name, each.count) for each in log.occurrences] == [("ib.retry", 2000)]


def test_memory_does_not_grow_with_the_log() -> None:
    read_job_log(job(100))
    tracemalloc.start()
    try:
        read_job_log(job(20_000))
        assert tracemalloc.get_traced_memory()[1] < 2 * 1024**2
    finally:
        tracemalloc.stop()
