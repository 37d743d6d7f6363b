# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The queue pairs that the rdma tool of iproute2 lists; test__load.py has what a real one printed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._host.queue_pairs import RdmaQp, parse_rdma_qps
from tests.unit.builders.garbled import garbled, read_or_refused

TEXT = """[ {"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":1,"type":"GSI","state":"RTS","sq-psn":0,"comm":"ib_core"},{},
{"ifindex":0,"ifname":"mlx5_0","lqpn":17,"type":"RC","state":"RTS","pid":4242,"comm":"ib_write_bw"} ]
"""
QPS = [RdmaQp("mlx5_0", 1, 1, None, "ib_core"), RdmaQp("mlx5_0", None, 17, 4242, "ib_write_bw")]


@pytest.mark.parametrize("text", [TEXT, json.dumps(json.loads(TEXT), indent=4)], ids=["one line each", "pretty"])
def test_queue_pairs(text: str) -> None:
    assert parse_rdma_qps(text) == QPS


def test_before_4_20_the_port_stands_in_the_name() -> None:
    assert parse_rdma_qps(TEXT.replace('"mlx5_0","port":1', '"mlx5_0/1"')) == QPS


@pytest.mark.parametrize("text", ["[]", "[ ]\n", "[{},{}]"])
def test_a_system_without_queue_pairs(text: str) -> None:
    assert parse_rdma_qps(text) == []


def test_one_object_alone() -> None:
    assert parse_rdma_qps(json.dumps(json.loads(TEXT)[2])) == QPS[1:]


NOTHING = [
    "",
    "bash: rdma: command not found\n",
    'Object "resource" is unknown, try "rdma help".\n',
    "null",
    "[1]",
    "{" * 5000,
    '[{"a":' + "[" * 100000,
]


@pytest.mark.parametrize("text", NOTHING, ids=range(len(NOTHING)))
def test_another_text_is_quoted(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_rdma_qps(text)
    assert text[:150].strip() in str(caught.value) or text[-150:] in str(caught.value)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (TEXT[:-20], "4242"),
        (TEXT.replace('"lqpn":17,', ""), "4242"),
        (TEXT.replace('"lqpn":17', '"lqpn":true'), "True"),
        (TEXT.replace('"lqpn":17', '"lqpn":"²"'), "²"),
        (TEXT.replace('"lqpn":17', '"lqpn":-17'), "-17"),
        (TEXT.replace('"lqpn":17', '"lqpn":17.5'), "17.5"),
        (TEXT.replace('"lqpn":17', '"lqpn":' + "9" * 5000), "999"),
        (TEXT.replace('"lqpn":17', f'"lqpn":{2**64}'), str(2**64)),
        (TEXT.replace('"ifname":"mlx5_0","port"', '"ifname":5,"port"'), "ifname"),
        (TEXT.replace('"ifname":"mlx5_0","port"', '"port"'), "lqpn"),
        (TEXT.replace('"ib_core"', "5"), "comm"),
    ],
    ids=range(11),
)
def test_what_was_cut_off_or_is_of_another_kind_is_quoted(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_rdma_qps(text)
    assert quoted in str(caught.value)


@given(text=garbled(TEXT))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_rdma_qps, text)
