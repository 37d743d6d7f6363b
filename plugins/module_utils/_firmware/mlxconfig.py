# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Firmware settings of adapters: the output of `mlxconfig` (MFT) and `mstconfig` (mstflint 3.5 to 4.36) for `[-e] query`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

_LABEL = re.compile(r"\s*(Device type|Name|Description|PCI [Dd]evice|Device)\s*:(.*)")
_TABLE = re.compile(r"\s*Configurations\s*:(.*)")
_ONCE = {"start": re.compile(r"\s*Device\s+#[0-9]+:"), "type": re.compile(r"\s*Device type\s*:"), "table": _TABLE}
_COLUMN = re.compile(r"Default|Current|Next\s+Boot|New\b")
_COLUMNS_ONLY = re.compile(r"\s*(?:(?:Default|Current|Next|Boot|New)\b\s*)+")
# Every setting begins with two capitals, which distinguishes its row from the prose below the table ("The '*' shows …").
_NAME = re.compile(r"[A-Z][A-Z0-9_][A-Za-z0-9_]*(?:\[[0-9.]+\])?")
_NUMBERED = re.compile(r"(?P<text>.+)\((?P<number>[0-9]{1,20})\)")
_DECIMAL = re.compile(r"[0-9]{1,20}")
_MARKS = ("*", "RO", "*RO")
_SOME_FAILED = "Failed to query some of the TLVs"


@dataclass(frozen=True)
class Value:
    """One value of a setting: "ETH(2)" has the text "ETH" and the number 2, "8" both, "Array[0..7]" no number."""

    text: str
    number: int | None


@dataclass(frozen=True)
class Setting:
    """The columns of one row; None: the column is missing, or the adapter does not report it ("N/A").

    marked: the row has the tool's "*", which means that next_boot differs from default *or* from current.
    """

    default: Value | None
    current: Value | None
    next_boot: Value | None
    marked: bool
    read_only: bool

    @property
    def reboot_pending(self) -> bool | None:
        """Whether the next boot changes the setting; None if one of the two values is unknown, as for arrays."""
        known = [value for value in (self.current, self.next_boot) if value is not None and not value.text.startswith("Array[")]
        return self.current != self.next_boot if len(known) == 2 else None


@dataclass(frozen=True)
class Mlxconfig:
    """One adapter: device is its path as given in the query ("0000:01:00.0", "/dev/mst/mt4129_pciconf0").

    A setting that the adapter lacks is not in settings (LINK_TYPE_P1 of an Ethernet adapter). failed_tlvs: groups of
    settings that the tool could not read; if there are any, a missing setting is unknown rather than absent.
    """

    device: str | None
    device_type: str | None
    name: str | None
    description: str | None
    settings: dict[str, Setting]
    failed_tlvs: list[str]


@dataclass
class _Section:
    """The lines of one adapter so far: its labels, the titles of the table's columns, its settings and an incomplete row."""

    labels: dict[str, str] = field(default_factory=dict)
    label: str | None = None
    header: str | None = None
    settings: dict[str, Setting] = field(default_factory=dict)
    row: list[str] = field(default_factory=list)
    failed: bool = False
    failed_tlvs: list[str] = field(default_factory=list)

    @property
    def titles(self) -> list[str]:
        return [" ".join(title.split()) for title in _COLUMN.findall(self.header or "")]


def parse_mlxconfig(text: str) -> dict[str | None, Mlxconfig]:
    """Return each adapter by its device; by None if the text lacks the line that names it.

    Raises ParseError, quoting the line, for text of another kind, a row that was cut off, and anything that the tool itself reports as an
    error ("-E- The Device doesn't support LINK_TYPE_P1 parameter"), except for TLVs that it could not read.
    """
    adapters: dict[str | None, Mlxconfig] = {}
    for lines in _split(text):
        section = _Section()
        for line in lines:
            _read(section, line)
        adapter = _finish(section, lines)
        if adapters.setdefault(adapter.device, adapter) != adapter:
            raise ParseError(f"two different tables of one device: {adapter.device!r}")
    if not adapters:
        raise ParseError(f"no 'Configurations:' in the output of mlxconfig, which ends {_last(text.splitlines())!r}")
    return adapters


def _split(text: str) -> list[list[str]]:
    """Return the lines of each adapter: from "Device #1:" on or, if that was cut away, from a line that occurs once for each."""
    sections: list[list[str]] = [[]]
    seen: set[str] = set()
    for line in text.splitlines():
        kind = next((name for name, pattern in _ONCE.items() if pattern.match(line)), None)
        if kind == "start" or kind in seen:
            sections.append([])
            seen = set()
        if kind is not None:
            seen.add(kind)
        sections[-1].append(line)
    return [lines for lines in sections if any(_LABEL.match(line) or _TABLE.match(line) or line.split()[:1] == ["-E-"] for line in lines)]


def _read(section: _Section, line: str) -> None:
    words = line.split()
    if words[:1] == ["-E-"]:
        _read_error(section, line.strip())
    elif section.failed:
        if words[:1] != ["Failed"]:
            section.failed_tlvs += words
    elif section.header is None:
        _read_head(section, line)
    elif not section.settings and not section.row and _COLUMNS_ONLY.fullmatch(line):
        section.header += f" {line}"
    else:
        _read_row(section, words, line)


def _read_error(section: _Section, line: str) -> None:
    if _SOME_FAILED not in line:
        raise ParseError(f"mlxconfig could not answer: {quoted(line)}")
    section.failed = True


def _read_head(section: _Section, line: str) -> None:
    """Read a label, the rest of a wrapped one, or the titles of the table."""
    table, label = _TABLE.match(line), _LABEL.match(line)
    if table:
        section.header = table.group(1)
    elif label:
        section.label = "Device" if label.group(1).startswith("PCI") else label.group(1)
        section.labels[section.label] = " ".join(label.group(2).split())
    elif section.label and line.strip():
        section.labels[section.label] = " ".join([section.labels[section.label], *line.split()])
    else:
        section.label = None


def _read_row(section: _Section, words: list[str], line: str) -> None:
    """Read a row, or a part of one that a mail client has wrapped."""
    name = words[1:2] if words[:1] and words[0] in _MARKS else words[:1]
    begins = bool(name) and _NAME.fullmatch(name[0]) is not None
    if begins and section.row:
        raise ParseError(f"a row with fewer values than columns: {quoted(' '.join(section.row))}")
    if not (section.titles and (begins or section.row)):
        return
    section.row += words
    marks = section.row[:1] if section.row[0] in _MARKS else []
    wanted = len(marks) + 1 + len(section.titles)
    if len(section.row) > wanted:
        if begins and "_" not in name[0]:
            section.row = []
            return
        raise ParseError(f"a row with more values than columns: {quoted(line.strip())}")
    if len(section.row) == wanted:
        section.settings[section.row[len(marks)]] = _setting(section, "".join(marks))
        section.row = []


def _setting(section: _Section, mark: str) -> Setting:
    titles = section.titles
    values = dict(zip(titles, [_value(cell, section.row) for cell in section.row[-len(titles) :]]))
    return Setting(
        default=values.get("Default"),
        current=values.get("Current"),
        next_boot=values.get("Next Boot"),
        marked="*" in mark,
        read_only="RO" in mark,
    )


def _value(cell: str, row: list[str]) -> Value | None:
    if cell.count("(") != cell.count(")"):
        raise ParseError(f"a value that was cut off: {quoted(' '.join(row))}")
    if cell == "N/A":
        return None
    numbered = _NUMBERED.fullmatch(cell)
    if numbered:
        return Value(numbered["text"], int(numbered["number"]))
    return Value(cell, int(cell) if _DECIMAL.fullmatch(cell) else None)


def _finish(section: _Section, lines: list[str]) -> Mlxconfig:
    if section.row:
        raise ParseError(f"a row with fewer values than columns: {quoted(' '.join(section.row))}")
    if not section.settings:
        raise ParseError(f"an adapter without settings in the output of mlxconfig, which ends {_last(lines)!r}")
    labels = {name: value for name, value in section.labels.items() if value not in ("", "N/A")}
    return Mlxconfig(
        device=labels.get("Device"),
        device_type=labels.get("Device type"),
        name=labels.get("Name"),
        description=labels.get("Description"),
        settings=section.settings,
        failed_tlvs=section.failed_tlvs,
    )


def _last(lines: list[str]) -> str:
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
