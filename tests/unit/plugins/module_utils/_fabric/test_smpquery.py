# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""smpquery, sminfo and the node-name map."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import SmInfo, parse_sminfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.names import parse_node_name_map
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.smpquery import (
    NodeInfo,
    PKey,
    parse_nodedesc,
    parse_nodeinfo,
    parse_pkeys,
    parse_portinfo,
)
from tests.unit.builders.fabric_texts import NODE1_MLX5_0, fabric_text
from tests.unit.builders.garbled import garbled, read_or_refused

SMINFO, NODEINFO, PKEYS, PORTINFO = (fabric_text(name) for name in ("sminfo", "smpquery-nodeinfo", "smpquery-pkeys", "smpquery-portinfo"))


def test_the_master() -> None:
    found = parse_sminfo(SMINFO)
    assert found == SmInfo(1, "0xe09d730300000011", "MASTER", 0, found.activity)
    assert found.activity > 0


@pytest.mark.parametrize(("number", "word", "state"), [(2, "SMINFO_STANDBY", "STANDBY"), (0, "SMINFO_NOTACT", "NOTACT"), (9, "???", None)])
def test_other_states(number: int, word: str, state: str | None) -> None:
    assert parse_sminfo(SMINFO.replace("state 3 SMINFO_MASTER", f"state {number} {word}")).state == state


@pytest.mark.parametrize("text", ["", "sminfo: iberror: failed: query\n", SMINFO[:-10], SMINFO.replace("state 3", "state 2"), SMINFO * 2])
def test_what_sminfo_does_not_say(text: str) -> None:
    with pytest.raises(ParseError):
        parse_sminfo(text)


def test_nodeinfo() -> None:
    assert parse_nodeinfo(NODEINFO) == NodeInfo("host", 2, NODE1_MLX5_0, NODE1_MLX5_0, "0xe09d730300000011", 64, 0x101B, 0x2C9, 1)


def test_nodedesc() -> None:
    text = fabric_text("double-smpquery-nodedesc")
    assert parse_nodedesc(text) == "leaf1"
    assert parse_nodedesc(text.replace("leaf1", "Quantum: Mellanox Technologies")) == "Quantum: Mellanox Technologies"
    for wrong in ("", "smpquery: iberror: failed: operation nodedesc: node desc query failed\n", text * 2):
        with pytest.raises(ParseError):
            parse_nodedesc(wrong)


def test_portinfo() -> None:
    hca, switch, down = (parse_portinfo(fabric_text(f"smpquery-portinfo{name}")) for name in ("", "-switch", "-down"))
    assert (hca.lid, hca.sm_lid, hca.lmc, hca.is_sm, hca.mtu_bytes) == (1, 1, 0, True, 2048)
    assert (switch.state, switch.physical, switch.width, switch.speed) == ("ACTIVE", "LinkUp", 4, "HDR")
    assert (switch.widths_enabled, switch.widths_supported) == ([1, 4], [1, 4, 8, 12, 2])
    assert switch.speeds_supported == ["SDR", "DDR", "QDR", "FDR", "EDR", "HDR"]
    assert (switch.lid, switch.is_sm) == (None, False)
    assert (down.state, down.physical, down.width, down.speed) == ("DOWN", "Polling", None, None)


def test_pkeys() -> None:
    assert parse_pkeys(PKEYS) == [PKey(0, 0x7FFF, full=True)]
    text = PKEYS.replace("0xffff 0x0000 0x0000", "0xffff 0x0000 0x0005", 1).replace("  56: 0x0000", "  56: 0x8006")
    assert parse_pkeys(text) == [PKey(0, 0x7FFF, full=True), PKey(2, 5, full=False), PKey(56, 6, full=True)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "smpquery: iberror: failed: operation pkeys: node info query failed\n",
        PKEYS[:200],
        PKEYS.replace("   8:", "  16:"),
        PKEYS.replace("64 pkeys", "65 pkeys"),
    ],
    ids=["empty", "failed", "cut off", "row", "capacity"],
)
def test_tables_that_are_not_whole(text: str) -> None:
    with pytest.raises(ParseError, match="P_Keys"):
        parse_pkeys(text)


@pytest.mark.parametrize("parse", [parse_nodeinfo, parse_portinfo], ids=["nodeinfo", "portinfo"])
@pytest.mark.parametrize("lines", [0, 1, 5, 10])
def test_answers_that_were_cut_off(parse: object, lines: int) -> None:
    text = NODEINFO if parse is parse_nodeinfo else PORTINFO
    with pytest.raises(ParseError):
        parse("\n".join(text.split("\n")[:lines]))  # type: ignore[operator]


MAP = """\
# a comment
0x0008F10400410015 "leaf1"   # what is behind is not read

0x2c5eab0300b87b40  spine 1  # no quotes
0x0008f10400410015 "second name of one GUID"
2306125583702032  "decimal"
0x2c5eab0300b87b41
"""


def test_a_node_name_map() -> None:
    assert parse_node_name_map(MAP) == {
        "0x0008f10400410015": "leaf1",
        "0x2c5eab0300b87b40": "spine 1",
        f"0x{2306125583702032:016x}": "decimal",
    }


def test_the_largest_guid_of_a_map() -> None:
    assert parse_node_name_map(f'{2**64 - 1} "last"') == {f"0x{'f' * 16}": "last"}
    with pytest.raises(ParseError, match="not a GUID of 64 bits"):
        parse_node_name_map(f'{2**64} "none"')


@pytest.mark.parametrize("line", ["leaf1 0x0008f10400410015", "0x0008f10400410015leaf", "0008f10400410015 x", "99999999999999999999 x"])
def test_a_map_that_the_tools_refuse(line: str) -> None:
    with pytest.raises(ParseError, match=r"of 64 bits|at line 9"):
        parse_node_name_map(f"{MAP}\n{line}\n")


@given(st.data())
def test_any_text_is_read_or_refused(data: st.DataObject) -> None:
    samples = (
        (parse_sminfo, SMINFO),
        (parse_nodeinfo, NODEINFO),
        (parse_portinfo, PORTINFO),
        (parse_pkeys, PKEYS),
        (parse_node_name_map, MAP),
    )
    for parse, sample in samples:
        assert read_or_refused(parse, data.draw(garbled(sample)))
