# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that plans a plane's cables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import PlannedSwitch, Spot, parse_plan
from tests.unit.builders.fabrics import rail
from tests.unit.builders.garbled import read_or_refused

PLAN = """\
switches:
  leaf1: {guid: "0x506B4B0300A1B2C3", tier: leaf}
  leaf3:
  spine1: {tier: spine}
links:
  - {from: node17 mlx5_3, to: leaf3/14}
  - {from: leaf1/33-40, to: spine1/1-8}
  - {from: node1 mlx5_0/2, to: "leaf1/1"}
"""


def test_ranges_are_cables_one_by_one() -> None:
    plan = parse_plan(PLAN)
    assert len(plan.links) == 10
    assert (plan.links[0].a, plan.links[0].b, plan.links[0].line) == (Spot("node17", "mlx5_3", 1), Spot("leaf3", None, 14), 6)
    assert (plan.links[8].a, plan.links[8].b) == (Spot("leaf1", None, 40), Spot("spine1", None, 8))
    assert str(plan.links[9].a) == "node1 mlx5_0 port 2"
    assert plan.switches["leaf1"] == PlannedSwitch("leaf1", "0x506b4b0300a1b2c3", "leaf")
    assert plan.switches["leaf3"] == PlannedSwitch("leaf3")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("leaf3/14", "leaf4/14", "line 6: 'leaf4' is not one of the switches: did you mean 'leaf3'?"),
        ("node17 ", "nod17 ", "line 6: 'nod17' is not one of the hosts: did you mean 'node17'?"),
        ("1-8", "1-9", "line 7: 8 ports on one side and 9 on the other"),
        ("1-8", "8-1", "line 7: '8-1' is not a port range"),
        ("leaf1/1", "leaf1/33", "line 8: leaf1 port 33 already has a cable (line 7)"),
        ("tier: spine", "tier: spin", "line 4: 'spin' is not a tier for spine1: did you mean 'spine'?"),
        ("tier: spine", "teir: spine", "line 4: 'teir' is not a key here: did you mean 'tier'?"),
        ("0x506B4B0300A1B2C3", "506B4B0300A1B2C3", "line 2: the GUID of leaf1"),
        ("links:", "link:", "line 5: 'link' is not a key here: did you mean 'links'?"),
        ("to: leaf3/14", "too: leaf3/14", "to is missing"),
        ("leaf3/14", "leaf3", "'leaf3' is not a cable end"),
        ("  leaf3:\n", "  leaf1:\n", "line 3: 'leaf1' occurs twice"),
        (PLAN, "", "is empty"),
        (PLAN, "{", "not valid YAML"),
        (PLAN, "switches: {a: }", "no cable is planned"),
    ],
    ids=range(15),
)
def test_what_is_wrong_is_reported_with_its_line_and_the_nearest_name(old: str, new: str, words: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_plan(PLAN.replace(old, new), ["node1", "node17"])
    assert words in str(raised.value)


@given(st.text(max_size=200))
def test_any_text_is_a_plan_or_an_error(text: str) -> None:
    assert read_or_refused(parse_plan, text)


@given(st.integers(0, len(PLAN)), st.text(max_size=5))
def test_a_damaged_plan_is_a_plan_or_an_error(at: int, text: str) -> None:
    assert read_or_refused(parse_plan, PLAN[:at] + text + PLAN[at + len(text) :])


def test_a_generated_plan_is_read() -> None:
    assert len(parse_plan(rail().plan_text()).links) == 128


def test_lines_and_nesting_that_no_plan_needs_are_refused() -> None:
    cable = "{from: leaf1/1, to: node1 mlx5_0}, "
    with pytest.raises(ParseError, match=r"line 2 has 140044 characters, expected at most 131072: write one cable per line"):
        parse_plan("switches: {leaf1: }\nlinks: [" + cable * 4001 + "]")
    with pytest.raises(ParseError, match="more than 64 nested brackets"):
        parse_plan("links: " + "[" * 65)
    with pytest.raises(ParseError) as raised:
        parse_plan("links: ]" + "[" * 64)
    assert "nested brackets" not in str(raised.value)
