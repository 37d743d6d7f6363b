# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables as ansible-core hands them to filters since 2.19: in containers whose values are made when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class LazyDict(dict[Any, Any]):
    """A stand-in for _AnsibleLazyTemplateDict: what items() and values() return can be gone through once, and has no length and no end."""

    def items(self) -> Iterator[tuple[Any, Any]]:  # type: ignore[override]
        yield from dict.items(self)

    def values(self) -> Iterator[Any]:  # type: ignore[override]
        yield from dict.values(self)


def lazy(value: Any) -> Any:
    """A deep copy with such containers."""
    if isinstance(value, dict):
        return LazyDict({key: lazy(each) for key, each in value.items()})
    return [lazy(each) for each in value] if isinstance(value, list) else value
