# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is left of an installation, as facts have it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import DKMS, STATES, LastBuild, parse_state, read_last_build
from tests.unit.builders.trees import write_tree

BUNDLE_STATE, DOCA_STATE, DKMS_STATE = STATES
FAILURE = {"meaning": "the installation failed", "lines": ["mlx5_core.c:12:5: error: expected ';'"]}
FAILED = LastBuild("the installation failed", ["mlx5_core.c:12:5: error: expected ';'"])


def test_a_failure_is_reported_with_its_lines() -> None:
    assert parse_state(json.dumps({"rc": 1, "started": 5.5, "failure": FAILURE})) == (5.5, FAILED)


@pytest.mark.parametrize("state", [{"rc": 0, "failure": None}, {"rc": None}])
def test_what_did_not_fail_is_none(state: dict[str, object]) -> None:
    assert parse_state(json.dumps(state)) == (0, None)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"failure": 1}', '{"failure": {"meaning": "x"}}'])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_state(text)


@pytest.mark.parametrize(("second", "expected"), [({"started": 2, "failure": None}, None), ({"started": 0.5, "failure": None}, FAILED)])
def test_the_newest_counts(tmp_path: Path, second: dict[str, object], expected: LastBuild | None) -> None:
    write_tree(tmp_path, f"{BUNDLE_STATE}: {json.dumps({'started': 1, 'failure': FAILURE})}\n{DOCA_STATE}: {json.dumps(second)}")
    assert read_last_build(SysRoot(str(tmp_path))) == expected


@pytest.mark.parametrize("text", [None, "{", json.dumps({"failure": FAILURE})])
def test_half_a_state_is_no_state(tmp_path: Path, text: str | None) -> None:
    write_tree(tmp_path, f"{BUNDLE_STATE}: {text}" if text is not None else "/etc/x: y")
    found = read_last_build(SysRoot(str(tmp_path)))
    assert (found is not None) is (text is not None and len(text) > 1)


def test_what_was_run_is_reported(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        f"{BUNDLE_STATE}: {json.dumps({'started': 1, 'failure': None})}\n{DKMS_STATE}: {json.dumps({'started': 2, 'failure': FAILURE})}",
    )
    found = read_last_build(SysRoot(str(tmp_path)))
    assert found is not None
    assert found.source == DKMS
