# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and checks the plan of a sweep."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import allowed_seconds, perftest_argv
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import Meetings, own_meetings
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import JsonDict, MeetingError

SCHEMA = 2
MOST_SECONDS = 1e6
"""The longest time that a plan may allow for a start or a test."""


class Plan(NamedTuple):
    """A loaded plan: the document, the SHA-256 of its bytes, this host's position and its meetings on each rail."""

    content: JsonDict
    digest: str
    host: int
    meetings: list[Meetings]


def read_plan(path: Path) -> tuple[JsonDict, str]:
    """Return a plan, plain or gzip, and the SHA-256 of its unpacked bytes. Raises OSError, ValueError."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = zlib.decompress(data, 31)
        except zlib.error as exc:
            raise ValueError(f"{path}: {exc}") from exc
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"{path}: not a plan of a sweep: {exc}") from exc
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else None
        raise ValueError(f"{path}: this runner knows schema {SCHEMA}, the plan has {found!r}")
    return content, hashlib.sha256(data).hexdigest()


def load_plan(path: Path, names: Sequence[str]) -> Plan:
    """Read the plan for the first of these names that is in it, and check for errors that would otherwise occur in mid-sweep.

    Raises OSError, ValueError.
    """
    plan, digest = read_plan(path)
    try:
        host = _own_position(path, plan["hosts"], names)
        meetings = own_meetings(plan, host)
        _check_plan(plan, host)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as exc:
        raise ValueError(f"{path}: not a plan of a sweep: {type(exc).__name__} {exc}") from exc
    return Plan(plan, digest, host, meetings)


def _own_position(path: Path, hosts: list[str], names: Sequence[str]) -> int:
    if not all(isinstance(host, str) for host in hosts):
        raise ValueError(f"{path}: a host's name is no text")
    if len(set(hosts)) != len(hosts):
        raise ValueError(f"{path}: a host stands there twice")
    for name in names:
        if name in hosts:
            return hosts.index(name)
    raise ValueError(f"{path}: {' or '.join(map(repr, names))} is not among the plan's hosts")


def _check_plan(plan: JsonDict, host: int) -> None:
    str(plan["sweep"]), int(plan["rendezvous_port"]), int(plan["perftest_port"])
    _check_seconds("start_deadline_seconds", float(plan["start_deadline_seconds"]))
    tests = plan["tests"]
    if not tests or len({test["name"] for test in tests}) != len(tests):
        raise ValueError("the plan has no tests, or two of one name")
    for rail in plan["rails"]:
        if not len(rail["addresses"]) == len(rail["profiles"]) == len(plan["hosts"]):
            raise ValueError(f"{rail['name']} of the plan has not one address and profile a host")
        if rail["addresses"][host] is not None:
            for test in tests:
                _check_seconds(f"the time of {test['name']}", allowed_seconds(test))
                with contextlib.suppress(MeetingError):
                    perftest_argv(test, plan["profiles"][rail["profiles"][host]], 0, None)


def _check_seconds(name: str, seconds: float) -> None:
    if not 0 <= seconds <= MOST_SECONDS:
        raise ValueError(f"{name} of the plan is {seconds:g}, and has to be 0 to {MOST_SECONDS:g} seconds")
