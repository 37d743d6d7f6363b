# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of a proposed inventory, as YAML that ansible-lint accepts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean


class OneLine(dict[str, Any]):
    """A dictionary that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes list entries below their key and indented, as ansible-lint requires, and never an alias."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


_Dumper.add_representer(OneLine, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True))


def inventory_text(inventory: Mapping[str, Any], notes: Iterable[str]) -> str:
    """Return the text of an inventory. notes: the comments at its beginning, one line each."""
    text = yaml.dump(dict(inventory), Dumper=_Dumper, default_flow_style=False, sort_keys=False, allow_unicode=True, width=math.inf)
    # A line break within a note would end the comment.
    return "\n".join(["---", *(f"# {clean(note)}" for note in notes), text])
