# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `nvidia-smi topo -m` prints: how far GPUs and NICs are from each other, and which CPUs are near (drivers 450 to 610)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

# The header is underlined, in a file as well as on a terminal.
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_START = re.compile(r"^[ \t]*(?=GPU[0-9])", re.MULTILINE)
# Before driver 510 the column of a NIC has the name of the device.
_NAME = re.compile(r"\s*((?:GPU|NIC)[0-9]{1,3}|mlx[45]_(?:bond_)?[0-9]{1,3}|(?!CPU|NUMA|GPU)[A-Za-z][A-Za-z0-9_.-]{0,63})(?![0-9])")
_COLUMNS = 512
_NIC_COLUMN = re.compile(r"NIC[0-9]{1,3}")
_TITLE = re.compile(r"\s*(CPU\s+Affinity|NUMA\s+Affinity|GPU\s+NUMA\s+ID)")
_DISTANCE = re.compile(r"\s*(NV[0-9]{1,2}(?![0-9])|(?:X|PIX|PXB|PHB|NODE|SYS|SOC)(?![a-z]))")
_AFFINITY = re.compile(r"[0-9][0-9,-]*")
_NUMA_NODE = re.compile(r"[0-9]{1,4}")
_LEGEND = re.compile(r"^[ \t]*(?:NIC )?Legend:", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_NIC = re.compile(r"^[ \t]*(NIC[0-9]{1,3}):[ \t]*([A-Za-z][A-Za-z0-9_.-]*)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Topology:
    """gpus and nics: the names of rows and columns in order ("GPU0", "NIC0").

    distances: of each pair in both directions: "X" (itself) | "NV18" (18 NVLinks) | "PIX" | "PXB" | "PHB" | "NODE" | "SYS"
    ("SOC" in old drivers). nic_names: "NIC0": "mlx5_0"; a NIC whose column has its own name is its own key.
    cpu_affinity: "0-31,64-95"; numa_affinity: None where it is told to be none ("N/A") or several nodes ("0-1").
    What the version or the copy at hand does not print is no key.
    """

    gpus: list[str]
    nics: list[str]
    distances: dict[tuple[str, str], str]
    cpu_affinity: dict[str, str | None]
    numa_affinity: dict[str, int | None]
    nic_names: dict[str, str]


def parse_nvidia_smi_topo(text: str) -> Topology:
    """The matrix of `nvidia-smi topo -m`, with and without its legends, wherever the blanks stand, and if there are none.

    Raises ParseError, quoting the line, for other text (`topo -p2p r` prints another matrix) and for rows that were cut off.
    """
    body = "\n".join(_ANSI.sub("", text).splitlines())
    legend = _LEGEND.search(body)
    matrix, legends = (body[: legend.start()], body[legend.start() :]) if legend else (body, "")
    start = _START.search(matrix)
    names, position = _scan(_NAME, matrix, start.end()) if start else ([], 0)
    if not names:
        raise ParseError(f"no line begins with 'GPU0' in the output of `nvidia-smi topo -m`: {text[:200]!r}")
    titles, position = _scan(_TITLE, matrix, position)
    distances: dict[tuple[str, str], str] = {}
    affinities: dict[str, dict[str, str | None]] = {}
    for name, row in _rows(matrix, position, names):
        end = _read_distances(distances, name, names, row)
        affinities[name] = dict(zip(titles, _affinities(row[end:], len(titles))))
    gpus, nics = ([name for name in names if name.startswith("GPU") is is_gpu] for is_gpu in (True, False))
    return Topology(
        gpus=gpus,
        nics=nics,
        distances=distances,
        cpu_affinity={gpu: affinities[gpu]["CPU Affinity"] for gpu in gpus if "CPU Affinity" in titles},
        numa_affinity={gpu: _numa_node(affinities[gpu]["NUMA Affinity"]) for gpu in gpus if "NUMA Affinity" in titles},
        nic_names=_nic_names(nics, legends),
    )


def _scan(pattern: re.Pattern[str], matrix: str, position: int) -> tuple[list[str], int]:
    """The words from a position on, as long as they are new: a second "GPU0" begins the rows."""
    words: list[str] = []
    match = pattern.match(matrix, position)
    while match and " ".join(match.group(1).split()) not in words and len(words) < _COLUMNS:
        words.append(" ".join(match.group(1).split()))
        position = match.end()
        match = pattern.match(matrix, position)
    return words, position


def _rows(matrix: str, position: int, names: list[str]) -> Iterator[tuple[str, str]]:
    """What follows each label, down to the next one: a row, with the rest of it where it was wrapped."""
    starts: list[tuple[int, int]] = []
    for name in names:
        label = re.compile(rf"^[ \t]*{re.escape(name)}(?![0-9])", re.MULTILINE).search(matrix, starts[-1][1] if starts else position)
        if label is None:
            raise ParseError(f"no row of {name} in `nvidia-smi topo -m`, which ends {matrix.strip()[-200:]!r}")
        starts.append(label.span())
    last = _BLANK_LINE.search(matrix, starts[-1][1])
    ends = [start for start, _end in starts[1:]] + [last.start() if last else len(matrix)]
    for name, (_start, begin), end in zip(names, starts, ends):
        yield name, matrix[begin:end]


def _read_distances(distances: dict[tuple[str, str], str], name: str, names: list[str], row: str) -> int:
    """Keep the distances of a row, and return where its affinities begin."""
    position = 0
    for other in names:
        match = _DISTANCE.match(row, position)
        if match is None or (match.group(1) == "X") != (name == other):
            raise ParseError(f"not the distance from {name} to {other} in `nvidia-smi topo -m`: {(name + row)[:200]!r}")
        distances[name, other] = match.group(1)
        position = match.end()
    if _DISTANCE.match(row, position):
        raise ParseError(f"more distances than columns in `nvidia-smi topo -m`: {(name + row)[:200]!r}")
    return position


def _affinities(rest: str, columns: int) -> list[str | None]:
    """The columns after the distances. Between tabs one may be empty; between blanks all are told apart if none is."""
    line = rest.partition("\n")[0]
    cells = line.split("\t")[1:] if "\t" in line else rest.split()
    if "\t" not in line and len(cells) != columns:
        cells = []
    told = [cell.strip() if _AFFINITY.fullmatch(cell.strip()) else None for cell in cells]
    return (told + [None] * columns)[:columns]


def _numa_node(cell: str | None) -> int | None:
    return int(cell) if cell is not None and _NUMA_NODE.fullmatch(cell) else None


def _nic_names(nics: list[str], legends: str) -> dict[str, str]:
    """Of each NIC its device, as far as the legend is there; a legend that was begun names them all."""
    _others, title, legend = legends.partition("NIC Legend:")
    told = {match.group(1): match.group(2) for match in _NIC.finditer(legend)}
    named = {nic: told.get(nic, nic) for nic in nics if nic in told or not _NIC_COLUMN.fullmatch(nic)}
    if title and len(named) < len(nics):
        raise ParseError(f"not all NICs in the legend of `nvidia-smi topo -m`, which ends {legends.strip()[-200:]!r}")
    return named
