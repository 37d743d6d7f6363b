# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking from outside: what a run leaves alone on a node, and what crosses the cables while it measures."""

from __future__ import annotations

import threading
import time
from typing import Any

from lab import namespace, remote
from lab.cluster import Lab
from lab.plan import Node

SAMPLE_SECONDS = 0.1
#: Around a measurement nothing else crosses its cable for longer than this.
MARGIN_SECONDS = 0.4
TOLERANCE = 0.10

#: user@0 and user-runtime-dir@0 come and go with our own SSH sessions.
SNAPSHOT = r"""
systemctl list-units --type=service --state=active --plain --no-legend | awk '{print $1}' | grep -v '^user.*@0' | sort |
    xargs systemctl show --property=Id,InvocationID
find /etc /usr/local -type f -printf '%p %T@ %i %m\n' | sort
"""


def snapshot(lab: Lab, node: Node) -> list[str]:
    """Each active service with its InvocationID, each file of the administrator's with mtime, inode and mode."""
    said = remote.execute(node, lab.folder, SNAPSHOT)
    assert said.status == 0, said.stderr
    assert "InvocationID=" in said.stdout
    assert "/etc/rdma-cluster/soft-links.json" in said.stdout
    return said.stdout.splitlines()


class Recorder:
    """Samples the byte counters of every cable while it is entered, and knows each node's clock."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.samples: list[tuple[float, dict[str, dict[str, int]]]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Recorder:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.samples.append((time.time(), namespace.counters(self.lab.plan.namespace)))

    def _clock_offset(self, node: Node) -> float:
        """Seconds by which the node's clock is ahead of this machine's."""
        before = time.time()
        there = float(remote.execute(node, self.lab.folder, "date +%s.%N").stdout)
        return there - (before + time.time()) / 2

    def _grown(self, cable: str, direction: str, begin: float, end: float) -> int:
        at_begin = max((sample for sample in self.samples if sample[0] <= begin), key=lambda sample: sample[0])
        at_end = min((sample for sample in self.samples if sample[0] >= end), key=lambda sample: sample[0])
        return at_end[1][cable][direction] - at_begin[1][cable][direction]

    def assert_bytes(self, results: list[dict[str, Any]]) -> None:
        """What each pair reports to have moved has crossed both of its cables, ± TOLERANCE."""
        offsets = {node.name: self._clock_offset(node) for node in self.lab.plan.nodes}
        wrong = []
        for result in results:
            reported = result["size_bytes"] * result["iterations"]
            begin = result["started"] - offsets[result["client"]] - MARGIN_SECONDS
            end = begin + result["seconds"] + 2 * MARGIN_SECONDS
            for name, direction in ((result["client"], "from_node_bytes"), (result["server"], "to_node_bytes")):
                rail = next(rail for rail in self.lab.plan.node(name).rails if rail.name == result["rail"])
                grown = self._grown(rail.cable, direction, begin, end)
                words = (
                    f"{result['rail']} {result['client']} to {result['server']}: {reported} bytes reported, {grown} {direction} of {name}"
                )
                print(f"{words}: {grown / reported - 1:+.1%}")
                if abs(grown / reported - 1) > TOLERANCE:
                    wrong.append(words)
        assert not wrong, "\n".join(wrong)
