# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Generate docs/intent.md from the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import Key, Section
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import RUN, SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology import PLAN

HEAD = """\
# The intent

The intent is the part of the inventory that describes the planned cluster. It is validated before any host is touched. A key that is not
in these tables is an error, and so is a variable that begins with `rdma_` and is not listed here. The message names the nearest known key,
with file and line, and all problems of a host are reported at once. A missing key and `null` are the same. Text is one line without control
characters. Defaults are in the code (`plugins/plugin_utils/_intent/schema/table.py`), not in group variables.

Complete examples are in `inventories/`: `infiniband`, `roce`, `mesh`, and `lab`, the embedded default.

`tests/tools/docs.py` generates this page from the schema.
"""
RUN_HEAD = """\
## Variables of a run

These variables are not part of the intent. Set them with `-e`, or in the inventory.
"""
PLAN_HEAD = """\
## `rdma_plan`

The request of `rdma.cluster.plan --tags topology` ([plan a cluster](plan.md)). It is not part of the intent, and only this playbook reads
it as a request. Pass it with `-e @FILE`.
"""
TABLE = "| key | type | default | meaning |\n|---|---|---|---|"
WORDS = {str: "text", int: "integer", float: "number", bool: "boolean", dict: "dictionary", list: "list", date: "date"}
#: The stages of a section that no stage reads, but a plan.
PLAN_STAGE = ("plan",)
UNREAD = "No stage reads it yet."


def render() -> str:
    """Return the whole page."""
    parts = [
        HEAD,
        *(_section(name, section) for name, section in SECTIONS.items()),
        RUN_HEAD + "\n" + _table(RUN),
        PLAN_HEAD + "\n" + _table(dict(_inner(PLAN))),
    ]
    return "\n".join(parts)


def _section(name: str, section: Section) -> str:
    key = section.key
    kind = " (a list)" if list in key.types else ""
    # A section that is a single choice is its own row.
    rows = dict(_inner(key)) or {name: replace(key, meaning="One of these names.")}
    return f"## `{name}`{kind}\n\n{key.meaning} {_readers(section.stages)}\n\n{_table(rows)}"


def _readers(stages: tuple[str, ...]) -> str:
    if not stages:
        return UNREAD
    if stages == PLAN_STAGE:
        return "The playbook `plan` reads it."
    if stages == ("every",):
        return "Every stage reads it."
    if stages in (("drill",), ("exporter",), ("soak",)):
        return f"The playbook `{stages[0]}` reads it."
    if len(stages) == 1:
        return f"The {stages[0]} stage reads it."
    return f"The stages {', '.join(stages[:-1])} and {stages[-1]} read it."


def _table(rows: Mapping[str, Key]) -> str:
    return "\n".join([TABLE, *(_row(name, key) for name, key in rows.items())]) + "\n"


def _inner(key: Key, prefix: str = "") -> Iterator[tuple[str, Key]]:
    """Yield the keys below a key, by their path: "nic.pci", "planes.NAME.ratio", "members"."""
    if key.each is not None and key.names is not None:
        place = f"{prefix}NAME" if prefix else "ID"
        yield from _inner(key.each, f"{place}.") if key.each.keys else [(place, key.each)]
    elif key.each is not None:
        yield from _inner(key.each, prefix)
    for name, inner in (key.keys or {}).items():
        yield f"{prefix}{name}", inner
        yield from _inner(inner, f"{prefix}{name}.")


def _row(name: str, key: Key) -> str:
    meaning = " ".join(filter(None, (key.meaning, _limits(key), "" if key.read else UNREAD)))
    return f"| `{name}` | {_type(key)} | {_default(key)} | {meaning} |"


def _type(key: Key) -> str:
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices) + (" or list" if list in key.types else "")
    kinds = [kind for kind in key.types if not (kind is int and float in key.types)]
    words = " or ".join(WORDS[kind] for kind in kinds)
    return f"{words} of {WORDS[key.each.types[0]]}s" if list in key.types and key.each and not key.each.keys else words


def _default(key: Key) -> str:
    if key.required:
        return "required"
    if key.default is None:
        return "empty" if key.each is not None else "none"
    return f"`{_plain(key.default)}`"


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _limits(key: Key) -> str:
    """Return the range of a number, or the form of a text, as a sentence."""
    if key.minimum is not None and key.maximum is not None:
        return f"From {key.minimum} to {key.maximum}."
    if key.minimum is not None:
        return f"At least {key.minimum}."
    if key.names is not None:
        return f"NAME is {key.names.words}."
    return f"Format: {key.form.words}." if key.form is not None else ""
