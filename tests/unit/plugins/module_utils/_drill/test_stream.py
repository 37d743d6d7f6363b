# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stream of a drill: which holes it reports for packets that were lost or came late, and the real program on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._drill.stream import MOST_HOLES, PACKET, Receiver

TOKEN = bytes(range(8))
MS = 10**6
INTERVAL_NS = 10 * MS


def packet(number: int, flow: int = 0, token: bytes = TOKEN) -> bytes:
    return PACKET.pack(token, flow, number, 10**15 + number * INTERVAL_NS)


def result(numbers: list[int], flow: int = 0, receiver: Receiver | None = None) -> dict[str, object]:
    receiver = receiver or Receiver(TOKEN)
    for number in numbers:
        receiver.add(packet(number, flow), 0)
    return receiver.result(INTERVAL_NS, 0)


def test_a_hole_lasts_from_the_last_packet_to_the_next_minus_one_interval() -> None:
    found = result([0, 1, 2, 93, 94])
    assert found["holes"] == [[0, 90, 20.0, 900.0]]
    assert (found["lost"], found["hole_count"], found["packets"], found["flows"]) == (90, 1, 5, 1)


def test_packets_of_another_drill_and_other_sizes_are_ignored() -> None:
    receiver = Receiver(TOKEN)
    for each in (packet(5, token=bytes(8)), packet(5, flow=9999), b"", packet(5) + b"x"):
        receiver.add(each, 0)
    assert receiver.result(INTERVAL_NS, 0)["packets"] == 0
    assert receiver.result(INTERVAL_NS, 0)["silent_ms"] is None


def test_a_flow_that_does_not_come_back_is_unfinished() -> None:
    receiver = Receiver(TOKEN)
    result(list(range(500)), 0, receiver)
    found = result(list(range(100)), 1, receiver)
    assert found["unfinished"] == [[1, 990.0]]
    assert found["holes"] == []


def test_silence_at_the_end_is_measured_by_the_clock_of_the_receiver() -> None:
    receiver = Receiver(TOKEN)
    receiver.add(packet(0), 5 * MS)
    assert receiver.result(INTERVAL_NS, 2505 * MS)["silent_ms"] == 2500.0


def test_the_longest_holes_are_kept_and_all_are_counted() -> None:
    numbers = list(range(0, 2 * (MOST_HOLES + 50), 2))
    found = result([*numbers, numbers[-1] + 100])
    assert found["hole_count"] == MOST_HOLES + 50
    holes = found["holes"]
    assert isinstance(holes, list)
    assert len(holes) == MOST_HOLES
    assert holes[0][1] == 99


@given(st.data())
def test_the_holes_are_exactly_the_packets_that_never_arrive(data: st.DataObject) -> None:
    count = data.draw(st.integers(3, 40))
    lost = data.draw(st.sets(st.integers(1, count - 2)))
    arrived = [number for number in range(count) if number not in lost]
    # Those in the middle arrive in any order: by another path, a packet is overtaken.
    middle = data.draw(st.permutations(arrived[1:-1]))
    found = result([arrived[0], *middle, arrived[-1]])
    runs = [number for number in lost if number - 1 not in lost]
    assert (found["lost"], found["hole_count"]) == (len(lost), len(runs))
    expected = sorted((number - 1) * 10.0 for number in runs)
    holes = found["holes"]
    assert isinstance(holes, list)
    assert sorted(hole[2] for hole in holes) == expected
    assert all(hole[3] == hole[1] * 10.0 for hole in holes)


def test_two_programs_hear_each_other(tmp_path: Path) -> None:
    program, token = tmp_path / "stream.pyz", tmp_path / "token"
    program.write_bytes(host_program("_drill.stream"))
    token.write_text(TOKEN.hex())
    ends = {"127.0.71.1": "127.0.71.2", "127.0.71.2": "127.0.71.1"}
    words = ["--port", "47100", "--flows", "4", "--interval-ms", "10", "--seconds", "60", "--token-file", str(token)]
    running = [
        subprocess.Popen([sys.executable, program, "--address", own, "--peer", peer, *words, "--result", tmp_path / own])
        for own, peer in ends.items()
    ]
    time.sleep(2)
    running[0].send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    running[0].send_signal(signal.SIGCONT)
    time.sleep(0.5)
    for each in running:
        each.send_signal(signal.SIGTERM)
    assert [each.wait(timeout=20) for each in running] == [0, 0]
    found = {own: json.loads((tmp_path / own).read_text()) for own in ends}
    assert all(each["flows"] == 4 and each["packets"] > 100 and each["unfinished"] == [] for each in found.values())
    # A sender that pauses loses nothing: its rounds have their own times.
    assert found["127.0.71.2"]["holes"] == []
    assert found["127.0.71.1"]["pause_ms"] >= 400
