# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's answer when its results are collected, validated where it enters: the module runs on the host, which is not trusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import LINE_CHARACTERS, MOST_SECONDS, is_whole

#: The longest line of a result is LINE_CHARACTERS of escaped text, and some numbers.
RESULT_CHARACTERS = 8 * LINE_CHARACTERS
FAILURE_CHARACTERS = 64 * 1024
REASON_CHARACTERS = 1000
MOST_NAMES = 1000
MOST = 2**63 - 1


@dataclass(frozen=True)
class Answer:
    """One answer of perftest_rounds. results, failures: one line of JSON each. Lines of results are parsed later, when all are judged."""

    running: bool
    finished: bool
    reason: str
    next_byte: int
    more: bool
    results: list[str]
    failures: list[str]
    unreadable: int
    strangers: int
    seconds: float | None
    counters: dict[str, Any] | None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Answer:
        """Return the answer. Raises ParseError with the value of wrong type. A line that is too long is kept as text, not as a result."""
        truths = {key: _get(answer, key, lambda value: isinstance(value, bool), "true or false") for key in ("running", "finished", "more")}
        counts = {key: _get({"strangers": 0, **answer}, key, _is_count, "a number") for key in ("next_byte", "unreadable", "strangers")}
        results, failures = (_get(answer, key, lambda value: isinstance(value, list), "a list") for key in ("results", "failures"))
        reason = _get(answer, "reason", lambda value: isinstance(value, str), "text")
        seconds = _get(answer, "seconds", lambda value: value is None or _is_duration(value), "a time")
        counters = _get(answer, "counters", lambda value: value is None or _are_counters(value), "counters of rails")
        return cls(
            **truths,
            **counts,
            reason=reason[:REASON_CHARACTERS],
            results=[_line(result, RESULT_CHARACTERS) for result in results],
            failures=[_line(failure, FAILURE_CHARACTERS) for failure in failures],
            seconds=seconds,
            counters=counters,
        )


def _get(answer: Mapping[str, Any], key: str, fits: Callable[[Any], bool], what: str) -> Any:
    if key not in answer or not fits(answer[key]):
        raise ParseError(f"{key} is not {what} but {type(answer.get(key)).__name__}")
    return answer[key]


def _is_count(value: Any) -> bool:
    return is_whole(value) and 0 <= value <= MOST


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < MOST_SECONDS


def _line(content: Any, characters: int) -> str:
    try:
        text = json.dumps(content, separators=None if isinstance(content, dict) else (",", ":"), sort_keys=isinstance(content, dict))
    except (ValueError, TypeError, RecursionError) as exc:
        raise ParseError(f"a line is not JSON: {exc}") from exc
    return text if len(text) <= characters else json.dumps(text[:LINE_CHARACTERS])


def _are_counters(value: Any) -> bool:
    """Return whether a value has the form of _pairs.counters.risen: rail → its seconds, and the increase of each counter."""
    return isinstance(value, dict) and all(isinstance(rail, str) and _is_rail(of_rail) for rail, of_rail in value.items())


def _is_rail(of_rail: Any) -> bool:
    if not isinstance(of_rail, dict) or not _is_duration(of_rail.get("seconds")) or not _counts(of_rail.get("risen")):
        return False
    if not isinstance(of_rail.get("netdev"), (str, type(None))) or not _counts(of_rail.get("cnps", {})):
        return False
    if not _counts(of_rail.get("packets", {}), or_none=True) or not _is_count(of_rail.get("counted", 0)):
        return False
    names = of_rail.get("uncounted", [])
    if not isinstance(names, list) or len(names) > MOST_NAMES or not all(isinstance(name, str) for name in names):
        return False
    priorities = of_rail.get("priorities")
    return priorities is None or (
        isinstance(priorities, dict) and all(isinstance(name, str) and _counts(each, or_none=True) for name, each in priorities.items())
    )


def _counts(value: Any, *, or_none: bool = False) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and (_is_count(count) or (or_none and count is None)) for name, count in value.items()
    )
