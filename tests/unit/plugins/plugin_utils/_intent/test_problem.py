# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Problems of an intent: as findings, and with their place in the inventory."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentProblem, findings, where_of


def test_a_list_of_problems_becomes_findings() -> None:
    found = findings(
        "node1", [IntentProblem("rdma_rails[0].soft", "is true or false; got 5", "intent.type", "true or false", "5", "hosts.yml:12")]
    )
    assert [finding.to_dict() for finding in found] == [
        {
            "stage": "preflight", "check": "intent.type", "host": "node1", "subject": "rdma_rails[0].soft", "status": ERROR,
            "observed": "5", "expected": "true or false",
            "remedy": "Correct rdma_rails[0].soft of node1 in hosts.yml:12.", "silenced_by": None, "caused_by": None,
            "rate_ratio": None,
        }
    ]  # fmt: skip
    assert findings("node1", [IntentProblem("rdma_x", "is wrong", "intent.key")], "driver")[0].remedy.endswith("in the inventory.")


@pytest.mark.parametrize("value", ["text", 5, None, {}, [], True])
def test_a_value_without_origin_is_nowhere(value: Any) -> None:
    assert where_of(value) == ""


def test_no_origin_where_ansible_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ansible._internal._datatag._tags", None)
    assert where_of("text") == ""
