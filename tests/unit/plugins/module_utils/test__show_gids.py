# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of show_gids, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._show_gids import ShownGid, parse_show_gids
from tests.unit.garbled import garbled, no_time, read_or_refused

HEAD = """\
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
"""
LINK_LOCAL = "fe80:0000:0000:0000:0202:c9ff:fef9:bfa0"
MAPPED = "0000:0000:0000:0000:0000:ffff:c0a8:0101"
SHOWN = f"""\
{HEAD}mlx5_0\t1\t0\t{LINK_LOCAL}\t\t\tv1\tens1np0
mlx5_0\t1\t1\t{LINK_LOCAL}\t\t\tv2\tens1np0
mlx5_0\t1\t10\t{MAPPED}\t192.168.1.1  \tv2\tens1np0.43
mlx5_1\t2\t0\tfe80:0000:0000:0000:0002:c903:00f9:bfa1\t\t\tv1\t
n_gids_found=4
"""
ROWS = [
    ShownGid("mlx5_0", 1, 0, LINK_LOCAL, None, "v1", "ens1np0"),
    ShownGid("mlx5_0", 1, 1, LINK_LOCAL, None, "v2", "ens1np0"),
    ShownGid("mlx5_0", 1, 10, MAPPED, "192.168.1.1", "v2", "ens1np0.43"),
    ShownGid("mlx5_1", 2, 0, "fe80:0000:0000:0000:0002:c903:00f9:bfa1", None, "v1", None),
]


def test_rows() -> None:
    assert parse_show_gids(SHOWN) == ROWS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ("\n", "\n\n"),
        ("\n", "\n>"),
        ("\t", "\u00a0\u00a0 \u00a0"),
        ("\t\t\tv", "\t\t\nv"),
        ("\tfe80", "\nfe80"),
        ("\tens", "\nens"),
        (f"{MAPPED}\t", f"{MAPPED} \n"),
        ("n_gids_found=4\n", ""),
        (HEAD, ""),
        (HEAD, f"node1 $ show_gids\n{HEAD}"),
    ],
    ids=[
        "CRLF", "blank lines", "quoted in a mail", "mail indentation",
        "wrapped before the version", "wrapped before the GID", "wrapped before the interface",
        "wrapped before the IPv4 address", "no count", "no head", "a prompt",
    ],
)  # fmt: skip
def test_the_form_may_suffer_on_the_way(old: str, new: str) -> None:
    assert old in SHOWN
    assert parse_show_gids(SHOWN.replace(old, new)) == ROWS


def test_an_entry_without_a_type_has_no_version() -> None:
    assert parse_show_gids(f"mlx5_0\t1\t0\t{LINK_LOCAL}\t\t\t\tens1\nn_gids_found=1") == [
        ShownGid("mlx5_0", 1, 0, LINK_LOCAL, None, None, "ens1")
    ]


def test_an_address_that_only_the_script_takes_for_ipv4() -> None:
    gid = "0000:0000:0000:0000:0000:0000:0000:0001"
    assert parse_show_gids(f"rxe0\t1\t0\t{gid}\t0.0.0.1  \tv2\tlo\n")[0].ipv4 is None


def test_several_hosts_are_counted_apart() -> None:
    assert parse_show_gids(SHOWN + SHOWN) == ROWS + ROWS


def test_no_gid_at_all() -> None:
    assert parse_show_gids(f"{HEAD}n_gids_found=0\n") == []


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        ("bash: show_gids: command not found", "command not found"),
        (HEAD, "PORT"),
        (SHOWN.replace("found=4", "found=5"), "n_gids_found=5"),
        (SHOWN.replace("found=4", "found=3"), "n_gids_found=3"),
        (SHOWN + SHOWN.replace(f"mlx5_0\t1\t1\t{LINK_LOCAL}\t\t\tv2\tens1np0\n", ""), "3 rows"),
        (SHOWN.rpartition(":bfa1")[0], "mlx5_1 2 0 fe80"),
        (SHOWN.rpartition("\tfe80")[0], "mlx5_1 2 0"),
        (SHOWN.rpartition("\tv1")[0], ":bfa1"),
        (SHOWN.replace("v2", "v3"), "v3 ens1np0"),
        (SHOWN.replace("ens1np0", "an-interface-name-that-is-too-long"), "an-interface"),
        (SHOWN.replace("\t1\t0\tfe80", "\t1\t0\tge80"), "ge80"),
        (SHOWN.replace("\t1\t0\tfe80", "\t1\t0\tfe80:"), "fe80::"),
    ],
)
def test_anything_else_is_refused_and_quoted(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_show_gids(text)
    assert quoted in str(caught.value)


@given(garbled(SHOWN))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_show_gids, text)


@pytest.mark.parametrize(
    "text", ["mlx5_0 1 0 " + "f" * 100000, "mlx5_0 1 0\n" * 20000, f"mlx5_0 1 0 {LINK_LOCAL}\n" + "v1\n" * 20000 + "m 1 1"]
)
def test_long_outputs_are_refused_in_linear_time(text: str) -> None:
    with no_time(), pytest.raises(ParseError):
        parse_show_gids(text)
