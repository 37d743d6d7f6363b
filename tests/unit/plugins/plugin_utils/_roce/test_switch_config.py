# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of switches, against golden ones that were read by hand beside NVIDIA's user guide (Cumulus Linux 5.16).

Nothing of them was run on a switch. To write them again after a change that is meant: RDMA_TEST_GOLDEN=write.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.filter.roce import FilterModule
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.roce import SYNTAXES
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.switch_config import RENDERERS, SUFFIXES, switch_config, switches_of
from tests.unit.builders.hosts import lab_intent, lab_rails

GOLDEN = Path(__file__).parent / "golden"
NVUE = {"syntax": "nvue", "ports": ["swp1-32", "swp33s0-3"], "cable_length_m": 5}
TABLE = {"syntax": "table", "ports": ["Ethernet1/1-32"], "cable_length_m": 30, "rate_gbps": 400}
#: File → (the rest of rdma_roce, the switch).
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "lossless.nv": ({}, NVUE),
    "no-length.nv": ({}, {**NVUE, "cable_length_m": None}),
    "lossy.nv": ({"pfc": False}, NVUE),
    "no-ecn.nv": ({"ecn": False}, NVUE),
    "other-priority.nv": ({"priority": 4, "dscp": 34, "rdma_percent": 70}, NVUE),
    "other-dscp.nv": ({"dscp": 46}, NVUE),
    "other-share.nv": ({"rdma_percent": 80}, NVUE),
    "lossy-other-cnp.nv": ({"pfc": False, "cnp_priority": 7, "cnp_dscp": 56}, NVUE),
    "one-class.nv": ({"pfc": False, "cnp_priority": 3, "cnp_dscp": 26}, NVUE),
    "lossless.txt": ({}, TABLE),
    "other-priority.txt": ({"priority": 4, "dscp": 34, "rdma_percent": 70}, TABLE),
    "lossy.txt": ({"pfc": False}, TABLE),
    "not-known.txt": ({"ecn": False}, {"syntax": "table", "ports": ["Eth1/1", "Eth1/2"]}),
    "other-rate.txt": ({}, {**TABLE, "rate_gbps": 1600}),
}
#: The forms of NVUE's commands that may stand in a file, as the user guide has them.
FORMS = [
    r"nv set qos roce mode (lossless|lossy)",
    r"nv set qos roce cable-length \d+",
    r"nv set qos pfc default-global (switch-priority [1-7]|rx enable|tx enable|cable-length \d+)",
    r"nv set qos mapping default-global (trust both|dscp \d+ switch-priority [1-7])",
    r"nv set qos egress-queue-mapping default-global switch-priority [0-7] traffic-class [036]",
    r"nv set qos egress-scheduler default-global traffic-class [036] (mode (dwrr|strict)|bw-percent \d+)",
    r"nv set qos congestion-control default-global traffic-class 3 ecn disable",
    r"nv set interface swp1-32,swp33s0-3 link mtu 9216",
]


def config(roce: dict[str, Any], switch: dict[str, Any]) -> str:
    return switch_config(lab_intent(roce={**roce, "switches": {"leaf1": switch}}), "leaf1")


@pytest.mark.parametrize("name", CASES)
def test_a_switch_s_file_is_the_golden_one(name: str) -> None:
    text = config(*CASES[name])
    if os.environ.get("RDMA_TEST_GOLDEN") == "write":
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted(CASES)


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith(".nv")])
def test_every_line_is_a_comment_or_a_command_of_the_user_guide(name: str) -> None:
    text = config(*CASES[name])
    commands = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in commands if not any(re.fullmatch(form, line) for form in FORMS)] == []
    assert text.index("# Nothing was applied") < text.index("nv set")
    assert len(set(commands)) == len(commands)


@pytest.mark.parametrize("name", CASES)
def test_a_file_fits_beside_the_nic_s_side(name: str) -> None:
    """But for NVUE's longest commands, which nobody may break."""
    assert [line for line in config(*CASES[name]).splitlines() if len(line) > (82 if line.startswith("nv ") else 73)] == []


def test_nvue_s_own_values_need_the_mode_alone() -> None:
    commands = [line for line in config(*CASES["lossless.nv"]).splitlines() if not line.startswith("#")]
    assert commands == [
        "nv set qos roce mode lossless",
        "nv set qos roce cable-length 5",
        "nv set interface swp1-32,swp33s0-3 link mtu 9216",
    ]


def test_the_switch_s_share_and_map_are_the_profile_s() -> None:
    text = config(*CASES["other-priority.nv"])
    assert "default-global switch-priority 4 traffic-class 3\n" in text
    assert "default-global switch-priority 3 traffic-class 0\n" in text
    assert "traffic-class 3 bw-percent 70\n" in text
    assert "traffic-class 0 bw-percent 30\n" in text
    assert "dscp 34 switch-priority 4\n" in text


def test_there_is_a_renderer_for_each_syntax() -> None:
    assert tuple(RENDERERS) == tuple(SUFFIXES) == SYNTAXES


@pytest.mark.parametrize(
    ("rates", "own", "expected"), [((400, 400), None, 400), ((400, 200), None, None), ((None, None), None, None), ((400, 400), 800, 800)]
)
def test_a_switch_has_its_own_rate_or_that_of_the_rails(rates: tuple[int | None, ...], own: int | None, expected: int | None) -> None:
    rails = [{**rail, "rate_gbps": rate} for rail, rate in zip(lab_rails(), rates, strict=True)]
    intent = lab_intent(rails=rails, roce={"cable_length_m": 7, "switches": {"leaf1": {"ports": ["p1"], "rate_gbps": own}}})
    assert switches_of(intent)["leaf1"]["rate_gbps"] == expected
    assert switches_of(intent)["leaf1"]["cable_length_m"] == 7


@pytest.mark.parametrize(("roce", "words"), [(None, "it has none"), ({"switches": {"leaf1": NVUE}}, "it has leaf1")], ids=["none", "one"])
def test_a_switch_that_is_not_planned(roce: dict[str, Any] | None, words: str) -> None:
    with pytest.raises(ValueError, match=f"rdma_roce.switches has no leaf2; {words}"):
        switch_config(lab_intent(roce=roce), "leaf2")


def test_the_filter_has_this_name() -> None:
    intent = lab_intent(roce={"switches": {"leaf1": NVUE}})
    assert FilterModule().filters()["switch_config"](intent, "leaf1") == config({}, NVUE)
