# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host's file of RoCE: what is written is what is read, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import TEMPLATE, UNIT_PREFIX, QosPlan, parse_plan, unit_of, write_plan
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.qos_hosts import profile

NICS = [{"pci": "0000:3d:00.0"}, {"mac": "a0:88:c2:00:00:01"}]


def test_what_is_written_is_read_again() -> None:
    text = write_plan(profile(), NICS)
    assert parse_plan(text) == QosPlan(profile(), NICS)
    assert text == write_plan(json.loads(json.dumps(profile())), NICS), "the control node's own and what a module is sent are one text"


WRONG = [
    ("", "not a plan of RoCE: ''"),
    ("[]", "not a plan of RoCE"),
    ('{"schema": 1, "profile": {}}', "expected an object with schema, profile and nics"),
    ('{"schema": 2, "profile": {}, "nics": []}', "of schema 2, expected 1: run the QoS stage again"),
    ('{"schema": 1, "profile": [], "nics": []}', "run the QoS stage again"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=range(len(WRONG)))
def test_another_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_plan(text)


@given(garbled(write_plan(profile(), NICS)))
def test_a_damaged_file_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_plan, text)


@pytest.mark.parametrize(
    ("interface", "unit"),
    [("ens1f0np0", "rdma-qos@ens1f0np0.service"), ("ib-0", r"rdma-qos@ib\x2d0.service"), ("ens1.7", "rdma-qos@ens1.7.service")],
)
def test_a_unit_is_named_as_systemd_escapes_it(interface: str, unit: str) -> None:
    assert unit_of(interface) == unit
    assert unit.startswith(UNIT_PREFIX)
    assert (TEMPLATE, UNIT_PREFIX) == ("rdma-qos@.service", "rdma-qos@")
