# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three tiers: two pods and two cores converge with all planned paths, a cut gives one finding, and no path goes down and up again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab import clos
from lab.clos import Clos
from lab.clos_plan import ClosShape
from tests.verify.clos import are_established, findings, is_clean, paths, plan_of, texts, until
from tests.verify.clos_start import start


@pytest.fixture(scope="module")
def pods() -> Iterator[Clos]:
    yield clos.up("mpods", ClosShape(4, 4, 1, 2, 2))
    clos.down("mpods")


@pytest.mark.parametrize("policy", ["shared", "own"])
def test_pods_and_cores_have_all_planned_paths(pods: Clos, policy: str) -> None:
    plane = plan_of(pods, spine_asn=policy)
    start(pods, texts(plane))
    until(lambda: are_established(pods, plane), 15)
    until(lambda: is_clean(findings(pods, plane)), 60, 1)
    host4 = plane.routers["leaf4"].host_ports[0].prefix
    assert paths(pods, "leaf1", host4) == ["swp1", "swp2"]
    assert paths(pods, "spine1", host4) == ["swp33", "swp34"]

    clos.cut(pods, "leaf4/1")
    until(lambda: [subject for _status, subject, _observed in findings(pods, plane)] == ["leaf4 swp1 to spine3 swp2"], 30, 1)
    # Only with its own ASN, spine3 reaches leaf4 by the cores and spine4. No leaf carries traffic for others.
    assert paths(pods, "spine3", host4) == (["swp33", "swp34"] if policy == "own" else [])
    assert paths(pods, "core1", host4) == ["swp4"]
    assert paths(pods, "leaf3", host4) == ["swp2"]

    clos.restore(pods, "leaf4/1")
    until(lambda: is_clean(findings(pods, plane)), 60, 1)
