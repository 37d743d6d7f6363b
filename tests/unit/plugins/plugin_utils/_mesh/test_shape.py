# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shape of a mesh, and which of its hosts have no common cable."""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.shape import shape_of


def pairs(*words: str) -> list[tuple[str, str]]:
    """ "12" is a cable between n1 and n2."""
    return [(f"n{word[0]}", f"n{word[1]}") for word in words]


@pytest.mark.parametrize(
    ("hosts", "cables", "words", "apart"),
    [
        (2, pairs("12"), "full mesh of 2 hosts", 0),
        (2, pairs("12", "21"), "full mesh of 2 hosts, with 2 cables between n1 and n2", 0),
        (3, pairs("12", "13", "23"), "full mesh of 3 hosts", 0),
        (4, [(f"n{a}", f"n{b}") for a, b in itertools.combinations(range(1, 5), 2)], "full mesh of 4 hosts", 0),
        (4, pairs("12", "23", "34", "41"), "ring of 4 hosts", 2),
        (4, pairs("12", "23", "34", "41", "43"), "ring of 4 hosts, with 2 cables between n3 and n4", 2),
        (3, pairs("12", "23"), "line of 3 hosts", 1),
        (4, pairs("12", "13", "14"), "star of 4 hosts", 3),
        (4, pairs("12", "13", "14", "23"), "partial mesh of 4 hosts", 2),
        (5, pairs("12", "23", "34", "35"), "partial mesh of 5 hosts", 6),
        (5, pairs("12", "34", "45"), "2 islands: n3, n4, n5; n1, n2", 1),
        (3, pairs("12"), "2 islands: n1, n2; n3", 0),
        (3, [], "3 hosts without cables", 0),
    ],
)
def test_shapes(hosts: int, cables: list[tuple[str, str]], words: str, apart: int) -> None:
    found = shape_of([f"n{number}" for number in range(1, hosts + 1)], cables)
    assert (found.words, len(found.apart)) == (words, apart)


def test_hosts_apart_are_in_natural_order() -> None:
    assert shape_of(["n10", "n2", "n1"], [("n1", "n2"), ("n10", "n1")]).apart == [("n2", "n10")]
