# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for mstconfig: it answers as the real one does, and a write changes the next boot alone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import spelled
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.mlxconfig import Mlxconfig, parse_mlxconfig

STANDIN = Path(__file__).parents[3] / "lab/standins/mstconfig"
CARD = "0000:3d:00.0"
LINK_TYPES = ["IB(1)", "ETH(2)", "VPI(3)"]
SETTINGS: dict[str, Any] = {
    "NUM_OF_VFS": {"next_boot": "8"},
    "SRIOV_EN": {"next_boot": "False(0)"},
    "LINK_TYPE_P1": {"default": "IB(1)", "current": "IB(1)", "next_boot": "IB(1)", "values": LINK_TYPES},
    "LINK_TYPE_P2": {"next_boot": "IB(1)", "values": LINK_TYPES, "stuck": True},
    "ROCE_CC_MASK": {"next_boot": "0x1(1)"},
    "INTERNAL_CPU_MODEL": {"next_boot": "N/A", "read_only": True},
}
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    card = {"addresses": [CARD, "0000:3d:00.1"], "type": "ConnectX6", "name": "MCX653106A-HDA_Ax", "settings": SETTINGS}
    path = tmp_path / "mstconfig.json"
    path.write_text(json.dumps({"cards": [card]}), encoding="utf-8")
    return path


@pytest.fixture
def run(state: Path) -> Run:
    def call(*words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "MSTCONFIG_STATE": str(state)}
        return subprocess.run([str(STANDIN), *words], input=answer, env=environment, capture_output=True, text=True, check=False)

    return call


def read(run: Run, device: str = CARD) -> Mlxconfig:
    done = run("-d", device, "-e", "q")
    assert (done.returncode, done.stderr) == (0, "")
    return parse_mlxconfig(done.stdout)[device]


def values(run: Run, name: str) -> tuple[str | None, str | None]:
    setting = read(run).settings[name]
    return spelled(setting.current), spelled(setting.next_boot)


def test_every_function_of_a_card_answers(run: Run) -> None:
    assert read(run).settings == read(run, "0000:3d:00.1").settings == read(run, "3d:00.1").settings
    assert read(run).name == "MCX653106A-HDA_Ax"
    assert read(run).settings["INTERNAL_CPU_MODEL"].read_only


def test_all_cards_are_listed_where_none_is_named(run: Run) -> None:
    assert list(parse_mlxconfig(run("q").stdout)) == [CARD]


def test_a_write_changes_the_next_boot_and_a_boot_makes_it_current(run: Run) -> None:
    done = run("-y", "-d", CARD, "set", "LINK_TYPE_P1=2", "SRIOV_EN=true", "ROCE_CC_MASK=ff", "NUM_OF_VFS=0x10")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[-3:] == [
        " Apply new Configuration? (y/n) [n] : y",
        "Applying... Done!",
        "-I- Please reboot machine to load new configurations.",
    ]
    assert "        LINK_TYPE_P1                                IB(1)                ETH(2)              " in lines
    assert values(run, "LINK_TYPE_P1") == ("IB(1)", "ETH(2)")
    assert values(run, "NUM_OF_VFS") == ("8", "16")
    assert [values(run, name)[1] for name in ("SRIOV_EN", "ROCE_CC_MASK", "NUM_OF_VFS")] == ["True(1)", "0xff(255)", "16"]
    assert run("apply").returncode == 0
    assert values(run, "LINK_TYPE_P1") == ("ETH(2)", "ETH(2)")


def test_without_leave_it_asks(run: Run) -> None:
    done = run("-d", CARD, "set", "LINK_TYPE_P1=2", answer="n\n")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (2, " Apply new Configuration? (y/n) [n] : -E- Aborted by user.")
    assert values(run, "LINK_TYPE_P1") == ("IB(1)", "IB(1)")
    assert run("-d", CARD, "set", "LINK_TYPE_P1=2", answer="y\n").returncode == 0
    assert values(run, "LINK_TYPE_P1")[1] == "ETH(2)"


def test_a_write_that_does_not_stick(run: Run) -> None:
    assert run("-y", "-d", CARD, "set", "LINK_TYPE_P2=2").returncode == 0
    assert values(run, "LINK_TYPE_P2")[1] == "IB(1)"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-d", CARD, "q", "ATS_ENABLED"], "The Device doesn't support ATS_ENABLED parameter"),
        (["-y", "-d", CARD, "set", "ATS_ENABLED=1"], "The Device doesn't support ATS_ENABLED parameter"),
        (["-y", "-d", CARD, "set", "LINK_TYPE_P1=9"], "Unknown value 9"),
        (["-y", "-d", CARD, "set", "SRIOV_EN=perhaps"], "Unknown value perhaps"),
        (["-y", "-d", CARD, "set", "INTERNAL_CPU_MODEL=1"], "The parameter INTERNAL_CPU_MODEL is read only"),
        (["-d", "0000:99:00.0", "q"], "Failed to open the device"),
        (["-y", "set", "SRIOV_EN=1"], "Device was not specified."),
    ],
)
def test_errors(run: Run, state: Path, words: list[str], error: str) -> None:
    before = state.read_text(encoding="utf-8")
    done = run(*words)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (3, f"-E- {error}")
    assert state.read_text(encoding="utf-8") == before
    with pytest.raises(ParseError, match=error):
        parse_mlxconfig(done.stdout)


def test_groups_that_cannot_be_read(run: Run, state: Path) -> None:
    whole = json.loads(state.read_text(encoding="utf-8"))
    whole["cards"][0]["failed_tlvs"] = ["nv_pci_conf", "nv_power_conf"]
    state.write_text(json.dumps(whole), encoding="utf-8")
    done = run("-d", CARD, "-e", "q")
    assert done.returncode == 3
    assert parse_mlxconfig(done.stdout)[CARD].failed_tlvs == ["nv_pci_conf", "nv_power_conf"]
