# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ports of subnet managers, as saquery reported them over ibsim with two managers."""

from __future__ import annotations

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import parse_manager_ports
from tests.unit.builders.fabric_texts import fabric_text
from tests.unit.builders.garbled import garbled, read_or_refused

TWO = fabric_text("saquery-s")
RECORDS = TWO.split("\n", maxsplit=1)[1].split("IsSMdisabled", maxsplit=1)[0]
SWITCHED_OFF = f"IsSM ports\n\nIsSMdisabled ports\n{RECORDS}"


def test_two_managers() -> None:
    assert parse_manager_ports(TWO) == [1, 4]


def test_those_that_are_switched_off_are_none() -> None:
    assert parse_manager_ports(SWITCHED_OFF) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "IsSM ports\n",
        TWO[:60],
        SWITCHED_OFF[: SWITCHED_OFF.rindex("EndPortLid")],
        TWO.split("IsSMdisabled", maxsplit=1)[0],
        TWO.replace("EndPortLid", "PortNum"),
        TWO.replace("..4", "..0"),
    ],
    ids=["nothing", "one section", "in a record", "in the last record", "cut", "no LID", "LID 0"],
)
def test_what_is_not_whole_is_no_answer(text: str) -> None:
    with pytest.raises(ParseError):
        parse_manager_ports(text)


@given(garbled(TWO))
def test_any_text_gives_ports_or_an_error(text: str) -> None:
    assert read_or_refused(parse_manager_ports, text)
