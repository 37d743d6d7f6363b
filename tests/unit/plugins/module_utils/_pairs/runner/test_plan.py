# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans that are read, and those that are refused."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import load_plan, read_plan
from tests.unit.builders.pair_runners import BANDWIDTH, Fleet


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        ({"schema": 1}, "schema 2"),
        ({"hosts": ["node2"]}, "'node1' is not among"),
        ({"hosts": ["node1", "node1"]}, "twice"),
        ({"tests": [{"name": "x"}]}, "KeyError 'command'"),
        ({"tests": []}, "no tests"),
        ({"tests": [BANDWIDTH, BANDWIDTH]}, "two of one name"),
        ({"tests": [{**BANDWIDTH, "command": "rm"}]}, "no such command: 'rm'"),
        ({"rails": [{}]}, "KeyError"),
        ({"rails": None}, "TypeError"),
        ({"rails": [{"name": "rail0", "addresses": ["127.0.0.1"] * 2, "profiles": [0]}]}, "one address and profile a host"),
        ({"rails": [{"name": "rail0", "addresses": ["127.0.0.1"] * 2, "profiles": [9, 9]}]}, "IndexError"),
        ({"rendezvous_port": None}, "TypeError"),
        ({"schedule": {"kind": "star"}}, "'star'"),
        ({"schedule": {"kind": "meetings", "rails": [[[[0, 1], [1, 0]]]]}}, "a host twice"),
        ({"schedule": {"kind": "meetings", "rails": [[[[0, 2]]]]}}, "one that is none"),
    ],
)
def test_a_bad_plan_is_refused(fleet: Fleet, plan: dict[str, Any], complaint: str) -> None:
    path = fleet.folder / "plan.json"
    path.write_text(json.dumps({**fleet.plan, **plan}), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(complaint)) as refused:
        load_plan(path, ["node1"])
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("data", [b"", b"[]", b"\x1f\x8b\x08rubbish", b"{"])
def test_what_is_no_plan_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "plan"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"plan|Expecting"):
        load_plan(path, ["node1"])


def test_the_digest_is_of_the_bytes(tmp_path: Path) -> None:
    plain, packed, other = (tmp_path / name for name in ("plain", "packed", "other"))
    plain.write_bytes(b'{"schema":2}')
    packed.write_bytes(gzip.compress(b'{"schema":2}'))
    other.write_bytes(b'{"schema": 2}')
    assert read_plan(plain) == read_plan(packed)
    assert read_plan(plain)[1] != read_plan(other)[1]
