# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host whose NICs keep what is written to them: mlx5_machine with a stand-in of dcb, and the files that a profile is written to."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import Pause
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import QosHost
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rdma_cm import Configfs
from tests.unit.builders.fakes import SilentPort
from tests.unit.builders.trees import mlx5_machine, write_tree

NAME, DEVICE = "ens1f0np0", "mlx5_0"
OTHER = "ens1f1np1"
CM = f"/sys/kernel/config/rdma_cm/{DEVICE}/ports/1"
TREE = f"""
    /sys/kernel/debug/mlx5/0000:3d:00.0/cc_params/np_cnp_dscp: 46
    /sys/kernel/debug/mlx5/0000:3d:00.0/cc_params/np_cnp_prio: 6
    /sys/module/rdma_cm/refcnt: 1
    {CM}/default_roce_mode: RoCE v2
    {CM}/default_roce_tos: 0
    /sys/kernel/config/rdma_cm/mlx5_1/ports/1/default_roce_mode: RoCE v2
    /sys/kernel/config/rdma_cm/mlx5_1/ports/1/default_roce_tos: 0
    /sys/class/infiniband/{DEVICE}/ports/1/state: 4: ACTIVE
"""
#: What a fresh interface of TREE lacks of the usual profile.
ALL = ["dcbx", "trust", "dscp 26", "dscp 48", "pfc", "ets", "np cnp_dscp", "rdma_cm"]


@dataclass
class DcbState:
    """The settings written to one interface."""

    pfc: list[bool] = field(default_factory=lambda: [False] * 8)
    codes: dict[int, int] = field(default_factory=dict)
    host: bool = False
    ets: dict[str, list[Any]] = field(default_factory=lambda: {"prio_tc": list(range(8)), "tc_tsa": ["strict"] * 8, "tc_bw": [0] * 8})


class Dcb:
    """A stand-in of iproute2's dcb over mlx5's driver: it reports what was written to an interface.

    deaf: the settings that it takes without effect; refuses: the one that it refuses, of all interfaces or of one ("pfc ens1").
    """

    def __init__(self, *, deaf: Sequence[str] = (), refuses: str = "") -> None:
        self.deaf, self.refuses = deaf, refuses
        self.nics: dict[str, DcbState] = defaultdict(DcbState)
        self.sets: list[str] = []

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words = tuple(argv)
        if words[0] == "mlnx_qos":
            return Completed(words, 1, "", "No such file or directory\n")
        assert words[0] == "dcb", words
        if "show" in words:
            assert (words[1:3], words[4:6]) == (("-N", "-j"), ("show", "dev")), words
            return Completed(words, 0, json.dumps(self._answer(words[3], self.nics[words[6]])) + "\n", "")
        kind, name = words[1], words[4]
        assert words[2:4] in (("set", "dev"), ("replace", "dev")), words
        self.sets.append(" ".join(words[1:]))
        if self.refuses in (kind, f"{kind} {name}"):
            return Completed(words, 1, "", "Attribute write: Operation not permitted\n")
        if kind not in self.deaf:
            getattr(self, f"_set_{kind}")(words[5:], self.nics[name])
        return Completed(words, 0, "", "")

    def _answer(self, kind: str, nic: DcbState) -> dict[str, Any]:
        return {
            "pfc": {"pfc_cap": 8, "macsec_bypass": False, "delay": 7, "prio_pfc": nic.pfc},
            "ets": {"willing": False, "ets_cap": 8, **nic.ets},
            "app": {"dscp_prio": sorted(nic.codes.items())} if nic.codes else {},
            "dcbx": {**({"host": True} if nic.host else {}), "ieee": True},
            "buffer": {"prio_buffer": [0] * 8, "buffer_size": [0] * 8, "total_size": 0},
        }[kind]

    def _set_pfc(self, words: Sequence[str], nic: DcbState) -> None:
        assert words[0] == "prio-pfc"
        nic.pfc = [pair.split(":")[1] == "on" for pair in words[1:]]

    def _set_app(self, words: Sequence[str], nic: DcbState) -> None:
        code, priority = words[1].split(":")
        nic.codes[int(code)] = int(priority)

    def _set_dcbx(self, words: Sequence[str], nic: DcbState) -> None:
        nic.host = "host" in words

    def _set_ets(self, words: Sequence[str], nic: DcbState) -> None:
        key = ""
        for word in words:
            if ":" not in word:
                key = word.replace("-", "_")
                continue
            number, value = word.split(":")
            nic.ets[key][int(number)] = value if key == "tc_tsa" else int(value)


class Nic(SilentPort):
    """Global pause as it is on a fresh interface."""

    def pause(self, name: str) -> Pause | None:
        return Pause(None, rx=False, tx=False)


def qos_host(tmp_path: Path, runner: Runner, tree: str = TREE) -> QosHost:
    """runner: a Dcb, or what has one."""
    root = write_tree(mlx5_machine(tmp_path), tree)
    write_tree(root, f"/sys/class/net/{NAME}/carrier: 1")
    return QosHost(SysRoot(str(root)), runner, Nic(), Configfs(str(root)), sleep=lambda _seconds: None)
