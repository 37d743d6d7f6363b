# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The live view as a table of a terminal (rich). Colors only repeat what the words and numbers say."""

from __future__ import annotations

import io
import itertools

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.rates import PortRates
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.rich import Console, Group, Table, Text
from ansible_collections.rdma.cluster.plugins.plugin_utils._watch.view import View, headline

UNKNOWN = "?"
_COLUMNS = (
    *("host", "port", "interface", "state", "in Gb/s", "out Gb/s", "of", "in pkt/s", "out pkt/s"),
    *("pause/s", "ECN/s", "CNP/s", "discard/s", "retry/s", "error/s", "queue pairs"),
)
_TEXT = ("host", "port", "interface", "state", "queue pairs")
_ODD, _BUSY = "bold red", "yellow"
_GAP = 2


def screen(view: View, rows: int, width: int) -> Group:
    """Return what is shown. rows: how many ports at most; the oddest are first. width: columns of the terminal."""
    ports = view.ports()
    parts: list[Text | Table] = [Text(headline(view), style="bold")]
    silent = view.silent()
    shown = max(rows - len(silent), 1)
    parts += [Text(f"! {host}: {why}", style=_ODD) for host, why in silent.items()]
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    lines = [_cells(port) for port in ports[:shown]]
    widths = [max(map(len, cells)) for cells in zip(_COLUMNS, *lines, strict=True)]
    # The last column may become shorter. A number that is cut off would be another number: then its column is left out.
    needed = list(itertools.accumulate(widths[:-1], lambda total, next_width: total + _GAP + next_width))
    fitting = sum(total <= width for total in needed) + (needed[-1] + _GAP + len(_COLUMNS[-1]) <= width)
    for name, wide in zip(_COLUMNS[:fitting], widths, strict=False):
        is_last = name == _COLUMNS[-1]
        table.add_column(name, justify="left" if name in _TEXT else "right", no_wrap=not is_last, min_width=None if is_last else wide)
    for cells in lines:
        table.add_row(*cells[:fitting])
    parts.append(table)
    if fitting < len(_COLUMNS):
        parts.append(Text(f"A wider terminal also shows: {', '.join(_COLUMNS[fitting:])}"))
    if len(ports) > shown:
        parts.append(Text(f"and {len(ports) - shown} more ports"))
    return Group(*parts)


def _cells(port: PortRates) -> list[Text]:
    state = Text(port.state, style="" if port.is_active else _ODD)
    texts = [Text(port.host), Text(port.port), Text(port.netdev or "-"), state]
    line = Text(UNKNOWN if port.line_gbps is None else f"{port.line_gbps:g}")
    numbers = [_gbps(port.in_gbps), _gbps(port.out_gbps), line, _rate(port.in_packets), _rate(port.out_packets)]
    congestion = [_rate(port.pauses, _BUSY), _rate(port.marks, _BUSY), _rate(port.cnps, _BUSY)]
    faults = [_rate(port.discards, _ODD), _rate(port.retransmissions, _ODD), _rate(port.errors, _ODD)]
    return [*texts, *numbers, *congestion, *faults, Text(_processes(port), no_wrap=True, overflow="ellipsis")]


def _gbps(value: float | None) -> Text:
    return Text(UNKNOWN if value is None else f"{value:.2f}")


def _rate(value: float | None, style: str = "") -> Text:
    if value is None:
        return Text(UNKNOWN)
    words = f"{value:.0f}" if value >= 100 or value == 0 else f"{value:.1f}"
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= factor:
            words = f"{value / (1000 if unit == 'k' else factor):.1f}{unit}"
            break
    return Text(words, style=style if value > 0 else "")


def _processes(port: PortRates) -> str:
    if port.processes is None:
        return UNKNOWN
    names = [f"{name}: {count}" for name, count in sorted(port.processes.items(), key=lambda each: -each[1])]
    return first_of(names, 3)


def as_text(view: View, rows: int = 1000, width: int = 200) -> str:
    """Return the screen as plain text."""
    console = Console(width=width, record=True, force_terminal=False, color_system=None, file=io.StringIO())
    console.print(screen(view, rows, width))
    return console.export_text()
