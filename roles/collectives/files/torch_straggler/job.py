# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rank among the others of its job."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .timers import Cpu, Gpu, load_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .place import Place

# PyTorch 2.13 has new names for two of them, and warns about the old names.
COLLECTIVES = {
    "all_reduce": ("all_reduce",),
    "all_gather": ("all_gather_single", "all_gather_into_tensor"),
    "reduce_scatter": ("reduce_scatter_single", "reduce_scatter_tensor"),
    "all_to_all": ("all_to_all_single",),
}


class Job:
    """This rank and its groups: `control` is a gloo group for coordination, `group` is the measured one."""

    def __init__(self, at: Place, backend: str, timeout_seconds: float) -> None:
        self.torch, self.dist = load_torch()
        self.rank, self.ranks = at.rank, at.ranks
        timeout = timedelta(seconds=timeout_seconds)
        self.dist.init_process_group("gloo", timeout=timeout)
        self.control = self.group = self.dist.group.WORLD
        gpus = self.torch.cuda.device_count() if self.dist.is_nccl_available() and backend != "gloo" else 0
        index = at.local_rank % gpus if gpus else None
        gpu = self.torch.cuda.get_device_properties(index) if gpus else None
        uuid = gpu and str(getattr(gpu, "uuid", f"{os.environ.get('CUDA_VISIBLE_DEVICES')} {index}"))
        own = {"rank": at.rank, "host": socket.gethostname(), "gpu": gpu and gpu.name, "uuid": uuid}
        self.members = self.everybody(own)
        self.backend = chosen_backend(self.members, backend)
        self.timer = Cpu() if index is None else Gpu(index)
        if self.backend == "nccl":
            self.group = self.dist.new_group(backend="nccl", timeout=timeout)
        else:
            self.torch.set_num_threads(1)

    def everybody(self, own: Any) -> list[Any]:
        found: list[Any] = [None] * self.ranks
        self.dist.all_gather_object(found, own, group=self.control)
        return found

    def operation(self, collective: str, size_bytes: int) -> tuple[Callable[[], Any], Any, Any]:
        """A call of the collective on float32, its input, and its output (for all_reduce the same)."""
        count, device = size_bytes // 4, self.timer.device
        large = self.torch.zeros(count, device=device)
        other = self.torch.zeros(count if collective == "all_to_all" else count // self.ranks, device=device)
        source, target = {"all_reduce": (large, large), "all_gather": (other, large)}.get(collective, (large, other))
        function = getattr(self.dist, [name for name in COLLECTIVES[collective] if hasattr(self.dist, name)][0])  # noqa: RUF015
        buffers = (large,) if collective == "all_reduce" else (target, source)
        return (lambda: function(*buffers, group=self.group)), source, target

    def read_clocks(self, exchanges: int = 50) -> tuple[int, int, int]:
        """(own time, offset of rank 0's clock, its error) in ns, from the quickest of several exchanges with rank 0, rank after rank.
        The error is half the round trip, because rank 0 read its clock at some time within it."""
        stamp, clock = self.torch.zeros(1, dtype=self.torch.int64), Cpu()
        trips = [(0, clock.mark(), clock.mark())] if self.rank == 0 else []
        for other in [one for one in range(1, self.ranks) if self.rank in (0, one)] * exchanges:
            if self.rank == 0:
                self.dist.recv(stamp, src=other, group=self.control)
                stamp[0] = clock.mark()
                self.dist.send(stamp, dst=other, group=self.control)
            else:
                asked = clock.mark()
                self.dist.send(stamp, dst=0, group=self.control)
                self.dist.recv(stamp, src=0, group=self.control)
                answered = clock.mark()
                trips.append((answered - asked, (asked + answered) // 2, int(stamp[0])))
        self.dist.barrier(group=self.control)
        trip, own, theirs = min(trips)
        return own, theirs - own if self.rank else 0, (trip + 1) // 2


def chosen_backend(members: Sequence[Mapping[str, Any]], wanted: str) -> str:
    """nccl if every rank has its own GPU, gloo if no rank has one or gloo is requested. Raises SystemExit otherwise."""
    bare = [member["rank"] for member in members if member["uuid"] is None]
    if wanted == "gloo" or (wanted == "auto" and len(bare) == len(members)):
        return "gloo"
    if bare:
        raise SystemExit(f"no GPU, or a PyTorch without NCCL, on ranks {bare}: --backend gloo measures without GPUs")
    gpus = [(member["host"], member["uuid"]) for member in members]
    if len(set(gpus)) < len(gpus):
        raise SystemExit(f"several ranks on one GPU: {sorted({gpu for gpu in gpus if gpus.count(gpu) > 1})}")
    return "nccl"
