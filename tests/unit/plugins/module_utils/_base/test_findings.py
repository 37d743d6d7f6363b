# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings: which of them stop a gate, and what a whole is worth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping, worst


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


def test_a_ratio_of_rates_is_from_0_to_1() -> None:
    assert replace(finding("error"), rate_ratio=1.2).rate_ratio == 1
    assert replace(finding("error"), rate_ratio=0).rate_ratio == 0
    assert finding("error").rate_ratio is None
    for wrong in (-0.1, float("nan"), "0.5", True):
        with pytest.raises(ValueError, match="rate_ratio is a number from 0 to 1"):
            replace(finding("error"), rate_ratio=wrong)


EVIL = "DOWN\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b[2K\x1b[1A\x9b31m\u202e\u2066\x7f\ud800\x00"


@pytest.mark.parametrize("name", ["host", "subject", "observed", "expected", "remedy", "silenced_by", "caused_by"])
def test_no_text_of_a_host_gives_orders_to_a_terminal(name: str) -> None:
    text = str(getattr(replace(finding("error"), **{name: EVIL}), name))
    assert text.isprintable()
    assert text.startswith("DOWN?]0;title?")
    text.encode()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"])
def test_steps_keep_their_lines_and_names_have_one(end: str) -> None:
    found = replace(finding("error"), remedy=f"1. Look.{end}2. Act.", subject=f"rail 0{end}link  3 hosts", host=f"node1{end}")
    assert found.remedy == "1. Look.\n2. Act."
    assert (found.subject, found.host) == ("rail 0 link  3 hosts", "node1 ")


@pytest.mark.parametrize("name", ["host", "subject", "observed", "expected", "remedy"])
def test_a_long_text_is_cut_and_says_so(name: str) -> None:
    text = getattr(replace(finding("error"), **{name: "x" * 50_000_000}), name)
    assert len(text) <= 4000
    assert text.endswith("… (cut, 50,000,000 characters)")
    assert getattr(Finding.from_dict(replace(finding("error"), **{name: text}).to_dict()), name) == text


def test_what_prints_stays_as_it_is() -> None:
    text = "≥ 99 % of µs, \u201cnäme\u201d → 日本 " + "x" * 3000
    assert replace(finding("error"), observed=text).observed == text


def test_what_is_no_text_becomes_one() -> None:
    assert Finding.from_dict({**finding("ok").to_dict(), "observed": ["a", 1]}).observed == "['a', 1]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot fetch https://ada:s3cret@example.org/key: refused", "cannot fetch https://***@example.org/key: refused"),
        ("http://ada:s3@cret@h/ and ftp://ada@h", "http://***@h/ and ftp://***@h"),
        ("https://example.org/a@b", "https://example.org/a@b"),
        ("mail ada@example.org, see https://example.org", "mail ada@example.org, see https://example.org"),
    ],
)
def test_the_password_of_a_url_is_not_in_a_finding(text: str, shown: str) -> None:
    found = replace(finding("error"), observed=text)
    assert found.observed == shown
    assert Finding.from_dict(found.to_dict()) == found


def test_a_password_is_hidden_before_the_text_is_cut() -> None:
    for length in range(3900, 4010):
        assert "s3cret" not in replace(finding("error"), observed="x" * length + "https://ada:s3cret@example.org/" + "y" * 500).observed
