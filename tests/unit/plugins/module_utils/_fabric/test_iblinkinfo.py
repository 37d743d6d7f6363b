# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""iblinkinfo in its three forms: states, rates, and what links could be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.iblinkinfo import LinkinfoEnd, LinkinfoPort, parse_iblinkinfo
from tests.unit.builders.fabric_texts import LEAF1, LEAF2, SPINE1, fabric_text
from tests.unit.builders.garbled import garbled, read_or_refused

LINES = fabric_text("iblinkinfo-l")


def test_a_port_that_is_up_and_one_that_is_down() -> None:
    reported = {(port.guid, port.number): port for port in parse_iblinkinfo(LINES).ports}
    end = LinkinfoEnd(SPINE1, 4, 1, "spine1")
    assert reported[LEAF1, 5] == LinkinfoPort(LEAF1, None, "leaf1", 2, 5, "ACTIVE", "LinkUp", 4, "HDR", end, (12, None), True)
    assert reported[LEAF1, 3] == LinkinfoPort(LEAF1, None, "leaf1", 2, 3, "DOWN", "Polling", None, None, None, None, True)
    assert reported["0xe09d730300000011", 1].end == LinkinfoEnd(LEAF1, 2, 1, "leaf1")


@pytest.mark.parametrize("form", ["iblinkinfo", "iblinkinfo-p"])
def test_all_forms_report_the_same(form: str) -> None:
    def bare(port: LinkinfoPort) -> LinkinfoPort:
        return replace(port, kind=None, end=replace(port.end, guid=None) if port.end is not None else None)

    found = parse_iblinkinfo(fabric_text(form))
    assert found.problems == []
    assert list(map(bare, found.ports)) == list(map(bare, parse_iblinkinfo(LINES).ports))
    assert {port.kind for port in found.ports} == {"switch", "host"}


UP = '  3    5[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       4    3[  ] "spine1" ({})'


@pytest.mark.parametrize(
    ("link", "more", "state", "rate", "could_be"),
    [
        ("4X  25.78125 Gbps Active/  LinkUp", " ", "ACTIVE", (4, "EDR"), None),
        ("1X   2.5 Gbps Initialize/  LinkUp", "Could be 4X Could be 53.125 Gbps", "INIT", (1, "SDR"), (4, "HDR")),
        ("4X 10.0 Gbps (FDR10) Armed/  LinkUp", " Could be 106.25 Gbps", "ARMED", (4, "FDR10"), (None, "NDR")),
        (
            "4X 10.0 Gbps Active/  LinkUp",
            "Could be FDR10 (Found link at QDR but expected speed is FDR10)",
            "ACTIVE",
            (4, "QDR"),
            (None, "FDR10"),
        ),
        ("4X 212.5 Gbps Active/  LinkUp", "", "ACTIVE", (4, "XDR"), None),
        ("4X 5.0 Gbps Active /  LinkUp", "Could be 10.0 Gbps", "ACTIVE", (4, "DDR"), (None, "QDR")),
    ],
)
def test_rates(link: str, more: str, state: str, rate: tuple[int, str], could_be: tuple[int | None, str | None] | None) -> None:
    text = UP.replace(" 4X        53.125 Gbps Active/  LinkUp", link).format(more)
    found = parse_iblinkinfo(f"Switch: {LEAF2} MF0;leaf2:MQM8700/U1:\n{text}\n")
    (port,) = found.ports
    assert found.problems == []
    assert (port.guid, port.description, port.state, (port.width, port.speed), port.could_be) == (
        LEAF2,
        "MF0;leaf2:MQM8700/U1",
        state,
        rate,
        could_be,
    )


def test_what_a_link_that_is_down_could_be_is_not_reported() -> None:
    """The numbers of a port that is down say nothing (C14-24.2.1 of the specification)."""
    text = UP.replace(" 4X        53.125 Gbps Active/  LinkUp", "                Down/ Polling").format("Could be 12X")
    (port,) = parse_iblinkinfo(f"Switch: {LEAF2} leaf2:\n{text}\n").ports
    assert (port.state, port.width, port.could_be) == ("DOWN", None, None)


def test_the_width_of_a_port_that_is_down_is_not_reported() -> None:
    text = UP.replace("Active/  LinkUp", "  Down/ Polling").format("")
    (port,) = parse_iblinkinfo(f"Switch: {LEAF2} leaf2:\n{text}\n").ports
    assert (port.state, port.width, port.speed) == ("DOWN", None, None)


def test_ports_behind_which_nobody_is_reported_are_lost() -> None:
    found = parse_iblinkinfo(fabric_text("lossy-iblinkinfo"))
    assert found.problems == []
    assert [port.number for port in found.ports if not port.answered] == [5, 6]
    assert [port.number for port in found.ports if port.lost] == [5, 6]
    assert [(port.description, port.number) for port in parse_iblinkinfo(fabric_text("double-iblinkinfo-l")).ports if port.lost] == [
        ("spine2", 1), ("spine1", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "Failed to open mlx5_0 port 1\n", "Switch: 0x2c5eab0300000200 leaf2:\n"])
def test_what_is_no_output(text: str) -> None:
    with pytest.raises(ParseError, match="not the output of iblinkinfo"):
        parse_iblinkinfo(text)


@pytest.mark.parametrize("cut", [40, 70, 100, 130, 150])
def test_a_line_that_was_cut_off_is_a_problem(cut: int) -> None:
    last = LINES.rstrip().split("\n")[-1]
    assert parse_iblinkinfo(LINES.rstrip()[: -len(last)] + last[:cut]).problems


@given(garbled(LINES[:1200]))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_iblinkinfo, text)
