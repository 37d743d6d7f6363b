# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One host's results make no sense: the gate judges all others, and accuses none of them."""

from __future__ import annotations

import copy
import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.answer import Answer
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.hosts import hard
from tests.unit.plugins.plugin_utils._pairs.gate.test_gate import fleet, judged, of_cards, run_folder, steady, swept

ODD = "node2"
REMOVED = object()
#: What stands in place of a value. A number that could have been measured is none of them.
VALUES = (
    *(None, REMOVED, True, False, -1, 10**30, 2**63, 1e308, float("inf"), float("-inf"), float("nan"), -0.0, 65536, "", "x", "1e999"),
    *("x" * 100_000, "\x1b]0;owned\x07", "../../PWNED", [], [[]], [None] * 50, {}, {"a": {"b": []}}, {"": ""}),
)
EXAMPLES = int(os.environ.get("RDMA_TEST_MUTATIONS", "150"))
FILES = (".jsonl", ".counters.json")
ANSWER = {
    "running": False,
    "finished": True,
    "more": False,
    "reason": "",
    "next_byte": 1,
    "unreadable": 0,
    "strangers": 0,
    "results": [],
    "failures": [],
    "seconds": 40.0,
    "counters": None,
}


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values and subtrees."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def changed(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return [] if value is REMOVED else value
    result = copy.deepcopy(tree)
    node = result
    for key in path[:-1]:
        node = node[key]
    if value is REMOVED:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return result


def read(folder: RunFolder, ending: str) -> Any:
    text = (folder.path / folder.host_file("pairs", ODD, ending)).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if ending == FILES[0] else json.loads(text)


def written(folder: RunFolder, ending: str, tree: Any) -> bool:
    """Store what a host answers as it is stored when results are collected. Return whether it was admitted."""
    of_lines = ending == FILES[0]
    answer = {**ANSWER, "results" if of_lines else "counters": tree}
    try:
        admitted = Answer.of(answer)
    except ParseError:
        return False
    text = "".join(f"{line}\n" for line in admitted.results) if of_lines else json.dumps(admitted.counters)
    if of_lines or admitted.counters is not None:
        folder.write(folder.host_file("pairs", ODD, ending), text)
    else:
        (folder.path / folder.host_file("pairs", ODD, ending)).unlink()
    return True


@pytest.mark.parametrize(("kind", "measured"), [("soft", steady), ("cards", of_cards)])
def test_one_host_that_makes_no_sense_accuses_no_other(
    kind: str, measured: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RDMA_TEST_EXAMPLES=new draws others; RDMA_TEST_MUTATIONS: how many."""
    seed = random.SystemRandom().randrange(10**9) if os.environ.get("RDMA_TEST_EXAMPLES") == "new" else 7
    folder, of = run_folder(tmp_path, "R1"), fleet(hard) if kind == "cards" else fleet()
    swept(folder, of, measured)
    trees = {ending: read(folder, ending) for ending in FILES}
    cases = [(ending, path, value) for ending, tree in trees.items() for path in places(tree) for value in VALUES]
    slowest, begun, refused, named = 0.0, time.monotonic(), 0, 0
    for ending, path, value in random.Random(seed).sample(cases, min(EXAMPLES, len(cases))):
        started = time.monotonic()
        if not written(folder, ending, changed(trees[ending], path, value)):
            refused += 1
            continue
        found = judged(folder, of)
        slowest = max(slowest, time.monotonic() - started)
        named += any(each.check == "pair.results" and each.status != OK for each in found[ODD])
        accused = {host for host, findings in found.items() for each in findings if each.status == ERROR}
        assert accused <= {ODD}, (ending, path, value)
        assert all(each.observed.isprintable() for findings in found.values() for each in findings), (ending, path, value)
        assert written(folder, ending, trees[ending])
    with capsys.disabled():
        print(
            f"\n  {min(EXAMPLES, len(cases))} of {len(cases)} changes of {kind} (seed {seed}) in {time.monotonic() - begun:.1f} s: "
            f"{refused} refused at the door, {named} named by pair.results; slowest {slowest:.2f} s"
        )
