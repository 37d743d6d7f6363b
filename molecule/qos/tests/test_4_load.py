# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many to one: what comes too fast is marked on its way, its receiver asks the senders to slow down, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab import cluster
from lab.cluster import Lab
from tests.verify.site import Site

#: The machines reach 20 to 140 Mbit/s.
MARK_MBIT = 8
RAILS = ("rail0", "rail1")


@pytest.fixture
def marking_switch(lab: Lab) -> Iterator[None]:
    _each_cable(lab, {"mark": MARK_MBIT})
    yield
    _each_cable(lab, {"mark": 0})


def _each_cable(lab: Lab, change: dict[str, int]) -> None:
    for node in lab.plan.nodes:
        for number, _rail in enumerate(node.rails):
            cluster.cable(lab.plan.name, node.name, number, change)


def _judged(site: Site) -> dict[str, tuple[str, str]]:
    """Rail → status and words of what is said of its load."""
    return {line["subject"]: (line["status"], line["observed"]) for line in site.lines("findings.jsonl") if line["check"] == "qos.load"}


def test_where_nothing_is_too_fast_nothing_is_claimed(everyone: Site) -> None:
    done = everyone.run()
    assert done.returncode == 0, done.stdout
    judged = _judged(everyone)
    assert {rail: status for rail, (status, _words) in judged.items()} == dict.fromkeys(RAILS, "not_applicable")
    assert all("they did not fill the line" in words for _status, words in judged.values())


@pytest.mark.usefixtures("marking_switch")
def test_who_sends_too_fast_is_asked_to_slow_down_and_nothing_is_lost(everyone: Site) -> None:
    done = everyone.run("site", "-e", "rdma_measure=true")
    assert done.returncode == 0, done.stdout
    judged = _judged(everyone)
    assert {rail: status for rail, (status, _words) in judged.items()} == dict.fromkeys(RAILS, "ok")
    for _status, words in judged.values():
        assert "2 of 2 sources sent" in words
        assert "np_cnp_sent" in words
        assert "discards: none" in words
