# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two sweeps compared: noise stays noise, a change is found, and small samples are not judged."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.compare import (
    NOISE,
    SIGNIFICANT,
    TOO_FEW,
    Key,
    compare,
    findings_changed,
    read_values,
    sign_test,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError, Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench.report import RUN, write


def sweep(hosts: int, seed: int, slow: str = "", share: float = 1.0) -> dict[Key, float]:
    chance = random.Random(seed)
    names = [f"node{number}" for number in range(hosts)]
    return {
        ("rail0", one, other): 390 * chance.gauss(1.0, 0.01) * (share if slow in (one, other) else 1.0)
        for number, one in enumerate(names)
        for other in names[number + 1 :]
    }


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_noise(seed: int) -> None:
    found = compare(sweep(16, seed), sweep(16, 1000 + seed))
    assert found.significant_pairs == 0
    assert [each.judgment for each in found.rails] == [NOISE]
    assert found.ports == []


def test_a_slower_port_is_found_with_its_pairs() -> None:
    found = compare(sweep(16, 1), sweep(16, 2, "node3", 0.9))
    assert [each.where for each in found.ports] == ["node3, rail0"]
    assert found.ports[0].percent == pytest.approx(-10, abs=1.5)
    assert found.significant_pairs == 15
    assert all("node3" in each.where and each.judgment == SIGNIFICANT for each in found.pairs)


def test_a_rail_that_is_slower_as_a_whole_is_the_rails_change() -> None:
    found = compare(sweep(16, 1), {key: 0.9 * value for key, value in sweep(16, 2).items()})
    assert [each.judgment for each in found.rails] == [SIGNIFICANT]
    assert found.significant_pairs == 0


def test_small_samples_are_not_judged() -> None:
    found = compare(sweep(3, 1), {key: 0.5 * value for key, value in sweep(3, 2).items()})
    assert [each.judgment for each in (*found.rails, *found.pairs)] == [TOO_FEW] * 4
    assert [each.p for each in (*found.rails, *found.pairs)] == [None] * 4
    assert found.ports == []


def test_pairs_of_one_run_and_failures_are_counted() -> None:
    before = {("r", "a", "b"): 100.0, ("r", "a", "c"): math.nan, ("r", "b", "c"): 90.0}
    after = {("r", "b", "a"): math.nan, ("r", "a", "c"): 80.0, ("r", "a", "d"): 1.0}
    found = compare(before, after)
    assert (found.common, found.only_before, found.only_after) == (2, 1, 1)
    assert (found.failed, found.works) == (["b to a, r"], ["a to c, r"])


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_is_a_probability_and_symmetric(one: int, other: int) -> None:
    assert 0 < sign_test(one, other) <= 1
    assert sign_test(one, other) == sign_test(other, one)


def test_the_sign_test_has_known_values() -> None:
    assert sign_test(0, 5) == pytest.approx(0.0625)
    assert sign_test(1, 9) == pytest.approx(22 / 1024)
    assert sign_test(480, 521) == pytest.approx(sign_test(480, 520), rel=0.2)


def test_findings_are_new_fixed_or_not_judged_again() -> None:
    def one(host: str, status: str, stage: str = "link") -> Finding:
        return Finding(stage, f"{stage}.check", host, "rail 0", status, "seen", "expected")

    before = [one("fixed", "error"), one("stays", "error"), one("gone", "error"), one("new", "ok")]
    after = [one("fixed", "ok"), one("stays", "unknown"), one("new", "warning")]
    found = {kind: [each.host for each in those] for kind, those in findings_changed(before, after).items()}
    assert found == {"new": ["new"], "fixed": ["fixed"], "not judged again": ["gone"], "still there": ["stays"]}


def test_the_values_of_a_run(tmp_path: Path) -> None:
    write(tmp_path, 7)
    run = Run(RunFolder(tmp_path / RUN))
    found = read_values(run)
    assert found is not None
    assert len(found) == 8 * 21
    assert {rail for rail, _one, _other in found} == {f"rail{rail}" for rail in range(8)}
    failed = {key for key, value in found.items() if math.isnan(value)}
    assert len(failed) == 6
    assert all(key[0] == "rail7" and "gpu0006" in key for key in failed)
    slow = [value for key, value in found.items() if key[0] == "rail2" and "gpu0004" in key]
    assert slow == [pytest.approx(0.6 * 385, rel=0.1)] * 6


def test_a_run_without_a_sweep_has_no_values(tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    assert read_values(Run(RunFolder(tmp_path / RUN))) is None


def test_results_of_another_version_are_refused_with_the_remedy(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / RUN)
    folder.write_json("pairs/plan.json", {"schema": 3})
    with pytest.raises(
        ReportError, match=f"Run {RUN} cannot be compared: .* schema 3, .* Compare it with the version of rdma.cluster that"
    ):
        read_values(Run(folder))


def test_a_pair_measured_in_the_other_direction_is_compared() -> None:
    before = {("rail0", "a", "b"): 100.0}
    found = compare(before, {("rail0", "b", "a"): 50.0})
    assert [(each.where, each.before_gbps, each.after_gbps, each.percent) for each in found.pairs] == [
        ("b to a, rail0", 100.0, 50.0, pytest.approx(-50.0))
    ]
    assert (found.common, found.only_before, found.only_after) == (1, 0, 0)


def test_a_small_change_is_noise_however_certain_it_is() -> None:
    """All pairs are 1 % slower, and the least change that counts is 2 %."""
    before = sweep(16, 1)
    found = compare(before, {key: 0.99 * value for key, value in before.items()})
    assert [(each.judgment, each.percent, each.pairs) for each in found.rails] == [(NOISE, pytest.approx(-1.0), 120)]
    assert found.rails[0].p == pytest.approx(2 * 2.0**-120)
    assert found.rails[0].before_gbps == pytest.approx(found.rails[0].after_gbps / 0.99)


def test_ports_with_the_greatest_change_come_first() -> None:
    before = sweep(20, 1)
    after = {key: value * (0.5 if "node3" in key else 0.9 if "node5" in key else 1.0001) for key, value in before.items()}
    found = compare(before, after)
    assert [each.where for each in found.ports][:2] == ["node3, rail0", "node5, rail0"]
    assert found.ports[0].percent == pytest.approx(-50.0)


def test_a_silenced_finding_is_not_bad() -> None:
    def one(silenced_by: str | None) -> list[Finding]:
        return [Finding("link", "link.check", "node1", "rail 0", "error", "seen", "expected", silenced_by=silenced_by)]

    assert {kind: len(those) for kind, those in findings_changed(one("known"), one(None)).items() if those} == {"new": 1}
    assert {kind: len(those) for kind, those in findings_changed(one(None), one("known")).items() if those} == {"fixed": 1}
