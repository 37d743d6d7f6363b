# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ibqueryerrors: counters, and that nothing filtered is health."""

from __future__ import annotations

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.ibqueryerrors import QuerySummary, parse_ibqueryerrors
from tests.unit.builders.fabric_texts import LEAF1, fabric_text
from tests.unit.builders.garbled import garbled, read_or_refused

CUT = fabric_text("cut-ibqueryerrors")


def test_ports_with_errors() -> None:
    found = parse_ibqueryerrors(CUT)
    assert found.counters == {
        ("0xe09d730300000111", 1): {"PortXmitWait": 12345},
        (LEAF1, 255): {"SymbolErrorCounter": 7, "LinkDownedCounter": 3, "PortRcvSwitchRelayErrors": 3},
        (LEAF1, 2): {"PortRcvSwitchRelayErrors": 3},
        (LEAF1, 5): {"SymbolErrorCounter": 7, "LinkDownedCounter": 3},
    }
    assert found.summary == QuerySummary(8, 2, 36, 3, 0, {}, [])
    assert found.problems == []


@pytest.mark.parametrize("form", ["r", "data"])
def test_options_that_print_more(form: str) -> None:
    found = parse_ibqueryerrors(fabric_text(f"cut-ibqueryerrors-{form}"))
    assert found.problems == []
    assert found.counters[LEAF1, 5]["SymbolErrorCounter"] == 7
    assert ("PortXmitData" in found.counters[LEAF1, 5]) is (form == "data")


def test_data_counters_of_all_ports() -> None:
    found = parse_ibqueryerrors(fabric_text("ibqueryerrors-counters"))
    assert len(found.counters) == 36
    assert found.problems == []
    assert set(found.counters[LEAF1, 3].values()) == {0}


def test_a_fabric_without_errors_says_so() -> None:
    found = parse_ibqueryerrors(fabric_text("ibqueryerrors"))
    assert (found.counters, found.problems) == ({}, [])
    assert found.summary == QuerySummary(8, 0, 36, 0, 0, {}, [])


def test_thresholds_suppressed_counters_old_names_and_queries_that_failed() -> None:
    text = (
        CUT.replace("Thresholds: ", "Thresholds: [SymbolErrorCounter = 10][LinkDownedCounter = 2]")
        .replace("## Suppressed:", "##          4 PMA query failures\n## Suppressed: PortRcvSwitchRelayErrors")
        .replace("port 5: [SymbolErrorCounter", "port 5: [SymbolErrors")
    )
    found = parse_ibqueryerrors(text)
    assert found.summary == QuerySummary(8, 2, 36, 3, 4, {"SymbolErrorCounter": 10, "LinkDownedCounter": 2}, ["PortRcvSwitchRelayErrors"])
    assert found.counters[LEAF1, 5]["SymbolErrorCounter"] == 7
    assert found.problems == ["4 queries of ibqueryerrors were not answered: the counters of these ports are unknown"]


@pytest.mark.parametrize("end", range(30, len(CUT) - 15, 17))
def test_an_output_that_was_cut_off_is_a_problem(end: int) -> None:
    try:
        found = parse_ibqueryerrors(CUT[:end])
    except ParseError:
        return
    assert found.summary is None
    assert any("lacks its summary" in problem for problem in found.problems)


def test_fewer_ports_than_the_summary_counts() -> None:
    line = next(line for line in CUT.split("\n") if "port 2:" in line)
    assert parse_ibqueryerrors(CUT.replace(f"{line}\n", "")).problems == ["ibqueryerrors counts 3 ports with errors, but reports 2"]


@pytest.mark.parametrize("text", ["", "\n", "discover failed\n"])
def test_nothing_is_not_health(text: str) -> None:
    with pytest.raises(ParseError, match="not the output of ibqueryerrors"):
        parse_ibqueryerrors(text)


@given(text=garbled(CUT))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_ibqueryerrors, text)
