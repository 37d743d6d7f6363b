# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mlnx_qos prints. The forms are those of python/mlnx_qos of mlnx-tools, from 2017 to 2026."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._qos.mlnx_qos import MlnxQos, TrafficClass, parse_mlnx_qos
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.mlnx_qos_texts import DSCP, PCP, WARNING

OLDEST = """PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0

tc: 0 ratelimit: unlimited, tsa: strict
""" + "".join(f"\t priority:  {priority}\n" for priority in range(8))
DSCP_TO_PRIORITY = {dscp: dscp // 8 for dscp in range(64)} | {26: 5}


def test_trust_in_dscp() -> None:
    assert parse_mlnx_qos(DSCP) == MlnxQos(
        dcbx_mode="OS controlled",
        trust="dscp",
        dscp_to_priority=DSCP_TO_PRIORITY,
        buffer_sizes_bytes=[130944, 262016, 0, 0, 0, 0, 0, 0],
        max_buffer_bytes=2069280,
        cable_length_m=7,
        pfc_enabled=[False, False, False, True, False, False, False, False],
        pfc_buffer=[0, 0, 0, 1, 0, 0, 0, 0],
        traffic_classes={
            0: TrafficClass(None, "ets", 50, [0, 1, 2, 4, 5, 7]),
            3: TrafficClass(100.5, "ets", 50, [3]),
            6: TrafficClass(None, "strict", None, [6]),
        },
        warnings=[],
    )


def test_trust_in_pcp() -> None:
    assert parse_mlnx_qos(PCP) == MlnxQos(
        dcbx_mode="Firmware controlled",
        trust="pcp",
        dscp_to_priority=None,
        buffer_sizes_bytes=[524160, 0, 0, 0, 0, 0, 0, 0],
        max_buffer_bytes=None,
        cable_length_m=7,
        pfc_enabled=[False] * 8,
        pfc_buffer=[0] * 8,
        traffic_classes={tc: TrafficClass(None, "vendor", None, [{0: 1, 1: 0}.get(tc, tc)]) for tc in range(8)},
        warnings=[],
    )


def test_the_oldest_version_reports_pfc_and_classes_alone() -> None:
    assert parse_mlnx_qos(OLDEST) == MlnxQos(
        dcbx_mode=None,
        trust=None,
        dscp_to_priority=None,
        buffer_sizes_bytes=None,
        max_buffer_bytes=None,
        cable_length_m=None,
        pfc_enabled=[False, False, False, True, False, False, False, False],
        pfc_buffer=None,
        traffic_classes={0: TrafficClass(None, "strict", None, list(range(8)))},
        warnings=[],
    )


def test_the_total_of_older_versions_is_not_the_greatest_size() -> None:
    older = parse_mlnx_qos(DSCP.replace("max_buffer_size=", "total_size="))
    assert (older.buffer_sizes_bytes, older.max_buffer_bytes) == ([130944, 262016, 0, 0, 0, 0, 0, 0], None)


@pytest.mark.parametrize("word", ["state", "mode"])
def test_an_inbox_driver_that_knows_no_trust(word: str) -> None:
    complaint = f"Priority trust {word} is not supported on your system"
    qos = parse_mlnx_qos(f"{complaint}\nPriority trust {word}: none\n" + OLDEST)
    assert (qos.trust, qos.warnings) == (None, [complaint])
    assert parse_mlnx_qos(f"Priority trust {word}: dscp\n" + OLDEST).trust == "dscp"


def test_a_driver_that_knows_no_buffers() -> None:
    text = "Buffers commands are not supported on your system\n" + DSCP
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("Receive", "\tbuffer")))
    qos = parse_mlnx_qos(text)
    assert (qos.buffer_sizes_bytes, qos.max_buffer_bytes, qos.pfc_buffer) == (None, None, None)
    assert qos.warnings == ["Buffers commands are not supported on your system"]
    assert qos.pfc_enabled == parse_mlnx_qos(DSCP).pfc_enabled


def test_a_driver_that_knows_no_rate_limits_does_not_say_which_class_is_which() -> None:
    text = DSCP.replace("ratelimit: unlimited, ", "").replace("ratelimit: 100.5 Gbps, ", "")
    for tc in (0, 3, 6):
        text = text.replace(f"tc: {tc} tsa: ", "")
    qos = parse_mlnx_qos("Rate limit is not supported on your system!\n" + text)
    assert qos.traffic_classes is None
    assert qos.pfc_enabled == parse_mlnx_qos(DSCP).pfc_enabled
    assert qos.warnings == ["Rate limit is not supported on your system!"]


def test_a_driver_without_ets_reports_nothing() -> None:
    qos = parse_mlnx_qos("ETS features are not supported on your system\n")
    assert qos == MlnxQos(None, None, None, None, None, None, None, None, None, ["ETS features are not supported on your system"])


def test_lldpad_is_warned_of() -> None:
    qos = parse_mlnx_qos(WARNING + DSCP)
    assert qos.warnings == ["WARNING: lldpad service is running and may overwrite your settings"]
    assert qos.trust == "dscp"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace("\n", "\n    "),
        lambda text: text.replace("\t", "        "),
        lambda text: text.replace("(bytes): ", "(bytes):\n"),
        lambda text: "root@node1:~# mlnx_qos -i ens1np0\n" + text + "root@node1:~# ",
        lambda text: text.replace(",\n", ", \n").replace("priority:  ", "priority: "),
    ],
    ids=["crlf", "blank-lines", "indented", "blanks-for-tabs", "wrapped", "prompts", "blanks"],
)
def test_blanks_and_other_lines_do_not_matter(spoil: Callable[[str], str]) -> None:
    assert parse_mlnx_qos(spoil(DSCP)) == parse_mlnx_qos(DSCP)
    assert parse_mlnx_qos(spoil(PCP)) == parse_mlnx_qos(PCP)


def test_classes_without_priorities_are_shown_on_demand() -> None:
    qos = parse_mlnx_qos(DSCP.replace("tc: 3 ", "tc: 1 ratelimit: unlimited, tsa: vendor\ntc: 3 "))
    assert qos.traffic_classes is not None
    assert qos.traffic_classes[1] == TrafficClass(None, "vendor", None, [])


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("bash: mlnx_qos: command not found\n", "command not found"),
        ("Interface name is required\nUsage: mlnx_qos -i <interface> [options]\n", "Usage"),
        ("[Errno 1] Operation not permitted\n", "Operation not permitted"),
        (WARNING, "lldpad"),
        (DSCP.partition("PFC")[0] + "OSError: [Errno 95] Operation not supported\n", "OSError"),
        (DSCP + DSCP, "DCBX mode: OS controlled"),
        (OLDEST + OLDEST, "enabled"),
        (DSCP.replace("130944,262016,", "130944, ..., "), "130944, ..., "),
        (DSCP.replace("262016,0,0,0,0,0,0,", "262016,0,"), "130944,262016,0,max"),
        (DSCP.replace("0   1   0   0   0   0   ", "0   1   0   0   ", 1), "enabled     0   0   0   1   0   0"),
        (DSCP.replace("enabled     0", "enabled     2"), "enabled     2"),
        (DSCP.replace("dscp:15,", "dscp:64,"), "dscp:64,"),
        (DSCP.replace("tsa: strict", "tsa: st"), "tsa: st"),
        (DSCP.replace("100.5 Gbps", "100.5"), "100.5, tsa"),
        (DSCP.replace("priority:  6", "priority:  5"), "priority:  5"),
        (DSCP.replace("tc: 6", "tc: 3"), "priority:  6"),
    ],
    ids=range(17),
)
def test_what_is_no_whole_output_is_an_error_that_quotes_it(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_mlnx_qos(text)
    assert quoted in str(caught.value)


@pytest.mark.parametrize("text", [DSCP, PCP, OLDEST], ids=["dscp", "pcp", "oldest"])
@given(data=st.data())
def test_a_cut_output_is_refused_unless_it_is_whole(text: str, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(text) - 1))
    if end < len(text) - 1:
        with pytest.raises(ParseError):
            parse_mlnx_qos(text[:end])
    else:
        assert parse_mlnx_qos(text[:end]) == parse_mlnx_qos(text)


@given(garbled(DSCP) | garbled(PCP) | garbled(WARNING + OLDEST))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_mlnx_qos, text)
