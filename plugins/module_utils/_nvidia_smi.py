# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `nvidia-smi -L` and `nvidia-smi --query-gpu=… --format=csv` print, and what all of its outputs have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

#: Begins the line that nvidia-smi prints in place of a GPU that the driver cannot reach ("… for GPU1: 0000:34:00.0: Unknown Error").
LOST = "Unable to determine the device handle"
_BUS_ID = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_NOTHING = frozenset(
    {
        "err!",
        "gpu is lost",
        "gpu requires reset",
        "insufficient permissions",
        "n/a",
        "not available",
        "not found",
        "not supported",
        "requested functionality has been deprecated",
        "unknown error",
    }
)
# Drivers from 610 on: "13.3 [Deprecated; will be removed in CUDA 14.0. …]".
_DEPRECATED = re.compile(r" \[Deprecated\b.*")
_FIELD = re.compile(r"(?P<name>[a-z][A-Za-z0-9_.]*)(?: \[(?P<unit>[^\]]+)\])?")
_LISTED = re.compile(r"GPU (?P<index>[0-9]{1,4}): (?P<name>.+) \(UUID: (?P<uuid>GPU-[0-9a-fA-F-]+)\)")
_LISTED_MIG = re.compile(r"MIG \S+ +Device +[0-9]{1,3}: \(UUID: (?P<uuid>MIG-[^()\s]+)\)")


@dataclass(frozen=True)
class ListedGpu:
    """A line of `nvidia-smi -L`, with the UUIDs of the MIG devices below it."""

    index: int
    name: str
    uuid: str
    mig_uuids: list[str]


def parse_bus_id(text: str) -> str:
    """ "00000000:1B:00.0" as sysfs names it: "0000:1b:00.0". Raises ParseError for anything else."""
    match = _BUS_ID.fullmatch(text.strip())
    if match is None:
        raise ParseError(f"not a PCI bus id: {text[:200]!r}, expected the form '00000000:1B:00.0'")
    return f"{int(match.group(1), 16):04x}:{match.group(2).lower()}"


def told(text: str | None) -> str | None:
    """A value, None for the tool's ways to tell nothing ("[N/A]")."""
    value = _DEPRECATED.sub("", text or "")
    bare = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return None if not bare or bare != value or bare.lower() in _NOTHING else value


def parse_nvidia_smi_query_csv(text: str) -> list[dict[str, str | None]]:
    """The GPUs of `--query-gpu=… --format=csv[,nounits]`, each by the names of the fields.

    A value has no unit, which is the one that nvidia-smi always uses for the field (memory.total: MiB); None for "[N/A]" and
    the like; pci.bus_id is as sysfs has it. Raises ParseError, quoting the line, for text without header and a row cut off.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fields = [_FIELD.fullmatch(cell.strip()) for cell in lines[0].split(",")] if lines else []
    if not all(fields) or len(lines) < 2:
        raise ParseError(f"not the CSV of nvidia-smi with its header: {text[:200]!r}")
    return [_csv_row([field for field in fields if field], line) for line in lines[1:]]


def _csv_row(fields: list[re.Match[str]], line: str) -> dict[str, str | None]:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(fields):
        raise ParseError(f"a row of {len(cells)} values under {len(fields)} fields: {line[:200]!r}")
    row: dict[str, str | None] = {}
    for field, cell in zip(fields, cells):
        unit = f" {field['unit']}" if field["unit"] else ""
        value = told(cell[: -len(unit)] if unit and cell.endswith(unit) else cell)
        row[field["name"]] = parse_bus_id(value) if value and field["name"] == "pci.bus_id" else value
    return row


def parse_nvidia_smi_list(text: str) -> list[ListedGpu]:
    """`nvidia-smi -L`. Raises ParseError, quoting the line, for text of another kind, a line cut off, and a list with gaps:
    the tool numbers the GPUs from 0 on, and one that is missing could not be asked.
    """
    gpus: list[ListedGpu] = []
    for line in map(str.strip, text.splitlines()):
        gpu, mig = _LISTED.fullmatch(line), _LISTED_MIG.fullmatch(line)
        if mig and gpus:
            gpus[-1].mig_uuids.append(mig["uuid"])
        elif gpu and int(gpu["index"]) == len(gpus):
            gpus.append(ListedGpu(len(gpus), gpu["name"], gpu["uuid"], []))
        elif line.startswith(("GPU ", "MIG ")) or LOST in line:
            raise ParseError(f"not GPU {len(gpus)} of `nvidia-smi -L`: {line[:200]!r}")
    if not gpus:
        raise ParseError(f"not the output of `nvidia-smi -L`: {text[:200]!r}")
    return gpus
