# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A profile written on an interface: by a stand-in of dcb that keeps what it is told, and files in a tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._command import Completed
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._ethtool import Pause
from ansible_collections.rdma.cluster.plugins.module_utils._qos_apply import Outcome, QosHost, QosPort, ensure_qos
from ansible_collections.rdma.cluster.plugins.module_utils._rdma_cm import Configfs
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from tests.unit.fakes import SilentPort
from tests.unit.qos_hosts import profile
from tests.unit.trees import mlx5_machine, write_tree

NAME, DEVICE = "ens1f0np0", "mlx5_0"
PORT = QosPort(NAME, DEVICE, "1")
CM = f"/sys/kernel/config/rdma_cm/{DEVICE}/ports/1"
TREE = f"""
    /sys/kernel/debug/mlx5/0000:3d:00.0/cc_params/np_cnp_dscp: 46
    /sys/kernel/debug/mlx5/0000:3d:00.0/cc_params/np_cnp_prio: 6
    /sys/module/rdma_cm/refcnt: 1
    {CM}/default_roce_mode: RoCE v2
    {CM}/default_roce_tos: 0
    /sys/class/infiniband/{DEVICE}/ports/1/state: 4: ACTIVE
"""


class Dcb:
    """A stand-in of iproute2's dcb over mlx5's driver: what it is told, it tells. deaf: the settings that it takes without effect."""

    def __init__(self, *, deaf: Sequence[str] = (), refuses: str = "") -> None:
        self.deaf, self.refuses = deaf, refuses
        self.pfc, self.codes, self.host = [False] * 8, {}, False
        self.ets = {"prio_tc": list(range(8)), "tc_tsa": ["strict"] * 8, "tc_bw": [0] * 8}
        self.sets: list[str] = []

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        words = tuple(argv)
        if words[0] == "mlnx_qos":
            return Completed(words, 1, "", "No such file or directory\n")
        assert words[0] == "dcb", words
        if "show" in words:
            assert words[1:3] == ("-N", "-j"), words
            return Completed(words, 0, json.dumps(self._told(words[3])) + "\n", "")
        kind = words[1]
        assert words[2:5] in (("set", "dev", NAME), ("replace", "dev", NAME)), words
        self.sets.append(" ".join(words[1:]))
        if kind == self.refuses:
            return Completed(words, 1, "", "Attribute write: Operation not permitted\n")
        if kind not in self.deaf:
            getattr(self, f"_set_{kind}")(words[5:])
        return Completed(words, 0, "", "")

    def _told(self, kind: str) -> dict[str, Any]:
        return {
            "pfc": {"pfc_cap": 8, "macsec_bypass": False, "delay": 7, "prio_pfc": self.pfc},
            "ets": {"willing": False, "ets_cap": 8, **self.ets},
            "app": {"dscp_prio": sorted(self.codes.items())} if self.codes else {},
            "dcbx": {**({"host": True} if self.host else {}), "ieee": True},
            "buffer": {"prio_buffer": [0] * 8, "buffer_size": [0] * 8, "total_size": 0},
        }[kind]

    def _set_pfc(self, words: Sequence[str]) -> None:
        assert words[0] == "prio-pfc"
        self.pfc = [pair.split(":")[1] == "on" for pair in words[1:]]

    def _set_app(self, words: Sequence[str]) -> None:
        code, priority = words[1].split(":")
        self.codes[int(code)] = int(priority)

    def _set_dcbx(self, words: Sequence[str]) -> None:
        self.host = "host" in words

    def _set_ets(self, words: Sequence[str]) -> None:
        key = ""
        for word in words:
            if ":" not in word:
                key = word.replace("-", "_")
                continue
            number, value = word.split(":")
            self.ets[key][int(number)] = value if key == "tc_tsa" else int(value)


class Nic(SilentPort):
    """Global pause as it is on a fresh interface."""

    def pause(self, name: str) -> Pause | None:
        return Pause(None, rx=False, tx=False)


def host(tmp_path: Path, dcb: Dcb, tree: str = TREE) -> QosHost:
    root = write_tree(mlx5_machine(tmp_path), tree)
    write_tree(root, f"/sys/class/net/{NAME}/carrier: 1")
    return QosHost(SysRoot(str(root)), dcb, Nic(), Configfs(str(root)), sleep=lambda _seconds: None)


def names(outcome: Outcome) -> tuple[list[str], list[str]]:
    return [each.name for each in outcome.written], [each.name for each in outcome.withheld]


ALL = ["dcbx", "trust", "dscp 26", "dscp 48", "pfc", "ets", "np cnp_dscp", "rdma_cm"]


def test_a_fresh_interface_gets_all_of_it_and_then_nothing(tmp_path: Path) -> None:
    dcb = Dcb()
    given = host(tmp_path, dcb)
    assert names(ensure_qos(profile(), PORT, given, check_mode=False, toggle_allowed=True)) == (ALL, [])
    assert [words.split()[0] for words in dcb.sets] == ["dcbx", "app", "app", "pfc", "ets"]
    assert given.sys.text("/sys/kernel/debug/mlx5/0000:3d:00.0/cc_params/np_cnp_dscp") == "48"
    assert given.sys.text(f"{CM}/default_roce_tos") == "106"
    assert names(ensure_qos(profile(), PORT, given, check_mode=False, toggle_allowed=True)) == ([], [])
    assert len(dcb.sets) == 5


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    dcb = Dcb()
    assert names(ensure_qos(profile(), PORT, host(tmp_path, dcb), check_mode=True, toggle_allowed=True)) == (ALL, [])
    assert dcb.sets == []


def test_without_leave_the_link_stays_up_and_the_rest_is_written(tmp_path: Path) -> None:
    dcb = Dcb()
    written, withheld = names(ensure_qos(profile(), PORT, host(tmp_path, dcb), check_mode=False, toggle_allowed=False))
    assert (written, withheld) == ([name for name in ALL if name != "pfc"], ["pfc"])
    assert not any(words.startswith("pfc") for words in dcb.sets)


def test_what_dcbx_negotiates_is_the_firmware_s(tmp_path: Path) -> None:
    dcb = Dcb()
    written, _withheld = names(ensure_qos(profile(dcbx="firmware"), PORT, host(tmp_path, dcb), check_mode=False, toggle_allowed=True))
    assert written == ["np cnp_dscp", "rdma_cm"]
    assert dcb.sets == []


def test_a_write_without_effect_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ApplyError, match=r"^pfc of ens1f0np0 was written, and is not 0,0,0,1,0,0,0,0$"):
        ensure_qos(profile(), PORT, host(tmp_path, Dcb(deaf=["pfc"])), check_mode=False, toggle_allowed=True)


def test_a_refusal_is_told_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(ApplyError, match=r"^`dcb ets set dev ens1f0np0 .*` failed: Attribute write: Operation not permitted$"):
        ensure_qos(profile(), PORT, host(tmp_path, Dcb(refuses="ets")), check_mode=False, toggle_allowed=True)


def test_a_link_that_does_not_come_back_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Flapping(Dcb):
        def _set_pfc(self, words: Sequence[str]) -> None:
            super()._set_pfc(words)
            (tmp_path / f"sys/class/infiniband/{DEVICE}/ports/1/state").write_text("1: DOWN\n")

    monkeypatch.setattr("ansible_collections.rdma.cluster.plugins.module_utils._qos_apply.UP_SECONDS", 0.0)
    with pytest.raises(ApplyError, match=r"^pfc took the link of ens1f0np0 \(mlx5_0/1\) down, and it is not ACTIVE again after 0 s"):
        ensure_qos(profile(), PORT, host(tmp_path, Flapping()), check_mode=False, toggle_allowed=True)
