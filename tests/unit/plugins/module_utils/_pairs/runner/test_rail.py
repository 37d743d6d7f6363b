# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rail in this process, without its thread."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import Plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.rail import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.results import Results
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import own_meetings
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.sweep import Sweep
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import JsonDict, MeetingError, Wire
from tests.unit.builders.pair_runners import Fleet


@pytest.fixture
def resumed() -> bool:
    """Whether the runner of the rail was started again."""
    return False


@pytest.fixture
def one_rail(fleet: Fleet, tmp_path: Path, resumed: bool) -> Iterator[Rail]:
    """A rail of node2 in this process that nobody works on, with room for no more than a few rings."""
    results = Results(tmp_path / "results", "x", resumed)
    rail = Rail(Sweep(Plan(fleet.plan, "", 1, own_meetings(fleet.plan, 1)), b"secret", results), 0)
    yield rail
    os.waitpid(rail.group.number, 0)


def test_the_reception_does_not_wait_for_a_rail_that_reads_no_rings(one_rail: Rail) -> None:
    """L2: a slow rail has thousands of callers parked, and the next one is taken all the same."""

    def park() -> None:
        for number in range(20_000):
            assert one_rail._park(number, MeetingError("refused", "x")) is None

    caller = threading.Thread(target=park, daemon=True)
    caller.start()
    caller.join(10)
    assert not caller.is_alive()
    assert one_rail._bell.recv(8) == b"." * 8


class Caller:
    """Parks calls for round 0 at a rail, as the reception does, and answers the rail's pings."""

    def __init__(self, rail: Rail) -> None:
        self.rail = rail
        self.ends: dict[str, socket.socket] = {}
        self.while_asked: list[str] = []
        self.own: str | None = None

    def call(self, nonce: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.ends[nonce] = socket.create_connection(listener.getsockname())
            wire = Wire(listener.accept()[0], b"secret")
        wire.nonce = nonce
        assert self.rail._park(0, (wire, {"lacks": [0]})) is None

    def ping(self, number: int, other: int) -> JsonDict:
        assert (number, other) == (0, 0)
        for nonce in self.while_asked:
            self.call(nonce)
        return {"calls": self.own}

    def waiting(self) -> list[str]:
        """The calls whose connections are open."""
        return [nonce for nonce, end in self.ends.items() if not select.select([end], [], [], 0)[0]]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("resumed", [True, False])
def test_a_call_that_comes_while_the_client_is_asked_waits_for_the_next_answer(
    one_rail: Rail, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    """An answer from before the client called takes neither a call of before for the client's, nor drops the client's own."""
    caller = Caller(one_rail)
    monkeypatch.setattr(one_rail, "ping", caller.ping)
    caller.call("first")
    caller.call("second")
    caller.while_asked = ["of before", "own"]
    assert one_rail.own_call(0, 0, keep) is None
    assert caller.waiting() == ["of before", "own"]
    caller.while_asked, caller.own = [], "own"
    taken = one_rail.own_call(0, 0, keep)
    assert taken is not None
    assert taken[0].nonce == "own"
    assert caller.waiting() == ["own"]
    again = one_rail.own_call(0, 0, keep)
    assert again == (taken if keep else None)
    taken[0].close()
    for end in caller.ends.values():
        end.close()
