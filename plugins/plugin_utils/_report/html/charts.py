# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small charts as SVG: a histogram with its thresholds, and lines over runs. Colors are classes of the page's style sheet.

Numbers only: the caller puts every name beside the chart, as text of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

WIDTH, HEIGHT, LEFT, BOTTOM = 340, 120, 8, 18


def histogram(counts: Sequence[int], low: float, high: float, marks: Mapping[str, float], label: str) -> Markup:
    """Return the bars of counts between low and high. marks: class → value, drawn as a vertical line; label: the description."""
    most = max(counts, default=0) or 1
    plot_width, plot_height = WIDTH - 2 * LEFT, HEIGHT - BOTTOM - 6
    step = plot_width / max(1, len(counts))
    parts = [_begin(label)]
    for number, count in enumerate(counts):
        if count:
            # A single measurement stays visible beside thousands.
            height = max(1.5, plot_height * count / most)
            parts.append(
                f'<rect class="bar" x="{LEFT + number * step:.1f}" y="{HEIGHT - BOTTOM - height:.1f}" '
                f'width="{max(0.8, step - 0.6):.1f}" height="{height:.1f}"/>'
            )
    parts.append(f'<line class="axis" x1="{LEFT}" y1="{HEIGHT - BOTTOM}" x2="{WIDTH - LEFT}" y2="{HEIGHT - BOTTOM}"/>')
    for kind, value in marks.items():
        if low <= value <= high and high > low:
            x = LEFT + plot_width * (value - low) / (high - low)
            parts.append(f'<line class="mark-{kind}" x1="{x:.1f}" y1="4" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>')
    parts.append(f'<text class="tick" x="{LEFT}" y="{HEIGHT - 4}">{low:.3g}</text>')
    parts.append(f'<text class="tick" x="{WIDTH - LEFT}" y="{HEIGHT - 4}" text-anchor="end">{high:.3g}</text></svg>')
    return Markup("".join(parts))  # noqa: S704 (numbers, and a label that _begin escapes)


def lines(series: Sequence[Sequence[float | None]], label: str) -> Markup:
    """Return one polyline a series over equally spaced positions; a None is a gap. The axis begins at zero."""
    most = max((value for each in series for value in each if value is not None), default=0.0) or 1.0
    count = max(map(len, series), default=1)
    plot_width, plot_height = WIDTH - 2 * LEFT, HEIGHT - BOTTOM - 18
    parts = [_begin(label), f'<line class="axis" x1="{LEFT}" y1="{HEIGHT - BOTTOM}" x2="{WIDTH - LEFT}" y2="{HEIGHT - BOTTOM}"/>']
    for number, each in enumerate(series):
        run: list[str] = []
        for position, value in enumerate((*each, None)):
            if value is None:
                parts += [f'<polyline class="line line{number % 8}" points="{" ".join(run)}"/>'] if run else []
                run = []
            else:
                x = LEFT + plot_width * (position / max(1, count - 1))
                y = HEIGHT - BOTTOM - plot_height * value / most
                run.append(f"{x:.1f},{y:.1f}")
                parts.append(f'<circle class="dot line{number % 8}" cx="{x:.1f}" cy="{y:.1f}" r="2"/>')
    parts.append(f'<text class="tick" x="{LEFT}" y="12">{most:.4g}</text>')
    parts.append(f'<text class="tick" x="{LEFT}" y="{HEIGHT - 4}">oldest</text>')
    parts.append(f'<text class="tick" x="{WIDTH - LEFT}" y="{HEIGHT - 4}" text-anchor="end">newest</text></svg>')
    return Markup("".join(parts))  # noqa: S704 (numbers, and a label that _begin escapes)


def _begin(label: str) -> str:
    return str(Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, label))
