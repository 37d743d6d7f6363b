# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file that nccl-tests writes with -J (src/util.cu, since version 2.17.8).

It holds the whole environment of the process, with whatever secrets are in it: that is dropped at once, and no message quotes the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._json_of_c import words_of_json
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_tests_result import (
    Measured,
    NcclTestsResult,
    Rank,
    Row,
    Settings,
    nccl_version,
    whole_number_of_ranks,
)

_BOOLEANS = {"true": True, "false": False}


def parse_nccl_tests_json(text: str) -> NcclTestsResult:
    """Parse the file of one run. ranks has the first rank of each process alone, since the file has no other; nranks counts them all.

    Raises ParseError, also for a file that was cut off: it is no JSON then.
    """
    document = _read(text)
    if isinstance(document, int):
        raise ParseError(f"nccl-tests' JSON is cut off or damaged at character {document} of {len(text)}")
    if not isinstance(document, dict) or not isinstance(document.get("results"), list):
        raise ParseError(f"no results in what should be nccl-tests' JSON, {len(text)} characters")
    return _result(document)


def _read(text: str) -> Any:
    """The document, or the position up to which it is one: the error itself holds the whole text, and so is not passed on."""
    try:
        return json.loads(words_of_json(text), object_pairs_hook=_without_environment)
    except (ValueError, RecursionError) as exc:
        return int(getattr(exc, "pos", 0))


def _without_environment(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if name != "env"}


def _result(document: dict[str, Any]) -> NcclTestsResult:
    config = _object(document, "config")
    ranks = tuple(_rank(device) for device in _list(config, "devices"))
    settings = _settings(config) if config else None
    average, bounds = _object(document, "average_bus_bandwidth"), _object(document, "out_of_bounds")
    arguments = [each for each in _list(document, "args") if isinstance(each, str)]
    nranks = _number_of_ranks(ranks, settings)
    return NcclTestsResult(
        version=None,
        headers_version=None,
        library_version=nccl_version(_integer(document, "nccl_version") or 0),
        test=arguments[0].rpartition("/")[2] if arguments else None,
        settings=settings,
        ranks=ranks,
        nranks=nranks,
        rows=tuple(_row(each) for each in _list(document, "results")),
        average_busbw_gbytes_per_s=_number(average, "bandwidth"),
        average_ok=_BOOLEANS.get(str(average.get("okay"))),
        out_of_bounds=_integer(bounds, "count"),
        out_of_bounds_ok=_BOOLEANS.get(str(bounds.get("okay"))),
        errors=tuple(each[:500] for each in _list(document, "errors") if isinstance(each, str) and each),
        runs=1,
        truncated=not (average and bounds),
        elided=settings is None or nranks is None,
    )


def _number_of_ranks(ranks: tuple[Rank, ...], settings: Settings | None) -> int | None:
    """Each process has as many ranks as threads times GPUs, of which the file names the first (2.19), or all."""
    if settings is None or not ranks:
        return None
    each = settings.threads * settings.gpus
    if all(rank.rank == number * each for number, rank in enumerate(ranks)):
        return len(ranks) * each
    return whole_number_of_ranks(ranks)


def _settings(config: dict[str, Any]) -> Settings | None:
    needed = [_integer(config, name) for name in ("nthreads", "ngpus", "minimum_bytes", "maximum_bytes")]
    threads, gpus, least, most = needed
    if threads is None or gpus is None or least is None or most is None:
        return None
    return Settings(
        threads, gpus, least, most, _integer(config, "warmup_iters"), _integer(config, "iterations"), _integer(config, "validation")
    )


def _rank(device: Any) -> Rank:
    told = device if isinstance(device, dict) else {}
    numbers = [_integer(told, name) for name in ("rank", "pid", "device")]
    rank, pid, gpu = numbers
    if rank is None or pid is None or gpu is None:
        raise ParseError("a device in nccl-tests' JSON has no rank, pid or device")
    texts = [str(told.get(name, "")).strip() for name in ("hostname", "device_hex", "device_info")]
    return Rank(rank, _integer(told, "group"), pid, texts[0], gpu, texts[1], texts[2])


def _row(result: Any) -> Row:
    told = result if isinstance(result, dict) else {}
    size, count = _integer(told, "size"), _integer(told, "count")
    if size is None or count is None:
        raise ParseError("a result in nccl-tests' JSON has no size or no count")
    redop = str(told["redop"]) if told.get("redop") else None
    halves = [_measured(told[name]) if isinstance(told.get(name), dict) else None for name in ("out_of_place", "in_place")]
    return Row(size, count, str(told.get("type", "")), redop, _integer(told, "root"), halves[0], halves[1])


def _measured(half: dict[str, Any]) -> Measured:
    time = _number(half, "time") if "time" in half else _number(half, "cpu_time")
    return Measured(time, _number(half, "alg_bw"), _number(half, "bus_bw"), _integer(half, "nwrong"))


def _object(parent: dict[str, Any], name: str) -> dict[str, Any]:
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _list(parent: dict[str, Any], name: str) -> list[Any]:
    value = parent.get(name)
    return value if isinstance(value, list) else []


def _number(parent: dict[str, Any], name: str) -> float | None:
    """None for what is not there, and for what is no measurement ("nan", inf)."""
    value = parent.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _integer(parent: dict[str, Any], name: str) -> int | None:
    """A whole number, also one that C has printed as 0.000000 or in a text with blanks ("    -1")."""
    value = parent.get(name)
    if isinstance(value, str):
        text = value.strip()
        return int(text) if text.isascii() and text.lstrip("-").isdigit() and len(text) <= 20 and text.count("-") <= 1 else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = _number(parent, name)
    return int(number) if number is not None and number == int(number) else None
