# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of ibdev2netdev, plain and with -v, and what is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ibdev2netdev import NetdevOfPort, parse_ibdev2netdev
from tests.unit.garbled import garbled, no_time

PLAIN = """\
mlx4_0 port 1 ==> ib0 (Up)
mlx4_0 port 2 ==> eth2 (Down)
mlx5_bond_0 port 1 ==> bond0 (Up)
roceP2p1s0f1 port 1 ==> enP2p1s0f1np1 (NA)
"""
VERBOSE = """\
0000:3d:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT) NVIDIA ConnectX-7 adapter card, 400GbE / NDR IB (default mode)    fw 28.39.1002 port 1 (ACTIVE) ==> ens1np0 (Up)
10000:e1:00.1 mlx5_1 (MT4121 - 7359059    ) CX556A - ConnectX-5 QSFP28 fw 16.23.1020 port 2 (DOWN  ) ==> ens2f1np1 (Down)
0000:02:00.5 mlx5_2 (MT4116 - NA)  fw 12.23.1020 port 1 (INIT  ) ==> ib2 (Down)
 mlx5_3 (NA - NA)  fw NA port 1 (NA) ==> ib3 (NA)
"""  # noqa: E501


def test_plain() -> None:
    assert parse_ibdev2netdev(PLAIN) == [
        NetdevOfPort("mlx4_0", 1, "ib0", True),
        NetdevOfPort("mlx4_0", 2, "eth2", False),
        NetdevOfPort("mlx5_bond_0", 1, "bond0", True),
        NetdevOfPort("roceP2p1s0f1", 1, "enP2p1s0f1np1", None),
    ]


def test_verbose() -> None:
    assert parse_ibdev2netdev(VERBOSE) == [
        NetdevOfPort("mlx5_0", 1, "ens1np0", True),
        NetdevOfPort("mlx5_1", 2, "ens2f1np1", False),
        NetdevOfPort("mlx5_2", 1, "ib2", False),
        NetdevOfPort("mlx5_3", 1, "ib3", None),
    ]


@pytest.mark.parametrize("sample", [PLAIN, VERBOSE], ids=["plain", "verbose"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ("\n", "\n\n"),
        ("\n", "\n> "),
        (" ", "\u00a0 "),
        ("(Up)", "(Up) 192.168.1.1"),
        (" ==> ", " ==>\n"),
        (" ==>", "\n==>"),
        (" (Up)", "\n(Up)"),
        (")\n", ")\nib0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST> mtu 2044\n[rdma@node1 ~]$ ls port 1\n"),
    ],
)
def test_the_form_may_suffer_on_the_way(sample: str, old: str, new: str) -> None:
    assert old in sample
    assert parse_ibdev2netdev(sample.replace(old, new)) == parse_ibdev2netdev(sample)


@pytest.mark.parametrize("words", [" fw ", " port ", "adapter card, ", "NVIDIA "])
def test_a_long_row_may_be_broken(words: str) -> None:
    assert parse_ibdev2netdev(VERBOSE.replace(words, f"\n{words.strip()}\n")) == parse_ibdev2netdev(VERBOSE)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("bash: ibdev2netdev: command not found", "command not found"),
        ("ibdev2netdev <options>\n-h, --help                print help message\n", "<options>"),
        ("mlx5_0 port 1 ==> ens1 (Up)\nmlx5_1 port 1 ==> ens2", "mlx5_1 port 1 ==> ens2"),
        ("mlx5_0 port 1 ==> ens1 (Up)\nmlx5_1 port 1 =", "mlx5_1 port 1 ="),
        ("mlx5_0 port 1 ==> ens1 (Up)\nmlx5_1 port", "mlx5_1 port"),
        (VERBOSE.rpartition(" port")[0], "mlx5_3 (NA - NA) fw NA"),
        ("mlx5_0 port 1 ==> ens1 (Sideways)", "Sideways"),
        ("mlx5_0 port ² ==> ens1 (Up)", "mlx5_0 port ²"),
    ],
)
def test_anything_else_is_refused_and_quoted(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ibdev2netdev(text)
    assert quoted in str(caught.value)


@given(garbled(PLAIN) | garbled(VERBOSE))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    with contextlib.suppress(ParseError):
        parse_ibdev2netdev(text)


@given(st.integers(0, len(PLAIN)), st.integers(0, len(VERBOSE)))
def test_a_cut_output_tells_nothing_wrong(end: int, end_verbose: int) -> None:
    for text, at in ((PLAIN, end), (VERBOSE, end_verbose)):
        with contextlib.suppress(ParseError):
            rows = parse_ibdev2netdev(text[:at])
            assert rows == parse_ibdev2netdev(text)[: len(rows)]


@pytest.mark.parametrize("text", ["mlx5_0 port 1 =" + " x" * 50000, "mlx5_0 (MT1 port 1 " + "port 1 " * 50000, "mlx5_0 port\n" * 50000])
def test_long_outputs_are_refused_in_linear_time(text: str) -> None:
    with no_time(), pytest.raises(ParseError):
        parse_ibdev2netdev(text)
