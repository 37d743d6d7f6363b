# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drift: a node that differs is named, to the line, and fixed by the site run; one that does not is left alone."""

from __future__ import annotations

import pytest

from lab.cluster import Lab
from lab.plan import Node
from tests.verify.drifts import Kind, Line, draw, inflict, named
from tests.verify.observers import snapshot
from tests.verify.site import Site

COUNT = 4


@pytest.fixture(scope="module")
def drawn(lab: Lab, seed: int) -> list[tuple[Node, Kind]]:
    return draw(seed, lab.plan.nodes, COUNT)


@pytest.fixture(scope="module")
def expected(lab: Lab, drawn: list[tuple[Node, Kind]]) -> set[Line]:
    """Each drift, done to its node; and the line that has to name it."""
    return inflict(lab, drawn)


def test_drift_names_exactly_what_was_done_and_changes_nothing(lab: Lab, site: Site, expected: set[Line]) -> None:
    before = {node.name: snapshot(lab, node) for node in lab.plan.nodes}
    assert named(site.drift()) == expected
    assert site.json("summary.json")["outcome"] == "drifted"
    for node in lab.plan.nodes:
        assert snapshot(lab, node) == before[node.name]


def test_the_site_run_fixes_exactly_that(site: Site, expected: set[Line]) -> None:
    done = site.run()
    assert done.returncode == 0, done.stdout
    # A package comes by ansible.builtin.apt, which reports no difference of its own; it is a finding until it is there.
    assert named(site.lines("changes.jsonl")) == {line for line in expected if not line[2].startswith("driver.package")}
    assert site.drift() == []
    assert site.json("summary.json")["outcome"] == "clean"
