# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pieces of lines, as mpirun of Open MPI 4.1.4 and 5.0.11 forwards them (seen in the lab, and on two H100) with --tag-output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._collectives.command import untangled, whole_sentences

FIRST = "node1:801:811 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
SECOND = "node3:735:746 [1] NCCL INFO NCCL version 2.28.9+cuda13.0\n"


@pytest.mark.parametrize(
    "lines",
    [
        [f"[1,0]<stdout>:{FIRST}", f"[1,5]<stdout>:{SECOND}"],
        [f"[1,0]<stdout>:{FIRST[:-1]}[1,5]<stdout>:{SECOND}", "[1,0]<stdout>:\n"],
        [f"[1,0]<stdout>:{FIRST[:20]}[1,5]<stdout>:{SECOND}", f"[1,0]<stdout>:{FIRST[20:]}"],
        [f"[1,0]<stdout>: {FIRST}", f"[1,5]<stdout>: {SECOND}"],
        [f"[1,0]<stdout>: {FIRST[:20]}[1,5]<stdout>: {SECOND}", f"[1,0]<stdout>: {FIRST[20:]}"],
        [f"[prterun-node1-4711@1,0]<stdout>: {FIRST}", f"[prterun-node1-4711@1,5]<stderr>: {SECOND}"],
        [FIRST, SECOND],
    ],
    ids=["whole", "glued", "torn", "Open MPI 5", "torn, Open MPI 5", "with the launcher's name", "without tags"],
)
def test_lines_are_whole_again(lines: list[str]) -> None:
    assert sorted(untangled(lines)) == [FIRST, SECOND]


def test_what_has_no_end_is_not_lost_and_gets_none() -> None:
    assert list(untangled(["[1,0]<stdout>:a[1,1]<stdout>:b\n", "mpirun: killed\n"])) == ["b\n", "mpirun: killed\n", "a"]


def test_what_open_mpi_5_says_itself_has_no_tag_either() -> None:
    assert list(untangled(["[1,WILDCARD]<stderr>:   Timeout: 4 seconds\n", "[1,WILDCARD]<stderr>: \n"])) == ["  Timeout: 4 seconds\n", "\n"]


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_sentence_that_open_mpi_5_breaks_off_is_whole_again(end: str) -> None:
    box = ["-----\n", "prterun noticed that process rank 1 with PID 1503 on node nodeb exited on\n", f"signal 9 (Killed).{end}"]
    sentence = f"prterun noticed that process rank 1 with PID 1503 on node nodeb exited on signal 9 (Killed).{end}"
    assert list(whole_sentences(box)) == ["-----\n", "\n", sentence]
    assert list(whole_sentences(box[:2])) == box[:2]


def test_a_line_that_never_ends_is_not_waited_for() -> None:
    pieces = ["[1,0]<stdout>:" + "x" * 40_000 + "[1,1]<stdout>:\n"] * 3
    assert max(map(len, untangled(pieces))) <= 80_000


@given(
    data=st.data(),
    texts=st.lists(st.text("ab \n", min_size=1, max_size=30).map(lambda text: f"{text}\n"), min_size=1, max_size=4),
    space=st.sampled_from(["", " "]),
)
def test_any_pieces_of_any_ranks_give_each_rank_its_lines(data: st.DataObject, texts: list[str], space: str) -> None:
    left, stream = dict(enumerate(texts)), f"[1,0]<stdout>:{space}# nccl-tests\n"
    while left:
        rank = data.draw(st.sampled_from(sorted(left)))
        end = data.draw(st.integers(1, len(left[rank])))
        piece, rest = left[rank][:end], left[rank][end:]
        # A tag at the beginning of each piece, and behind each end of a line.
        tag = f"[1,{rank}]<stdout>:{space}"
        stream += tag + piece.replace("\n", f"\n{tag}") if not piece.endswith("\n") else tag + piece[:-1].replace("\n", f"\n{tag}") + "\n"
        left = {**left, rank: rest} if rest else {each: text for each, text in left.items() if each != rank}
    got = untangled(stream.splitlines(keepends=True))
    assert sorted(got) == sorted(["# nccl-tests\n", *(line for text in texts for line in text.splitlines(keepends=True))])
