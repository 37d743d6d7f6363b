# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Validate a host's answer about a fabric (module fabric_facts) where it enters the control node: types and bounds.

Graph.from_dict is the part that applies to every graph, also to one that an earlier run has kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import LONGEST_NAME, Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.managers import STATES, SmInfo
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import is_whole

EXPECTED = "an answer in the form that this collection's fabric reader produces"
#: Limits: an answer with more subnet managers, or with a time after the year 36,812, is rejected.
MOST_MANAGERS, LATEST_SECONDS = 10_000, 2.0**40
LONGEST_REASON, SHOWN = 4000, 60
_GUID = re.compile(r"0x[0-9a-f]{16}")
#: The maximum of each number of SmInfo.
_NUMBERS = {"lid": 2**16 - 1, "priority": 15, "activity": 2**32 - 1}
_KINDS = ("host", "switch", "router", None)


class GraphError(ValueError):
    """An answer was rejected. The message has the place, the expected and the actual value."""


@dataclass(frozen=True)
class Reading:
    """The reading of a plane, or of its LLDP neighbors, by one host.

    graph: None if it was not requested. managers: None if unknown; why_not is then the reason. read_at: seconds since 1970 by the host's
    clock. refused: why the answer was rejected, None if it was accepted.
    """

    graph: Graph | None
    managers: list[SmInfo] | None
    why_not: str | None
    read_at: float
    refused: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the data for the run folder."""
        return {
            "graph": None if self.graph is None else self.graph.to_dict(),
            "subnet_managers": None if self.managers is None else [asdict(each) for each in self.managers],
            "no_subnet_manager": self.why_not,
            "read_at": self.read_at,
            "refused": self.refused,
        }


def admitted(answer: Any, *, graph: bool) -> Reading:
    """Return the answer of the module fabric_facts, or a stored one, validated. Raises GraphError for the first wrong value.

    graph: whether the graph was requested, not only the subnet managers.
    """
    if not isinstance(answer, Mapping):
        raise GraphError(f"expected a dictionary, got {_shown(answer)}")
    missing = [key for key in ("graph", "subnet_managers", "no_subnet_manager", "read_at") if key not in answer]
    if missing:
        raise GraphError(f"{missing[0]}: missing")
    read_at = answer["read_at"]
    if (
        isinstance(read_at, bool)
        or not isinstance(read_at, (int, float))
        or not 0 <= read_at <= LATEST_SECONDS
        or not math.isfinite(read_at)
    ):
        raise GraphError(f"read_at: expected seconds since 1970, got {_shown(read_at)}")
    why_not = answer["no_subnet_manager"]
    if why_not is not None:
        why_not = clean(_text(why_not, "no_subnet_manager"), LONGEST_REASON)
    managers = None if answer["subnet_managers"] is None else _managers(answer["subnet_managers"])
    if not graph and managers is None and not why_not:
        raise GraphError("no_subnet_manager: expected the reason why the subnet managers are unknown, got nothing")
    refused = answer.get("refused")
    return Reading(
        _graph(answer["graph"]) if graph else None,
        managers,
        why_not,
        float(read_at),
        None if refused is None else clean(_text(refused, "refused"), LONGEST_REASON),
    )


def refused_reading(plane: str, host: str, problem: str, *, graph: bool) -> Reading:
    """Return an empty reading for a host whose answer is rejected. Its message names the host."""
    why = f"rejected the answer of {host}: {problem}"
    return Reading(Graph(plane, {}, [], "ibnetdiscover", False, [why]) if graph else None, None, why, 0.0, why)


def graph_finding(stage: str, check: str, host: str, plane: str, why: str) -> Finding:
    """Return the finding on a host whose answer is rejected."""
    remedy = (
        f"1. Check {host}: a hardware fault, another Python, or a changed file can produce such an answer. "
        f"2. Fix {host}, or exclude it with `--limit '!{host}'`. 3. Run the stage again."
    )
    return Finding(stage, check, host, f"plane {plane}, read by {host}", UNKNOWN, why, EXPECTED, remedy)


def _graph(data: Any) -> Graph:
    try:
        return Graph.from_dict(data)
    except ParseError as error:
        raise GraphError(f"graph: {error}") from error


def _managers(items: Any) -> list[SmInfo]:
    if not isinstance(items, list) or len(items) > MOST_MANAGERS:
        raise GraphError(f"subnet_managers: expected a list of at most {MOST_MANAGERS}, got {_shown(items)}")
    return [_manager(each, f"subnet_managers[{index}]") for index, each in enumerate(items)]


def _manager(item: Any, where: str) -> SmInfo:
    if not isinstance(item, Mapping):
        raise GraphError(f"{where}: expected a dictionary, got {_shown(item)}")
    for key in ("lid", "guid", "state", "priority", "activity"):
        if key not in item:
            raise GraphError(f"{where}.{key}: missing")
    numbers: dict[str, Any] = {}
    for key, most in _NUMBERS.items():
        value = item[key]
        # A manager's own port may have no LID yet.
        if not (key == "lid" and value is None) and (not is_whole(value) or not 0 <= value <= most):
            raise GraphError(f"{where}.{key}: expected a number from 0 to {most}, got {_shown(value)}")
        numbers[key] = value
    guid = _text(item["guid"], f"{where}.guid")
    if _GUID.fullmatch(guid) is None:
        raise GraphError(f"{where}.guid: expected the form 0x2c5eab0300b87b40, got {_shown(guid)}")
    for key, known in (("state", (*STATES, None)), ("kind", _KINDS)):
        if item.get(key) not in known:
            raise GraphError(f"{where}.{key}: expected one of {', '.join(filter(None, known))}, got {_shown(item[key])}")
    description = item.get("description")
    if description is not None:
        description = clean(_text(description, f"{where}.description"), LONGEST_NAME)
    return SmInfo(guid=guid, state=item["state"], kind=item.get("kind"), description=description, **numbers)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise GraphError(f"{where}: expected text, got {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    """Return a rejected value, short and printable. Python refuses to print integers of thousands of digits."""
    if isinstance(value, (Mapping, list)):
        return f"a {'dictionary' if isinstance(value, Mapping) else 'list'} of {len(value)}"
    if isinstance(value, int) and abs(value) >= 2**64:
        return "an integer of more than 64 bits"
    return ascii(value[:SHOWN] if isinstance(value, str) else value)
