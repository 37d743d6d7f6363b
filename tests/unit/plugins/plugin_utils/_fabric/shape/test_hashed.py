# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The forecast of hashed flows: by enumeration, by known figures of a kernel, and by this machine's kernel."""

from __future__ import annotations

import itertools
import json
import math
import os
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape import hashed
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.hashed import forecast

SENDER = Path(__file__).with_name("hashed_sender.py")


def enumerated(paths: int, flows: int, full: float) -> tuple[float, float]:
    """Both shares by all hashes, one after the other."""
    largest = reached = 0.0
    for choice in itertools.product(range(paths), repeat=flows):
        loads = Counter(choice).values()
        largest += max(loads)
        reached += sum(min(load, full) for load in loads)
    return largest / flows / paths**flows, reached / flows / paths**flows


@pytest.mark.parametrize(("paths", "flows"), [(paths, flows) for paths in range(1, 5) for flows in range(1, 7)])
def test_small_numbers_by_enumeration(paths: int, flows: int) -> None:
    for full in (None, 1.0, 2.5):
        found = forecast(paths, flows, full)
        expected = enumerated(paths, flows, flows / paths if full is None else full)
        assert (found.largest_share, found.reached_share) == pytest.approx(expected, abs=1e-9)


#: Linux with fib_multipath_hash_policy=1, two veth paths, UDP to port 4791: flows → the larger share of a single run, in percent.
MEASURED = {1: 99, 4: 75, 8: 50, 16: 56, 64: 55, 256: 52}


@pytest.mark.parametrize(("flows", "percent"), MEASURED.items())
def test_a_kernels_shares_on_two_paths(flows: int, percent: float) -> None:
    """Within three standard deviations of one run; a percent of the packets is of other protocols, and the figures are rounded."""
    chances = [math.comb(flows, load) / 2**flows for load in range(flows + 1)]
    largest = [max(load, flows - load) / flows for load in range(flows + 1)]
    mean = sum(map(math.prod, zip(chances, largest, strict=True)))
    deviation = math.sqrt(sum(chance * (each - mean) ** 2 for chance, each in zip(chances, largest, strict=True)))
    assert forecast(2, flows).largest_share == pytest.approx(mean, rel=0.005)
    assert percent / 100 == pytest.approx(forecast(2, flows).largest_share, abs=3 * deviation + 0.015)


@pytest.mark.parametrize(("paths", "flows", "largest", "reached"), [(4, 8, 0.442, 0.766), (4, 32, 0.344, 0.879), (32, 32, 0.110, 0.638)])
def test_figures_of_the_documentation(paths: int, flows: int, largest: float, reached: float) -> None:
    found = forecast(paths, flows)
    assert (found.largest_share, found.reached_share) == pytest.approx((largest, reached), abs=0.0006)


@pytest.mark.parametrize(("paths", "flows"), [(2, 80), (2, 128), (3, 64), (4, 80), (8, 72), (16, 72), (32, 64), (128, 128)])
def test_the_approximation_is_within_its_error(monkeypatch: pytest.MonkeyPatch, paths: int, flows: int) -> None:
    near = hashed._expected_largest.__wrapped__(paths, flows)
    monkeypatch.setattr(hashed, "_MOST_BITS", 10**9)
    assert near == pytest.approx(hashed._expected_largest.__wrapped__(paths, flows), rel=0.005)


@given(paths=st.integers(1, 64), flows=st.integers(1, 512), full=st.none() | st.floats(0.5, 20))
def test_shares_are_within_their_bounds(paths: int, flows: int, full: float | None) -> None:
    found = forecast(paths, flows, full)
    assert 1 / paths - 1e-9 <= found.largest_share <= 1 + 1e-9
    assert 0 < found.reached_share <= 1
    assert forecast(paths, 2 * flows).reached_share >= forecast(paths, flows).reached_share - 1e-9


@pytest.mark.parametrize(("paths", "flows"), [(0, 1), (1, 0)])
def test_nothing_has_no_forecast(paths: int, flows: int) -> None:
    with pytest.raises(ValueError, match="expected at least one of each"):
        forecast(paths, flows)


def namespaces_work() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not namespaces_work(), reason="network namespaces need root")
@pytest.mark.parametrize("paths", [2, 4])
def test_this_kernels_hash_in_a_network_namespace(paths: int) -> None:
    """The mean of many runs is within four standard errors; policy 0 puts all flows of two addresses on one path."""
    flows, runs = [1, 4, 8, 16, 64, 256], 60
    argv = ["nice", "-n", "19", "unshare", "--net", sys.executable, str(SENDER), str(paths), str(runs), *map(str, flows)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    for count in flows:
        loads, found = answer["ports"][str(count)], forecast(paths, count)
        assert all(sum(each) == count for each in loads)
        for seen, expected in (
            ([max(each) / count for each in loads], found.largest_share),
            ([sum(min(load, count / paths) for load in each) / count for each in loads], found.reached_share),
        ):
            error = statistics.stdev(seen) / math.sqrt(runs)
            assert statistics.fmean(seen) == pytest.approx(expected, abs=4 * error + 1e-9)
    assert {max(each) for each in answer["addresses"]["64"]} == {64}
