# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sweep of the report: grids, quantiles, thresholds and the list of low pairs, each compared with numbers worked out by hand."""

from __future__ import annotations

import base64
import gc
import json
import re
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import Limit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import NoLimit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import make_schedule
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html import sweep as sweep_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.hosts import HostFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.sweep import Pair, Sweep, read_sweep, sweep_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench import report as bench

HOSTS = ["node1", "node2", "node3", "node4"]
#: Pair → Gb/s. With a limit of 100 Gb/s, the pairs of node4 are below warn_below, and one of them below fail_below.
GBPS = {"12": 98.0, "13": 97.0, "14": 90.0, "23": 99.0, "24": 70.0, "34": 96.0}
FAILED = '0,0,null,9.5,0.1,"retry_exceeded","Failed status 12"'


@dataclass
class Results:
    """The results of one rail by pair, "12" for node1 and node2: Gb/s and µs; None: failed; a missing pair has no result."""

    gbps: Mapping[str, float | None]
    usec: Mapping[str, float]


def run_with(base: Path, *rails: Results, settings: Mapping[str, float] | None = None) -> tuple[Run, dict[str, Any]]:
    """A run folder whose sweep has these results, and its plan."""
    run = RunFolder(base / bench.RUN)
    plan = bench.plan(HOSTS)
    plan["rails"] = plan["rails"][: len(rails)]
    if not any(rail.usec for rail in rails):
        plan["tests"] = plan["tests"][:1]
    schedule = make_schedule({"kind": "full"}, len(HOSTS))
    for client, host in enumerate(HOSTS):
        lines = []
        for number, (server, serving) in schedule.of(client).items():
            pair = "".join(sorted((host[-1], HOSTS[server][-1])))
            for rail, found in enumerate(rails) if not serving else ():
                place = f"{rail},{number},{server},{client}"
                if pair in found.gbps:
                    value = found.gbps[pair]
                    lines.append(f"[{place},{FAILED}]\n" if value is None else f"[{place},0,0,{value},6.2,0.1]\n")
                if pair in found.usec:
                    lines.append(f"[{place},1,0,{found.usec[pair]},1.2,0.1]\n")
        run.write(run.host_file("pairs", host, ".jsonl"), "".join(lines))
        if settings is not None:
            run.write_json(run.host_file("intent", host), {"pairs": settings})
    run.write_json("pairs/plan.json", plan)
    return Run(run), plan


def facts(*gbps: float | None, rails: int = 1) -> HostFacts:
    """The limits of HOSTS on each rail; None for a host whose limit is unknown."""
    limits: dict[str, Mapping[str, Limit | NoLimit]] = {
        host: {f"rail{rail}": NoLimit("unknown", "link down") if each is None else Limit(each, each, "link", "") for rail in range(rails)}
        for host, each in zip(HOSTS, gbps, strict=True)
    }
    return HostFacts(limits=limits)


ALIKE = facts(100.0, 100.0, 100.0, 100.0)


def sweep_of(base: Path, *rails: Results, hosts: HostFacts = ALIKE, settings: Mapping[str, float] | None = None) -> Sweep:
    run, plan = run_with(base, *rails, settings=settings)
    return read_sweep(run, plan, hosts, {})


def words_of(pairs: Sequence[Pair]) -> list[tuple[str, float | None]]:
    """The pairs by the digits of their hosts, in any direction, with their result."""
    return [("".join(sorted((each.sender[-1], each.receiver[-1]))), each.gbps) for each in pairs]


def test_the_counts_and_quantiles_of_a_rail(tmp_path: Path) -> None:
    some = {**GBPS, "23": None}
    del some["34"]
    [rail] = sweep_of(tmp_path, Results(some, {})).rails
    assert (rail.planned, rail.measured, rail.failed, rail.missing) == (6, 4, 1, 1)
    assert rail.quantiles == [70.0, 70.0, 70.0, 97.0, 98.0, 98.0]
    assert rail.limits == [100.0] * 4
    assert (rail.usec_grid, rail.usec_median) == ("", None)


def test_low_pairs_are_listed_the_lowest_first_and_failed_ones_before(tmp_path: Path) -> None:
    [rail] = sweep_of(tmp_path, Results({**GBPS, "13": None}, {"24": 3.5})).rails
    assert words_of(rail.worst) == [("13", None), ("24", 70.0), ("14", 90.0)]
    failed, lowest, low = rail.worst
    assert (failed.why, failed.share, failed.usec) == ("retry_exceeded: Failed status 12", None, None)
    assert (lowest.rail, lowest.expected_gbps, lowest.usec, lowest.why) == ("rail0", 100.0, 3.5, "")
    assert lowest.share == pytest.approx(0.7)
    assert low.usec is None
    assert rail.lowest is failed


def test_pairs_with_different_limits_are_listed_by_their_share(tmp_path: Path) -> None:
    """A pair of node3, which expects 50 Gb/s, has more of its limit than one with more Gb/s of 100."""
    hosts = facts(100.0, 100.0, 50.0, 100.0)
    [rail] = sweep_of(tmp_path, Results({**dict.fromkeys(GBPS, 99.0), "12": 60.0, "34": 45.0, "13": 20.0}, {}), hosts=hosts).rails
    assert words_of(rail.worst) == [("13", 20.0), ("12", 60.0), ("34", 45.0)]
    assert [each.expected_gbps for each in rail.worst] == [50.0, 100.0, 50.0]


def test_at_most_twenty_low_pairs_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_file, "WORST", 2)
    [rail] = sweep_of(tmp_path, Results(dict.fromkeys(GBPS, 10.0) | {"34": 9.0}, {})).rails
    assert words_of(rail.worst)[0] == ("34", 9.0)
    assert len(rail.worst) == 2


def test_the_lowest_pair_of_a_good_rail_is_listed_alone(tmp_path: Path) -> None:
    [rail] = sweep_of(tmp_path, Results({**dict.fromkeys(GBPS, 99.0), "14": 96.0}, {"14": 2.0})).rails
    assert words_of(rail.worst) == [("14", 96.0)]
    assert rail.worst[0].usec == 2.0


def test_a_rail_without_a_result_has_no_chart(tmp_path: Path) -> None:
    [rail, other] = sweep_of(tmp_path, Results(GBPS, {}), Results({}, {}), hosts=facts(*[100.0] * 4, rails=2)).rails
    assert rail.chart
    assert (other.planned, other.measured, other.missing, other.worst, other.quantiles) == (6, 0, 6, [], [])
    assert (other.chart, other.chart_words, other.lowest) == ("", "", None)


def test_the_chart_says_what_it_shows(tmp_path: Path) -> None:
    [rail] = sweep_of(tmp_path, Results(GBPS, {})).rails
    assert rail.chart_words == (
        "rail0: 6 results from 70 to 99 Gb/s, median 96.5 Gb/s; expected 100 Gb/s, warning below 95, error below 80"
    )
    assert f'aria-label="{rail.chart_words}"' in rail.chart
    # The axis begins at the lowest result, because the threshold is higher, and ends at the limit, which no result reaches.
    assert re.findall(r'<text class="tick"[^>]*>([^<]*)</text>', rail.chart) == ["70", "100"]
    marks = dict(re.findall(r'<line class="mark-(\w+)" x1="([\d.]+)"', rail.chart))
    assert {kind: float(x) for kind, x in marks.items()} == {
        kind: pytest.approx(8 + 324 * (value - 70) / (100 - 70), abs=0.1) for kind, value in (("expected", 100), ("warn", 95), ("fail", 80))
    }


def test_each_result_is_in_the_bar_of_its_value(tmp_path: Path) -> None:
    """48 bars from 70 to 100 Gb/s: 0.625 Gb/s each. No two results share one."""
    [rail] = sweep_of(tmp_path, Results(GBPS, {})).rails
    bars = sorted(float(x) for x in re.findall(r'<rect class="bar" x="([\d.]+)"', rail.chart))
    assert bars == [pytest.approx(8 + 324 / 48 * number, abs=0.1) for number in (0, 32, 41, 43, 44, 46)]
    assert {float(height) for height in re.findall(r'height="([\d.]+)"/>', rail.chart)} == {96.0}


def test_the_axis_of_good_results_begins_below_the_threshold(tmp_path: Path) -> None:
    [rail] = sweep_of(tmp_path, Results(dict.fromkeys(GBPS, 110.0), {})).rails
    assert re.findall(r'<text class="tick"[^>]*>([^<]*)</text>', rail.chart) == ["78.4", "110"]


def test_equal_results_without_a_limit_are_in_the_last_bar(tmp_path: Path) -> None:
    """The other rail has cards, so that the level of software devices does not count."""
    hosts = HostFacts(limits={"node4": {"rail1": Limit(100.0, 100.0, "link", "")}})
    [rail, _cards] = sweep_of(tmp_path, Results({"12": 50.0, "13": 50.0, "23": 50.0}, {}), Results({}, {}), hosts=hosts).rails
    assert rail.limits == [None] * 4
    assert rail.chart_words == "rail0: 3 results from 50 to 50 Gb/s, median 50 Gb/s"
    assert re.findall(r'<rect class="bar" x="([\d.]+)"', rail.chart) == ["325.2"]
    assert "mark-" not in rail.chart
    assert [each.expected_gbps for each in rail.worst] == [None]


def test_a_limit_of_one_end_counts_for_the_pair(tmp_path: Path) -> None:
    [rail] = sweep_of(tmp_path, Results({"12": 50.0, "14": 60.0}, {}), hosts=facts(None, None, None, 100.004)).rails
    assert rail.limits == [None, None, None, 100.0]
    assert [(each.gbps, each.expected_gbps) for each in rail.worst] == [(60.0, 100.0)]


def test_software_devices_are_compared_with_the_level_of_their_fleet(tmp_path: Path) -> None:
    settings = {"warn_below": 0.9, "fail_below": 0.8, "software_fail_below": 0.5}
    values = {"12": 10.0, "13": 20.0, "14": 4.0, "23": 20.0, "24": 21.0, "34": 11.0}
    found = sweep_of(tmp_path, Results(values, {}), hosts=HostFacts(), settings=settings)
    assert found.software
    assert (found.warn_below, found.fail_below) == (0.5, 0.5)
    assert found.rails[0].limits == [20.0] * 4
    assert words_of(found.rails[0].worst) == [("14", 4.0)]


def test_the_thresholds_of_cards_are_those_of_the_intent(tmp_path: Path) -> None:
    settings = {"warn_below": 0.85, "fail_below": 0.6, "software_fail_below": 0.1}
    found = sweep_of(tmp_path / "set", Results(GBPS, {}), settings=settings)
    assert (found.software, found.warn_below, found.fail_below) == (False, 0.85, 0.6)
    assert words_of(found.rails[0].worst) == [("24", 70.0)]
    default = sweep_of(tmp_path / "unset", Results(GBPS, {}), settings={})
    assert (default.warn_below, default.fail_below) == (0.95, 0.8)
    without = sweep_of(tmp_path / "without", Results(GBPS, {}))
    assert (without.warn_below, without.fail_below) == (0.95, 0.8)


def test_the_medians_of_each_host_are_shares_of_the_limit(tmp_path: Path) -> None:
    found = sweep_of(
        tmp_path, Results({**GBPS, "12": None}, {}), Results({"34": 50.0}, {}), hosts=facts(100.0, 100.0, 100.0, 50.0, rails=2)
    )
    rows = {row.host: ([None if share is None else round(share, 3) for share in row.shares], row.failed) for row in found.rows}
    assert rows == {
        "node1": ([1.385, None], 1),
        "node2": ([1.195, None], 1),
        "node3": ([0.99, 1.0], 0),
        "node4": ([1.8, 1.0], 0),
    }


def cells(text: str, code: str) -> list[int]:
    """The figures of a grid; the lower byte comes first."""
    data = base64.b64decode(text)
    width = {"H": 2, "B": 1}[code]
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def test_the_grid_has_a_cell_for_each_direction(tmp_path: Path) -> None:
    values = {**GBPS, "23": None}
    del values["13"]
    run, plan = run_with(tmp_path, Results(values, {"12": 2.0, "14": 8.0}))
    found = read_sweep(run, plan, ALIKE, {})
    [rail] = found.rails
    schedule = make_schedule({"kind": "full"}, 4)
    expected = [0] * 16
    for client in range(4):
        for server, serving in schedule.of(client).values():
            if not serving:
                value = values.get("".join(sorted((HOSTS[client][-1], HOSTS[server][-1]))), "missing")
                expected[client * 4 + server] = 2 if value == "missing" else 1 if value is None else 3 + round(float(value) / 0.01)
    assert rail.gbps_step == 0.01
    assert cells(rail.gbps_grid, "H") == expected
    slow = cells(rail.usec_grid, "B")
    assert sorted(slow) == [0] * 14 + [3, 255]
    assert rail.usec_low == 2.0
    assert rail.usec_low * rail.usec_factor**252 == pytest.approx(8.0)
    assert rail.usec_median == 5.0
    assert found.page_data()["rails"][0]["gbps_grid"] == rail.gbps_grid
    assert found.page_data()["raw"] == [[0, *where, "retry_exceeded", "Failed status 12"] for where in [found.raw[0][1:3]]]


def test_a_fast_rail_has_wider_steps(tmp_path: Path) -> None:
    """65532 steps reach the greatest result."""
    [rail] = sweep_of(tmp_path, Results({**GBPS, "34": 1310.64}, {}), hosts=facts(*[1400.0] * 4)).rails
    assert rail.gbps_step == pytest.approx(0.02)
    assert max(cells(rail.gbps_grid, "H")) == 65535


def test_a_machine_with_the_higher_byte_first_swaps_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in: this machine has the lower byte first, so that the bytes of a grid come out in the other order."""
    assert base64.b64decode(sweep_file._encoded(array("H", [1, 258]))) == b"\x01\x00\x02\x01"
    monkeypatch.setattr(sys, "byteorder", "big")
    assert base64.b64decode(sweep_file._encoded(array("H", [1, 258]))) == b"\x00\x01\x01\x02"
    assert base64.b64decode(sweep_file._encoded(bytearray([1, 2]))) == b"\x01\x02"


def test_hosts_have_the_leaf_of_their_own_device(tmp_path: Path) -> None:
    run, plan = run_with(tmp_path, Results(GBPS, {}), Results(GBPS, {}))
    hosts = facts(*[100.0] * 4, rails=2)
    hosts.guids = {("node1", "mlx5_0"): "1a", ("node1", "mlx5_1"): "1b", ("node2", "mlx5_0"): "2a"}
    plan["rails"][1]["profiles"] = [1, None, 1, 1]
    found = read_sweep(run, plan, hosts, {"1a": "leaf1", "1b": "leaf2", "2a": "leaf1"})
    assert [rail.leaves for rail in found.rails] == [["leaf1", "leaf1", "", ""], ["leaf2", "", "", ""]]


def test_a_plan_of_another_schema_is_refused_and_none_is_none(tmp_path: Path) -> None:
    run, plan = run_with(tmp_path, Results(GBPS, {}))
    assert sweep_plan(run) == json.loads(json.dumps(plan))
    run.folder.write_json("pairs/plan.json", {**plan, "schema": 1})
    with pytest.raises(ParseError, match="have schema 1, and this version reads schema 2"):
        sweep_plan(run)
    assert sweep_plan(Run(RunFolder(tmp_path / "other"))) is None


def test_the_collector_runs_again_after_reading(tmp_path: Path) -> None:
    assert gc.isenabled()
    sweep_of(tmp_path, Results(GBPS, {}))
    assert gc.isenabled()
    gc.disable()
    try:
        sweep_of(tmp_path / "again", Results(GBPS, {}))
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(("gbps", "expected", "share"), [(50.0, 100.0, 0.5), (None, 100.0, None), (50.0, None, None), (0.0, 100.0, 0.0)])
def test_the_share_of_a_pair(gbps: float | None, expected: float | None, share: float | None) -> None:
    assert Pair("rail0", "node1", "node2", gbps, expected).share == share
