# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site run that is killed at a random moment leaves readable evidence, and the next one converges."""

from __future__ import annotations

import json
import os
import random

import pytest

from lab import remote
from lab.cluster import Lab
from tests.verify.drifts import KINDS, command
from tests.verify.site import Site

KILLS = int(os.environ.get("RDMA_TEST_KILLS") or 10)
#: How many runs are killed before one may end: five in `make test`, where a run that ends costs a minute; one in `make test-all`.
IN_A_ROW = 1 if "RDMA_TEST_KILLS" in os.environ else 5
#: A run that has something to mend takes longer than that.
LONGEST_SECONDS = 22.0
#: Packages take a minute to come back on an emulated CPU, and dpkg must not be killed for a test's sake.
DRIFTS = [kind for kind in KINDS if kind.name != "package removed"]


def assert_readable(site: Site) -> None:
    files = [*site.evidence.rglob("*.json"), *site.evidence.rglob("*.jsonl")]
    for file in files:
        for document in file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]:
            json.loads(document)
    print(f"{len(files)} files of the killed run are readable")


def kill(site: Site, moment: float) -> None:
    print(f"killed after {moment:.1f} s")
    before = site.evidence
    site.kill_after(moment)
    if site.evidence != before:
        assert_readable(site)


@pytest.mark.parametrize("round_number", range(KILLS // IN_A_ROW))
def test_killed_and_run_again(lab: Lab, site: Site, seed: int, round_number: int) -> None:
    chance = random.Random(f"{seed} {round_number}")
    node, kind = chance.choice(lab.plan.nodes), chance.choice(DRIFTS)
    done = remote.execute(node, lab.folder, command(node, kind))
    assert done.status == 0, done.stderr
    print(f"{node.name}: {kind.name}")
    for _kill in range(IN_A_ROW):
        kill(site, chance.uniform(1.0, LONGEST_SECONDS))
    again = site.run()
    assert again.returncode == 0, again.stdout


def test_after_all_of_that_nothing_differs(site: Site) -> None:
    assert site.drift() == []
