# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking from outside: what a run leaves alone on a node, and what crosses the cables while it measures."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lab import namespace, remote
from lab.cluster import Lab
from lab.plan import Node

TOLERANCE = 0.10
#: Acknowledgements of what came the other way, and the meetings themselves.
BESIDE_BYTES = 2_000_000
#: Positions in a line of results.
SERVER, CLIENT = 2, 3

#: user@0 and user-runtime-dir@0 come and go with our own SSH sessions.
SNAPSHOT = r"""
systemctl list-units --type=service --state=active --plain --no-legend | awk '{print $1}' | grep -v '^user.*@0' | sort |
    xargs systemctl show --property=Id,InvocationID
find /etc /usr/local -type f -printf '%p %T@ %i %m\n' | sort
"""


def snapshot(lab: Lab, node: Node) -> list[str]:
    """Each active service with its InvocationID, each file of the administrator's with mtime, inode and mode."""
    answer = remote.execute(node, lab.folder, SNAPSHOT)
    assert answer.status == 0, answer.stderr
    assert "InvocationID=" in answer.stdout
    assert "/etc/rdma-cluster/soft-links.json" in answer.stdout
    return answer.stdout.splitlines()


class Recorder:
    """Reads the byte counters of every cable before and after what happens within it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def __enter__(self) -> Recorder:
        self._before = namespace.counters(self.lab.plan.namespace)
        return self

    def __exit__(self, *_exception: object) -> None:
        after = namespace.counters(self.lab.plan.namespace)
        self.grown = {
            cable: {direction: count - self._before[cable][direction] for direction, count in of.items()} for cable, of in after.items()
        }

    def assert_bytes(self, *sweeps: tuple[dict[str, Any], list[list[Any]]]) -> None:
        """What the clients of all (plan, results) have sent has left by their cables and come in by the servers', within TOLERANCE."""
        test = sweeps[0][0]["tests"][0]
        each = test["size_bytes"] * test["iterations"]
        sent, received = (Counter(_where(plan, row, place) for plan, rows in sweeps for row in rows) for place in (CLIENT, SERVER))
        wrong = []
        for node in self.lab.plan.nodes:
            for rail in node.rails:
                where = (rail.name, node.name)
                for direction, pairs in (("from_node_bytes", sent[where]), ("to_node_bytes", received[where])):
                    reported, grown = pairs * each, self.grown[rail.cable][direction]
                    words = f"{rail.name} of {node.name}: {reported} bytes reported in {pairs} pairs, {grown} {direction}"
                    print(words)
                    if not reported <= grown <= reported * (1 + TOLERANCE) + BESIDE_BYTES:
                        wrong.append(words)
        assert not wrong, "\n".join(wrong)


def _where(plan: dict[str, Any], row: list[Any], place: int) -> tuple[str, str]:
    """(rail, host) by name."""
    return plan["rails"][row[0]]["name"], plan["hosts"][row[place]]
