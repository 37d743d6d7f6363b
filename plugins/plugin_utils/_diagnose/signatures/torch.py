# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of PyTorch: collectives, rendezvous, Gloo, torchrun, and processes that ended by a signal."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_TORCH, _STORE, _RECORDER = "PyTorch ProcessGroupNCCL.cpp", "PyTorch TCPStore.cpp", "PyTorch torch/distributed/flight_recorder"
_GLOO, _ELASTIC = "Gloo gloo/transport", "PyTorch torch/distributed/elastic/rendezvous"
#: A collective of the watchdog, and the address of the other end as Gloo writes it.
WORK = r"SeqNum=(?P<sequence>\d+), OpType=(?P<operation>\w+)(?:, NumelIn=(?P<elements>\d+))?"
PEER = r"\[(?P<peer>[0-9a-fA-F.:]{3,45})\]"

#: Kind of line, number and name of the signal.
_SIGNALS = (
    ("process.killed", "9", "SIGKILL"),
    ("process.bus", "7", "SIGBUS"),
    ("process.crashed", "(?:4|6|8|11)", "SIG(?:ILL|ABRT|FPE|SEGV)"),
)
_SIGNAL_LINES = (
    (
        "failed (exitcode: -",
        "PyTorch torch/distributed/elastic/multiprocessing/api.py",
        r"exitcode: -{0}\)(?:.{{0,20}}local_rank: (?P<local_rank>\d+))?",
    ),
    ("traceback : Signal ", "PyTorch torch/distributed/elastic/multiprocessing/errors", r"Signal {0} \({1}\)"),
    ("exits with return code = -", "DeepSpeed deepspeed/launcher/launch.py", r"return code = -{0}\b"),
    ("received at time=", "Abseil absl/debugging/failure_signal_handler.cc", r"\*\*\* {1} received at time"),
    ("Caught signal ", "UCX src/ucs/debug/debug.c", r"Caught signal {0}\b"),
    ("] Signal: ", "Open MPI opal/util/stacktrace.c", r"\] Signal: .{{0,40}}\({0}\)"),
)

TORCH_SIGNATURES: tuple[Signature, ...] = (
    Signature("torch.mismatch", "Detected mismatch between collectives on ranks", "PyTorch ProcessGroupWrapper.cpp"),
    Signature("torch.mismatch", "_MISMATCH", _RECORDER, r"(?:COLLECTIVE_TYPE|COLLECTIVE_DTYPE|SIZE_OR_SYNTAX)_MISMATCH"),
    Signature("torch.desync", "_MISMATCH", _RECORDER, r"COLLECTIVE_STATE_MISMATCH"),
    Signature("torch.desync", "lagging/dead/mismatched ranks", "PyTorch TraceUtils.h"),
    Signature(
        "torch.desync", "joined but didn't finish", "PyTorch TraceUtils.h", r"\[(?P<joined>[\d, -]{1,400})\] joined but didn't finish"
    ),
    Signature(
        "torch.desync",
        "but didn't join collective",
        "PyTorch TraceUtils.h",
        r"\[(?P<absent>[\d, -]{1,400})\] finished collective #\d+, but didn't join",
    ),
    Signature(
        "torch.desync",
        "are the lagging ranks that caused this timeout",
        "PyTorch TraceUtils.h",
        r"\[(?P<absent>[\d, -]{1,400})\] are the lagging",
    ),
    Signature(
        "torch.desync", "joined", "PyTorch", r"(?i)ranks? \[?(?P<absent>[\d, -]{1,400})\]? (?:haven't|have not|hasn't|has not) joined"
    ),
    Signature("torch.desync", "Not all ranks joining collective", _RECORDER),
    Signature("torch.desync", "issing ranks", _RECORDER, r"[Mm]issing ranks(?: are|:) \{(?P<absent>[\d, ]{1,400})\}"),
    Signature(
        "torch.desync",
        "failed to pass monitoredBarrier",
        "PyTorch ProcessGroupGloo.cpp",
        r"Ranks? (?P<absent>\d[\d, ]{0,400}) failed to pass",
    ),
    Signature("torch.timeout", "Timeout at ", _TORCH, r"Timeout at (?:NCCL work|collective): "),
    Signature("torch.timeout", "ollective timed out on ranks", "PyTorch"),
    Signature("torch.timeout", "WorkNCCL::checkTimeout", _TORCH),
    Signature("torch.timeout", "Exception raised from checkTimeout", _TORCH),
    Signature("torch.aborted", "Exception raised from ncclCommWatchdog", _TORCH),
    Signature("torch.init", "ncclCommInitRank", "PyTorch", r"(?i)NCCL communicator.{0,80}timed? ?out|ncclCommInitRank.{0,80}timed? ?out"),
    Signature("torch.aborted", "Some NCCL operations have failed or timed out", _TORCH),
    Signature("torch.aborted", "NCCL communicator was aborted", _TORCH),
    # After a timeout as well as after an error of NCCL, each of which has its own line.
    Signature("torch.watchdog", "detected by watchdog at work", _TORCH),
    Signature("torch.aborted", "taking the entire process down", _TORCH),
    Signature("torch.aborted", "watchdog thread terminated with exception", _TORCH),
    Signature(
        "torch.timeout",
        "Watchdog caught collective operation timeout",
        _TORCH,
        WORK,
    ),
    Signature("torch.timeout", "Watchdog caught collective operation timeout", _TORCH),
    Signature("torch.stuck", "watchdog got stuck", _TORCH),
    Signature("torch.init", "NCCL timeout in communicator initialization", _TORCH),
    Signature("torch.remote", "Observed flight recorder dump signal", _TORCH),
    # reached: the rank, and the last collective that it has begun
    Signature(
        "torch.remote",
        "Received a dump signal due to a collective timeout",
        _TORCH,
        r"PG ID 0 .{0,100}?Rank (?P<reached>\d+\] Received a dump signal.{0,200}?Last enqueued NCCL work: \d+)",
    ),
    Signature("torch.remote", "Received a dump signal due to a collective timeout", _TORCH),
    # A process that ended by a signal: torchrun's agent, its summary, DeepSpeed's launcher, Abseil, Open MPI and UCX write it.
    *(
        Signature(name, needle, source, pattern.format(number, word))
        for name, number, word in _SIGNALS
        for needle, source, pattern in _SIGNAL_LINES
    ),
    Signature("torch.child", "ChildFailedError", "PyTorch torchrun"),
    Signature("torch.child", "failed (exitcode: ", "PyTorch torchrun", r"failed \(exitcode: [1-9]\d{0,4}\) local_rank"),
    Signature(
        "store.clients",
        "waiting for clients",
        _STORE,
        r"Timed out after (?P<seconds>\d+) seconds waiting for clients\. (?P<there>\d+)/(?P<wanted>\d+)",
    ),
    Signature("store.connect", "client socket has timed out", _STORE),
    Signature("store.connect", "connect() timed out. Original timeout was", "PyTorch socket.cpp"),
    Signature("store.lost", "has failed to shutdown the rendezvous", _ELASTIC),
    Signature("store.lost", "has failed to send a keep-alive heartbeat to the rendezvous", _ELASTIC),
    Signature("store.connect", "RendezvousConnectionError", _ELASTIC, r"The connection to the \S+ store has failed"),
    Signature("store.clients", "RendezvousTimeoutError", _ELASTIC),
    Signature("store.wait", "DistStoreError: Socket Timeout", _STORE),
    Signature("store.wait", "Timeout waiting for key: ", _STORE, r"key: (?P<key>\S{1,100})"),
    Signature("store.lost", "Connection reset by peer", _STORE, r"RuntimeError: Connection reset by peer\s*$"),
    Signature("store.lost", "Broken pipe", _STORE, r"RuntimeError: Broken pipe\s*$"),
    # Gloo
    Signature(
        "gloo.connect",
        "connectFullMesh failed",
        f"{_GLOO}/tcp/pair.cc",
        rf"connectFullMesh failed with(?:.{{0,400}}remote={PEER})?",
    ),
    Signature("gloo.connect", "timed out connecting: ", f"{_GLOO}/tcp/helpers.h", rf"SO_ERROR(?:.{{0,200}}remote={PEER})?"),
    Signature(
        "torch.timeout",
        "operation to complete",
        f"{_GLOO}/tcp/unbound_buffer.cc",
        r"gloo/transport/.{0,60}Timed out waiting \d+ms for (?P<operation>recv|send) operation",
    ),
    Signature("socket.closed", "Connection closed by peer [", f"{_GLOO}/tcp/pair.cc", r"gloo/transport"),
    # Error 97 means that there is no IPv6; it then uses IPv4.
    Signature("store.retrying", "client socket has failed to connect", _STORE, r"failed to connect(?!.{0,300}errno: 97)"),
    Signature("store.port", "Address already in use", _STORE, r"^(?!.*NCCL)"),
    Signature("store.port", "EADDRINUSE", _STORE),
    Signature("store.wait", "wait timeout after", _STORE, r"wait timeout after \d+ms, keys"),
    Signature("store.lost", "recvValue failed", _STORE),
    Signature("store.lost", "flag on TCPStore", _TORCH, r'Failed to check the "?should dump"? flag on TCPStore'),
    Signature("store.lost", "recvBytes", _STORE, r"(?i)recvBytes.{0,200}(?:failed|0 bytes|Connection reset)"),
    Signature("store.lost", "sendBytes failed", _STORE),
    Signature("shm.loader", "out of shared memory", "PyTorch DataLoader"),
    Signature("shm.loader", "insufficient shared memory (shm)", "PyTorch DataLoader"),
)
