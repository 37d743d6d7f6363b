# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Charts and figures of the report: positions on the drawing, numbers in words, and data that cannot end its block."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.charts import histogram, lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.page import figure, page_json, percent, signed, status_words


def bars(text: str) -> list[tuple[float, ...]]:
    """x, y, width and height of each bar."""
    form = r'<rect class="bar" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/>'
    return [tuple(map(float, found)) for found in re.findall(form, text)]


def test_the_highest_bar_fills_the_chart_and_a_single_result_is_visible() -> None:
    """The plot has 324 × 96 pixels from (8, 6) on."""
    assert bars(histogram([0, 1000, 500, 1], 0.0, 4.0, {}, "x")) == [
        (89.0, 6.0, 80.4, 96.0),
        (170.0, 54.0, 80.4, 48.0),
        (251.0, 100.5, 80.4, 1.5),
    ]


def test_a_chart_without_results_has_no_bar() -> None:
    for counts in ([], [0, 0]):
        assert bars(histogram(counts, 0.0, 1.0, {}, "x")) == []


def test_marks_are_drawn_within_the_axis_only() -> None:
    text = histogram([1], 100.0, 200.0, {"expected": 150.0, "warn": 100.0, "fail": 99.0, "more": 201.0, "most": 200.0}, "x")
    marks = re.findall(r'<line class="mark-(\w+)" x1="([\d.]+)" y1="4" x2="([\d.]+)" y2="102"/>', text)
    assert marks == [("expected", "170.0", "170.0"), ("warn", "8.0", "8.0"), ("most", "332.0", "332.0")]
    assert "mark-" not in histogram([1], 100.0, 100.0, {"expected": 100.0}, "x")


def test_the_label_of_a_chart_is_text() -> None:
    for chart in (histogram([1], 0.0, 1.0, {}, '"><script>'), lines([[1.0]], '"><script>')):
        assert 'aria-label="&#34;&gt;&lt;script&gt;"' in chart


def test_lines_begin_at_zero_and_have_gaps() -> None:
    """The plot has 324 × 84 pixels; its bottom is at y = 102."""
    text = lines([[0.0, 5.0, None, 10.0, 10.0], [None, 2.5]], "x")
    assert re.findall(r'<polyline class="line (line\d)" points="([^"]+)"/>', text) == [
        ("line0", "8.0,102.0 89.0,60.0"),
        ("line0", "251.0,18.0 332.0,18.0"),
        ("line1", "89.0,81.0"),
    ]
    assert re.findall(r'<circle class="dot (line\d)" cx="([\d.]+)" cy="([\d.]+)" r="2"/>', text)[-1] == ("line1", "89.0", "81.0")
    assert re.findall(r"<text[^>]*>([^<]+)</text>", text) == ["10", "oldest", "newest"]


def test_lines_without_a_value_have_an_axis() -> None:
    for series in ([], [[]], [[None, None]], [[0.0]]):
        text = lines(series, "x")
        assert re.findall(r"<text[^>]*>([^<]+)</text>", text) == ["1", "oldest", "newest"]
        assert "<polyline" not in text or series == [[0.0]]


def test_more_than_eight_series_share_colors() -> None:
    assert [int(number) for number in re.findall(r'class="line line(\d)"', lines([[1.0]] * 9, "x"))] == [0, 1, 2, 3, 4, 5, 6, 7, 0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (figure(None), "not measured"),
        (figure(391.987), "392"),
        (figure(391.987, 5), "391.99"),
        (figure(0.0), "0"),
        (percent(None), "-"),
        (percent(0.0), "0.0 %"),
        (percent(0.9876), "98.8 %"),
        (signed(-10.04), "-10.0 %"),
        (signed(3.26), "+3.3 %"),
        (signed(-0.04), "+0.0 %"),
        (status_words("not_applicable"), "n/a"),
        (status_words("not reached"), "-"),
        (status_words("error"), "error"),
    ],
)
def test_figures_in_words(words: str, expected: str) -> None:
    assert words == expected


def test_data_cannot_end_its_block() -> None:
    data = {"b": "</script><!-- & -->", "a": 1}
    text = page_json(data)
    assert not set("<>&") & set(text)
    assert json.loads(text) == data
    assert text.startswith('{"a":1,')
    with pytest.raises(ValueError, match="not JSON compliant"):
        page_json({"a": float("nan")})
