# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slurm's host lists."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.hostlist import folded


def unfolded(text: str) -> list[str]:
    """What Slurm reads in a list whose brackets are at the end of a name."""
    found = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text):
        prefix, bracket, ranges = part.partition("[")
        if not bracket:
            found.append(prefix)
        for each in ranges.rstrip("]").split(",") if bracket else ():
            first, _dash, last = each.partition("-")
            found += [f"{prefix}{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1)]
    return found


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["node1", "node2", "node3"], "node[1-3]"),
        (["node3", "node1"], "node[1,3]"),
        (["node9", "node10", "node11"], "node[9-11]"),
        (["node09", "node10"], "node[09-10]"),
        (["node08", "node9"], "node08,node9"),
        (["a1", "a3", "b7"], "a[1,3],b7"),
        (["r1n1", "r1n2", "r2n1", "r2n2"], "r1n[1-2],r2n[1-2]"),
        # Slurm 22.05: Invalid hostlist: node[1-3]-ib
        (["node1-ib", "node2-ib"], "node1-ib,node2-ib"),
        (["login"], "login"),
        ([], ""),
    ],
)
def test_names_as_slurm_writes_them(names: list[str], text: str) -> None:
    """The right sides are of `scontrol show hostlist` of Slurm 22.05.8, but for the order and mixed widths."""
    assert folded(names) == text


NAMES = st.lists(
    st.one_of(
        st.builds("node{}".format, st.integers(0, 200)),
        st.builds("gpu-{:03d}".format, st.integers(0, 2000)),
        st.builds("r{}n{}".format, st.integers(1, 3), st.integers(1, 12)),
        st.sampled_from(["login", "head-a", "n1-ib", "0012345678901234567890"]),
    ),
    max_size=60,
)


@given(NAMES)
def test_no_name_is_lost_or_invented(names: list[str]) -> None:
    assert sorted(unfolded(folded(names))) == sorted(set(names))
