# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for mlnx_qos: it prints what the real one prints, ends as the real one does, and has its traps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._qos.mlnx_qos import MlnxQos, parse_mlnx_qos
from tests.unit.builders.mlnx_qos_state import state_of

STANDIN = Path(__file__).parents[3] / "lab/standins/qos/mlnx_qos"
Run = Callable[..., subprocess.CompletedProcess[str]]
FRESH: dict[str, Any] = {
    "dcbx_host": True,
    "trust": "pcp",
    "apps": [],
    "priority_to_tc": [1, 0, 2, 3, 4, 5, 6, 7],
    "tsa": [255] * 8,
    "bandwidth_percent": [100] * 8,
    "maxrate_kbps": [0] * 8,
    "pfc": 0,
    "cable_length_m": 7,
    "buffer_bytes": [262016, 0, 0, 0, 0, 0, 0, 0],
    "max_buffer_bytes": 262016,
    "priority_to_buffer": [0] * 8,
}
FRESH_TEXT = """DCBX mode: OS controlled
Priority trust state: pcp
default priority:
Receive buffer size (bytes): 262016,0,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   0   0   0   0   0\x20\x20\x20
\tbuffer      0   0   0   0   0   0   0   0\x20\x20\x20
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
tc: 1 ratelimit: unlimited, tsa: vendor
\t priority:  0
""" + "".join(f"tc: {tc} ratelimit: unlimited, tsa: vendor\n\t priority:  {tc}\n" for tc in range(2, 8))
OLD_TEXT = (
    """DCBX mode: Firmware controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:3 dscp:31,29,28,27,26,25,24,
\tprio:6 dscp:30,55,54,53,52,51,50,49,
\tprio:6 dscp:48,
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0\x20\x20\x20
tc: 1 ratelimit: 2.5 Gbps, tsa: ets, bw: 30%
\t priority:  0
\t priority:  7
tc: 0 ratelimit: unlimited, tsa: ets, bw: 70%
"""
    + "".join(f"\t priority:  {priority}\n" for priority in range(1, 6))
    + "tc: 6 ratelimit: unlimited, tsa: strict\n\t priority:  6\n"
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(FRESH), encoding="utf-8")
    return path


@pytest.fixture
def run(state: Path) -> Run:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "MLNX_QOS_STATE": str(state)}
        return subprocess.run([sys.executable, str(STANDIN), *words], env=environment, capture_output=True, text=True, check=False)

    return call


def refusal(run: Run, *words: str) -> str:
    """What it says on standard output, where it ends with 1."""
    done = run("-i", "ens1", *words)
    assert (done.returncode, done.stderr) == (1, "")
    return done.stdout


def read(run: Run, *words: str) -> MlnxQos:
    done = run("-i", "ens1", *words)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return parse_mlnx_qos(done.stdout)


def test_as_the_driver_leaves_it(run: Run) -> None:
    assert run("-i", "ens1").stdout == FRESH_TEXT


@pytest.mark.parametrize("text", [FRESH_TEXT, OLD_TEXT], ids=["fresh", "old"])
def test_a_capture_is_printed_again(text: str, state: Path, run: Run) -> None:
    state.write_text(json.dumps(state_of(text)), encoding="utf-8")
    assert run("-i", "ens1").stdout == text


def test_pfc(run: Run) -> None:
    assert read(run, "--pfc", "0,0,0,1,0,0,0,0").pfc_enabled == [priority == 3 for priority in range(8)]
    assert run("-i", "ens1", "-F", "x,x,x,0,1,x,x,x").stdout == ""
    assert run("-i", "ens1", "-P", "4").stdout == "1\n"


def test_trust_gives_every_dscp_its_default_and_takes_it_away(run: Run) -> None:
    after = read(run, "--trust", "dscp")
    assert after.dscp_to_priority == {dscp: dscp >> 3 for dscp in range(64)}
    assert "\tprio:3 dscp:31,30,29,28,27,26,25,24,\n" in run("-i", "ens1").stdout
    assert read(run, "--trust", "pcp").trust == "pcp"


def test_one_dscp_is_enough_for_trust(run: Run) -> None:
    after = read(run, "--dscp2prio", "set,26,3", "--dscp2prio", "set,48,6")
    assert (after.trust, after.dscp_to_priority) == ("dscp", {26: 3, 48: 6})
    assert read(run, "--dscp2prio", "del,26,3").trust == "dscp"
    assert read(run, "--dscp2prio", "flush").trust == "pcp"


def test_ets(run: Run) -> None:
    after = read(run, "-s", "ets,ets,ets,ets,ets,ets,strict,ets", "-t", "50,0,0,50,0,0,0,0", "-p", "0,0,0,3,0,0,6,0")
    assert after.traffic_classes is not None
    assert {tc: found.bandwidth_percent for tc, found in after.traffic_classes.items()} == {0: 50, 3: 50, 6: None}
    assert after.traffic_classes[6].tsa == "strict"


def test_buffers_rates_cable_and_owner(run: Run) -> None:
    after = read(run, "--cable_len", "30", "-r", "0,0,0,5,0,0,0,0", "--prio2buffer", "0,0,0,1,0,0,0,0", "-d", "fw")
    assert (after.cable_length_m, after.pfc_buffer, after.dcbx_mode) == (30, [0, 0, 0, 1, 0, 0, 0, 0], "Firmware controlled")
    assert after.traffic_classes is not None
    assert after.traffic_classes[3].ratelimit_gbps == 5.0
    assert read(run, "-d", "os", "--buffer_size", "100000,100000,0,0,0,0,0,0").buffer_sizes_bytes == [100000, 100000, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--trust", "dscp", "--dscp2prio", "set,26,3"], "trust and dscp2prio commands cannot be used at the same time.\n"),
        (["--trust", "vlan"], "Invalid trust state command. Refer to the help.\n"),
        (["--dscp2prio", "set,64,3"], "Invalid dscp2prio command. Refer to the help.\n"),
        (["--dscp2prio", "del,26,3"], "dscp2prio command failed\n"),
        (["--pfc", "0,0,0,1"], "pfc list must have 8 items\n"),
        (["--pfc", "0,0,0,1,0,0,0,0,0"], "Too many items for PFC\n"),
        (["-t", "50,0,0,50,0,0,0,0"], "ETS BW for a strict/vendor TC must be 0\nUsage: mlnx_qos -i <interface> [options]\n\n"),
        (["-s", ",".join(["ets"] * 8)], "Netlink error: Bad value. see dmesg.\n"),
        (["-d", "switch"], "Invalid dcbx mode command. Refer to the help.\n"),
        (["bad"], "Bad arguments\nUsage: mlnx_qos -i <interface> [options]\n\n"),
    ],
    ids=["both", "trust", "dscp", "absent", "few", "many", "share", "sum", "dcbx", "word"],
)
def test_refusals_are_reported_on_standard_output(words: list[str], answer: str, run: Run) -> None:
    assert refusal(run, *words) == answer
    assert run("-i", "ens1").stdout == FRESH_TEXT


def test_what_comes_before_a_refusal_is_done(run: Run) -> None:
    refusal(run, "--pfc", "0,0,0,1,0,0,0,0", "--trust", "dscp", "--dscp2prio", "set,26,3")
    assert read(run).pfc_enabled == [priority == 3 for priority in range(8)]


def test_it_wants_an_interface(run: Run) -> None:
    done = run("--pfc", "0,0,0,1,0,0,0,0")
    assert (done.returncode, done.stdout) == (1, "Interface name is required\nUsage: mlnx_qos -i <interface> [options]\n\n")


def test_an_interface_without_dcb() -> None:
    """The loopback of this very machine."""
    environment = {name: value for name, value in os.environ.items() if name != "MLNX_QOS_STATE"}
    done = subprocess.run([sys.executable, str(STANDIN), "-i", "lo"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "ETS features are not supported on your system")
