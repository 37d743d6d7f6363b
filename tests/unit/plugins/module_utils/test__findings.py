# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings: which of them stop a gate, and what a whole is worth."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding, stopping, worst


def finding(status: str, silenced_by: str | None = None) -> Finding:
    return Finding("link", "link.state", "node1", "rail 0", status, "seen", "expected", "do", silenced_by)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match=r"link.state.*'fine'"):
        finding("fine")


def test_errors_and_unknowns_stop_and_nothing_else() -> None:
    findings = [finding(status) for status in ("ok", "warning", "error", "unknown", "not_applicable")]
    assert [item.status for item in stopping(findings)] == ["error", "unknown"]


def test_a_silenced_error_does_not_stop() -> None:
    assert stopping([finding("error", "known fault, ticket 12")]) == []


WORST = [
    (["ok", "not_applicable"], "ok"),
    (["ok", "warning"], "warning"),
    (["warning", "unknown", "ok"], "unknown"),
    (["unknown", "error"], "error"),
    (["not_applicable"], "not_applicable"),
    ([], "not_applicable"),
]


@pytest.mark.parametrize(("statuses", "expected"), WORST)
def test_worst(statuses: list[str], expected: str) -> None:
    assert worst(finding(status) for status in statuses) == expected


def test_to_dict_and_back() -> None:
    original = finding("error")
    assert Finding.from_dict(original.to_dict()) == original
    with pytest.raises(TypeError):
        Finding.from_dict({**original.to_dict(), "color": "red"})
