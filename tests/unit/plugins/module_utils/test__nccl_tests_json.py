# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file that nccl-tests wrote with -J on two H200, and what its source can make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils import _nccl_tests_json
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_tests_json import parse_nccl_tests_json
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_tests_result import Measured, NcclTestsResult, Rank, Row, Settings
from tests.unit.garbled import garbled, read_or_refused
from tests.unit.nccl_texts import h200

FILE = h200("all_reduce_perf.json")
SECRET = "correct horse battery staple"
ROWS = [
    (1048576, (15.2775, 68.635313), (14.8302, 70.705452)),
    (4194304, (35.27315, 118.909255), (34.5939, 121.244034)),
    (16777216, (78.7648, 213.003981), (77.00555, 217.870218)),
    (67108864, (249.35915, 269.125332), (249.65285, 268.808724)),
    (268435456, (898.20605, 298.857323), (897.3156, 299.153894)),
    (1073741824, (3286.51715, 326.711158), (3267.7216, 328.590362)),
]
RESULT = NcclTestsResult(
    version=None,
    headers_version=None,
    library_version="2.28.9",
    test="all_reduce_perf",
    settings=Settings(1, 2, 1048576, 1073741824, 1, 20, 1),
    ranks=(Rank(0, 0, 1648, "vm", 0, "0000:00:06", "NVIDIA H200"),),
    nranks=2,
    rows=tuple(
        Row(size, size // 4, "float", "sum", -1, *(Measured(time, busbw, busbw, 0) for time, busbw in halves)) for size, *halves in ROWS
    ),
    average_busbw_gbytes_per_s=216.801254,
    average_ok=None,
    out_of_bounds=0,
    out_of_bounds_ok=True,
    errors=(),
    runs=1,
    truncated=False,
    elided=False,
)


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(FILE), **values})


def test_two_h200() -> None:
    assert parse_nccl_tests_json(FILE) == RESULT


def test_the_environment_is_nowhere_not_even_while_the_rest_is_read() -> None:
    text = changed(env=[f"AWS_SECRET_ACCESS_KEY={SECRET}"])
    assert SECRET in text
    assert SECRET not in repr(_nccl_tests_json._read(text))
    assert SECRET not in repr(parse_nccl_tests_json(text))


@pytest.mark.parametrize("end", [0, 1, 500, len(FILE) - 2])
def test_a_file_that_was_cut_off_says_where(end: int) -> None:
    with pytest.raises(ParseError, match=f"nccl-tests' JSON is cut off or damaged at character [0-9]+ of {end}"):
        parse_nccl_tests_json(FILE[:end])


@pytest.mark.parametrize(
    "text",
    [
        changed(env=[f"TOKEN={SECRET}"])[:-20],
        changed(env=[f"TOKEN={SECRET}"], results=None),
        changed(env=[f"TOKEN={SECRET}"], results=[{"size": "x"}]),
        f'{{"env": ["TOKEN={SECRET}',
        f'["TOKEN={SECRET}"]',
    ],
    ids=["cut off", "no results", "no size", "cut off within", "a list"],
)
def test_no_message_has_the_environment(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_nccl_tests_json(text)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_each_process_is_named_once_and_counted_with_all_its_gpus() -> None:
    config = json.loads(FILE)["config"]
    devices = [{**config["devices"][0], "rank": 8 * number, "hostname": f"gpu{number}"} for number in range(4)]
    result = parse_nccl_tests_json(changed(config={**config, "ngpus": 8, "devices": devices}))
    assert (len(result.ranks), result.nranks, result.elided) == (4, 32, False)


@pytest.mark.parametrize(("ranks", "nranks"), [([0, 1, 2], 3), ([0, 2], 4), ([0, 3], None), ([], None)], ids=str)
def test_devices_that_are_not_the_first_of_each_process(ranks: list[int], nranks: int | None) -> None:
    config = json.loads(FILE)["config"]
    devices = [{**config["devices"][0], "rank": rank} for rank in ranks]
    assert parse_nccl_tests_json(changed(config={**config, "devices": devices})).nranks == nranks


def test_what_c_prints_for_no_number_and_for_what_was_not_run() -> None:
    text = FILE.replace('"time": 15.2775, "alg_bw": 68.635313', '"cpu_time": "nan", "alg_bw": inf').replace(
        '"nwrong": 0.0', '"nwrong": null', 1
    )
    assert parse_nccl_tests_json(text).rows[0].out_of_place == Measured(None, None, 68.635313, None)
    results = json.loads(FILE)["results"]
    results[0]["out_of_place"] = None
    assert parse_nccl_tests_json(changed(results=results)).rows[0].out_of_place is None


def test_failures() -> None:
    result = parse_nccl_tests_json(
        changed(
            out_of_bounds={"count": 3, "okay": "false"},
            average_bus_bandwidth={"bandwidth": 1.5, "okay": "false"},
            errors=["unhandled system error"],
        )
    )
    assert (result.out_of_bounds, result.out_of_bounds_ok, result.average_ok) == (3, False, False)
    assert result.errors == ("unhandled system error",)


def test_a_file_that_was_finished_early_is_truncated() -> None:
    document = json.loads(FILE)
    for name in ("out_of_bounds", "average_bus_bandwidth", "errors", "end_time"):
        del document[name]
    result = parse_nccl_tests_json(json.dumps(document))
    expected = replace(RESULT, average_busbw_gbytes_per_s=None, out_of_bounds=None, out_of_bounds_ok=None, truncated=True)
    assert result == expected


@given(garbled(FILE))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_nccl_tests_json, text)
