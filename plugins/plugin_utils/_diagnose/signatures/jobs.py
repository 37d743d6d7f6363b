# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of nccl-tests and Slurm."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_SLURM = "Slurm"

JOB_SIGNATURES: tuple[Signature, ...] = (
    # nccl-tests
    Signature("tests.timeout", ": Test timeout (", "nccl-tests"),
    Signature("tests.failed", ": Test failure", "nccl-tests"),
    # Slurm
    Signature("host.memory", "oom_kill event", _SLURM),
    Signature("host.memory", "oom-kill event", _SLURM),
    Signature("host.memory", "Out Of Memory", _SLURM, r"error: (?P<host>\S+): tasks? (?P<rank>\d+)"),
    Signature("slurm.node", "DUE TO NODE FAILURE", _SLURM, r" ON (?P<host>\S+) CANCELLED"),
    Signature("slurm.node", "Node failure on", _SLURM, r"Node failure on (?P<host>\S+)"),
    Signature("slurm.launch", "Task launch for ", _SLURM, r"Task launch for \S+ failed on node (?P<host>\S+?):"),
    Signature("slurm.launch", "Application launch failed", _SLURM),
    Signature("slurm.launch", "slurm_receive_msgs", _SLURM, r"slurm_receive_msgs: \[\[(?P<host>[^\]]{1,253})\]:\d+\] failed"),
    Signature("slurm.pmix", "collective timeout seq", f"{_SLURM} src/plugins/mpi/pmix", r"pmixp_coll"),
    Signature("slurm.time", "DUE TO TIME LIMIT", _SLURM, r" ON (?P<host>\S+) CANCELLED"),
    Signature(
        "slurm.task", "srun: error:", _SLURM, r"error: (?P<host>\S+): tasks? (?P<rank>\d+)\S*: (?P<how>Killed|Segmentation|Bus|Abort)"
    ),
    Signature("slurm.aborted", "srun: error:", _SLURM, r"error: \S+: tasks? [0-9,-]+: (?:Exited|Terminated)"),
    Signature("slurm.aborted", "Job step aborted", _SLURM),
)
