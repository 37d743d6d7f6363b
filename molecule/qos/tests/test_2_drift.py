# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of drift at once, and each alone: named to the single setting, and fixed with nothing else touched."""

from __future__ import annotations

import os

import pytest

from lab.cluster import Lab
from lab.plan import Node
from tests.verify.drifts import Kind, Line, inflict, named
from tests.verify.observers import snapshot
from tests.verify.qos_drifts import QOS_KINDS
from tests.verify.site import Site

FEWEST = 20
#: In `make test-all`.
ALONE = [(name, kind) for name, kinds in QOS_KINDS.items() for kind in kinds] if os.environ.get("RDMA_TEST_EACH") else []


def of(lab: Lab) -> list[tuple[Node, Kind]]:
    return [(lab.plan.node(name), kind) for name, kinds in QOS_KINDS.items() for kind in kinds]


@pytest.fixture(scope="module")
def expected(lab: Lab) -> set[Line]:
    lines = inflict(lab, of(lab))
    assert len(lines) >= FEWEST
    return lines


def test_drift_names_exactly_what_was_done_and_changes_nothing(lab: Lab, site: Site, expected: set[Line]) -> None:
    nodes = [lab.plan.node(name) for name in QOS_KINDS]
    before = {node.name: snapshot(lab, node) for node in nodes}
    assert named(site.drift()) == expected
    for node in nodes:
        assert snapshot(lab, node) == before[node.name]


def test_one_run_fixes_exactly_that(site: Site, expected: set[Line]) -> None:
    done = site.run()
    assert done.returncode == 0, done.stdout
    assert named(site.lines("changes.jsonl")) == expected
    assert site.drift() == []


if ALONE:

    @pytest.mark.parametrize(("name", "kind"), ALONE, ids=[f"{name}: {kind.name}" for name, kind in ALONE])
    def test_each_alone(lab: Lab, site: Site, name: str, kind: Kind) -> None:
        expected = inflict(lab, [(lab.plan.node(name), kind)])
        assert named(site.drift("--limit", name)) == expected
        done = site.run(kind.stage, "--limit", name)
        assert done.returncode == 0, done.stdout
        assert named(site.lines("changes.jsonl")) == expected
