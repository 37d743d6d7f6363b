# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of PyTorch before the first collective, as 2.1 and 2.14 have them: TCPStore, sockets, torchrun, and what a launcher must set."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_STORE, _SOCKET, _ELASTIC = "PyTorch TCPStore.cpp", "PyTorch socket.cpp", "PyTorch torch/distributed/elastic"
_C10D, _RENDEZVOUS = "PyTorch torch/distributed/distributed_c10d.py", "PyTorch torch/distributed/rendezvous.py"
_NOT_TAKEN = r"^(?!.*(?:EADDRINUSE|errno: 98|Address already in use))"

#: They come before TORCH_SIGNATURES: these have parts of the texts.
TORCH_FIRST: tuple[Signature, ...] = (
    Signature(
        "store.clients",
        "in store based barrier on rank",
        _C10D,
        r"world_size=(?P<wanted>\d+), (?:worker_count|num_workers_joined)=(?P<there>\d+)",
    ),
    Signature("store.waiting", "Waiting in store based barrier", _C10D),
    Signature(
        "store.clients",
        "Timed out waiting on barrier on",
        f"{_ELASTIC}/utils/store.py",
        r"world_size=(?P<wanted>\d+), missing_ranks=\[(?P<absent>[\d, ]{1,400})",
    ),
    Signature("store.closed", "Rendezvous", f"{_ELASTIC}/rendezvous", r"Rendezvous(?:Closed|GracefulExit)Error"),
    Signature("store.connect", "failed to connect/validate to host", _STORE, r"to host (?P<peer>[^\s:]{1,253}):\d+ - timed out"),
    Signature("store.retrying", "failed to connect/validate to host", _STORE),
    Signature(
        "store.listen",
        "server socket has failed to",
        _SOCKET,
        _NOT_TAKEN + r".*server socket has failed to (?:bind|listen)(?:.{0,200}?(?:errno: \d+ - |message: )(?P<error>[A-Za-z ]{3,60}))?",
    ),
    Signature("nccl.usage", "NCCL Error 5: ", "PyTorch torch/csrc/cuda/nccl.cpp"),
    Signature("nccl.argument", "NCCL Error 4: ", "PyTorch torch/csrc/cuda/nccl.cpp"),
    Signature("nccl.internal", "NCCL Error 3: ", "PyTorch torch/csrc/cuda/nccl.cpp"),
    Signature("cuda.no_device", "ProcessGroupNCCL is only supported with GPUs", "PyTorch ProcessGroupNCCL.cpp"),
    Signature("cuda.ordinal", " exceeds available GPUs in", f"{_ELASTIC}/agent/server/local_elastic_agent.py", r"local_rank \d+ exceeds"),
    Signature("cuda.ordinal", "is out of range. Please use a device index", _C10D, r"device_id \S{1,20} is out of range"),
)

RENDEZVOUS_CLASSES: tuple[Signature, ...] = (
    # the store
    Signature("store.lost", "Failed to recv, got 0 bytes", "PyTorch socket.cpp, TCPStore.cpp"),
    Signature("store.lost", "TCPStoreMasterDaemon::run() failed", "PyTorch TCPStoreBackend.cpp"),
    Signature("store.lost", "top_waiting response is expected", _STORE),
    Signature("store.wait", "Socket Timeout", _STORE, r"(?:RuntimeError|DistStoreError): Socket Timeout"),
    Signature("store.wait", "Wait timeout for key(s): ", "Gloo gloo/rendezvous", r"key\(s\): \[(?P<key>[^\]]{1,100})"),
    Signature("store.connect", "connect() timed out.", "PyTorch 1.x TCPStore"),
    Signature("store.stranger", "Miscellaneous client with", "PyTorch TCPStoreLibUvBackend.cpp", r"VALIDATE query is detected"),
    Signature("store.backlog", " workers but somaxconn is ", _STORE, r"with (?P<wanted>\d+) workers but somaxconn is (?P<there>\d+)"),
    Signature("store.clients", "timed out waiting for all ", f"{_ELASTIC}/utils/distributed.py", r"all (?P<wanted>\d+) members to join"),
    Signature("store.port", " already in use, attempt", f"{_ELASTIC}/utils/distributed.py"),
    Signature("store.connect", "The connection to etcd has failed", f"{_ELASTIC}/rendezvous/etcd_rendezvous_backend.py"),
    Signature(
        "store.dead",
        "have been removed from the rendezvous",
        f"{_ELASTIC}/rendezvous/dynamic_rendezvous.py",
        r"node\(s\) '(?P<dead>[^']{1,253})'.{0,400}since they had no heartbeat",
    ),
    Signature(
        "store.dead", "Detected dead node ", f"{_ELASTIC}/rendezvous/dynamic_rendezvous.py", r"node '(?P<dead>[^']{1,253})', removing it"
    ),
    # what the launcher sets
    Signature(
        "launch.env",
        "Error initializing torch.distributed using ",
        _RENDEZVOUS,
        r"(?:environment variable (?P<variable>\w{1,60}) expected, but not set|parameter missing|number missing)",
    ),
    Signature("launch.env", " is absent in ", f"{_ELASTIC}/rendezvous", r"(?:rank|endpoint|Port) is absent in (?:Rendezvous|endpoint)"),
    Signature(
        "launch.env", "KeyError: ", "Python", r"KeyError: '(?P<variable>(?:LOCAL_|NODE_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT))'"
    ),
    Signature("torch.build", " without libuv support", _STORE),
    Signature("torch.build", "Distributed package doesn't have ", _C10D, r"doesn't have (?P<backend>\w{2,10}) built in"),
    # torchrun
    Signature("process.hangup", "death signal, shutting down", f"{_ELASTIC}/agent", r"Received (?:Signals\.SIGHUP|1) death"),
    Signature("process.terminated", "death signal, shutting down", f"{_ELASTIC}/agent", r"Received (?P<signal>\S{1,20}) death"),
    Signature("process.hangup", "SignalException: Process ", f"{_ELASTIC}/multiprocessing/api.py", r"got signal: 1\b"),
    Signature("process.terminated", "SignalException: Process ", f"{_ELASTIC}/multiprocessing/api.py", r"got signal: (?P<signal>\S{1,20})"),
    Signature("torch.child", " closing signal ", f"{_ELASTIC}/multiprocessing/api.py", r"Sending process \d+ closing signal"),
    Signature("torch.child", "Unable to shutdown process ", f"{_ELASTIC}/multiprocessing/api.py"),
    Signature("torch.remote", "Error waiting on exit barrier", f"{_ELASTIC}/agent/server/api.py"),
    Signature("kernel.stuck", "stuck in uninterruptible sleep", f"{_ELASTIC}/agent/server/local_elastic_agent.py"),
)
