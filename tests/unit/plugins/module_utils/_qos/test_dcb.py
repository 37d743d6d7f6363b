# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What dcb prints; the texts are its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._qos.dcb import (
    DcbBuffer,
    DcbEts,
    DcbPfc,
    is_unsupported,
    parse_dcb_app,
    parse_dcb_buffer,
    parse_dcb_dcbx,
    parse_dcb_ets,
    parse_dcb_pfc,
)
from tests.unit.builders import dcb_texts
from tests.unit.builders.garbled import garbled, read_or_refused

Parser = Callable[[str], Any]
TEXTS: list[tuple[Parser, str]] = [
    (parse_dcb_pfc, dcb_texts.PFC),
    (parse_dcb_ets, dcb_texts.ETS),
    (parse_dcb_app, dcb_texts.APP_6_5),
    (parse_dcb_dcbx, dcb_texts.DCBX),
    (parse_dcb_buffer, dcb_texts.BUFFER),
]


def test_pfc() -> None:
    assert parse_dcb_pfc(dcb_texts.PFC) == DcbPfc([False, False, False, True, False, False, False, False], 7)


def test_ets_is_reported_by_what_is_set_and_not_by_what_is_recommended() -> None:
    assert parse_dcb_ets(dcb_texts.ETS) == DcbEts(
        priority_to_tc=[0, 0, 0, 3, 0, 0, 6, 0],
        tsa=["ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets"],
        bandwidth_percent=[50, 0, 0, 50, 0, 0, 0, 0],
    )


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (dcb_texts.APP, {26: 3, 48: 6}),
        (dcb_texts.APP_6_5, {26: 3, 48: 6}),
        (dcb_texts.NO_APP, {}),
        ('{"ethtype_prio":[[35092,3]],"default_prio":[2]}', {}),
        ('{"dscp_prio":[[26,4],[26,3]]}', {26: 4}),
    ],
)
def test_app(text: str, codes: dict[int, int]) -> None:
    assert parse_dcb_app(text) == codes


@pytest.mark.parametrize(("text", "flags"), [(dcb_texts.DCBX, ["host", "cee", "ieee"]), (dcb_texts.FIRMWARE_DCBX, ["cee", "ieee"])])
def test_dcbx(text: str, flags: list[str]) -> None:
    assert parse_dcb_dcbx(text) == flags


def test_buffer() -> None:
    assert parse_dcb_buffer(dcb_texts.BUFFER) == DcbBuffer([0, 0, 0, 1, 0, 0, 0, 0], [130944, 262016, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("stderr", "unsupported"),
    [
        (dcb_texts.NO_DCB, True),
        (dcb_texts.LEFT_OUT, True),
        (dcb_texts.UNKNOWN_OBJECT, True),
        (dcb_texts.NO_DEVICE, False),
        ("Attribute read: Operation not permitted\n", False),
        ("", False),
    ],
)
def test_what_is_not_supported_is_no_failure(stderr: str, unsupported: bool) -> None:
    assert is_unsupported(stderr) is unsupported


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (parse_dcb_pfc, dcb_texts.PFC.replace(",false]", "]")),
        (parse_dcb_pfc, dcb_texts.PFC.replace("true", "1")),
        (parse_dcb_pfc, dcb_texts.PFC.replace("7", "true")),
        (parse_dcb_ets, dcb_texts.ETS.replace('"tc_tsa":["ets"', '"tc_tsa":["fair"')),
        (parse_dcb_ets, dcb_texts.ETS.replace("[50,", "[101,")),
        (parse_dcb_ets, dcb_texts.ETS.replace('"prio_tc":[0', '"prio_tc":[8')),
        (parse_dcb_app, '{"dscp_prio":[[64,3]]}'),
        (parse_dcb_app, '{"dscp_prio":[[26]]}'),
        (parse_dcb_app, '{"dscp_prio":{"26":3}}'),
        (parse_dcb_app, "[]"),
        (parse_dcb_app, ""),
        (parse_dcb_dcbx, '{"host":false}'),
        (parse_dcb_dcbx, '{"prio_pfc":true}'),
        (parse_dcb_buffer, dcb_texts.BUFFER.replace("130944", '"130944"')),
    ],
)
def test_another_form_is_refused(parser: Parser, text: str) -> None:
    with pytest.raises(ParseError, match="not the output of `dcb -j"):
        parser(text)


@given(data=st.data())
@pytest.mark.parametrize(("parser", "text"), TEXTS, ids=["pfc", "ets", "app", "dcbx", "buffer"])
def test_damaged_output_is_read_or_refused(parser: Parser, text: str, data: st.DataObject) -> None:
    assert read_or_refused(parser, data.draw(garbled(text)))
