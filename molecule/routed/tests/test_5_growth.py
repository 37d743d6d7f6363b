# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A leaf is added to the running network: only its neighbors' files change, and no session of the others ends."""

from __future__ import annotations

from lab import clos
from lab.clos import Clos
from tests.verify.clos import findings, is_clean, plan_of, summary, texts, until
from tests.verify.clos_start import reload, start


def test_a_leaf_is_added_without_a_lost_session(routed: Clos) -> None:
    before = texts(plan_of(routed))
    dropped = {name: {port: peer["connectionsDropped"] for port, peer in summary(routed, name).items()} for name in before}
    larger = clos.add_leaf(routed)
    plane = plan_of(larger)
    after = texts(plane)
    assert {name for name in before if before[name] != after[name]} == {"spine1", "spine2"}
    start(larger, {"leaf3": after["leaf3"]})
    for name in ("spine1", "spine2"):
        reload(larger, name, after[name])
    until(lambda: is_clean(findings(larger, plane)), 20, 0.3)
    seen = {name: {port: peer["connectionsDropped"] for port, peer in summary(larger, name).items()} for name in before}
    assert {name: {port: seen[name][port] for port in ports} for name, ports in dropped.items()} == dropped
