# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdicts of a sweep as a file in the run folder: the first step that needs them computes them, later ones read them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import is_whole
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.verdict import Verdict

SCHEMA = 1
_OPTIONAL_NUMBER, _OPTIONAL_TEXT = (int, type(None)), (str, type(None))
#: The type of each field of a verdict in the file. A missing or additional field makes the file foreign.
_TYPES: Mapping[str, Any] = {
    "kind": str,
    "host": _OPTIONAL_NUMBER,
    "rail": _OPTIONAL_NUMBER,
    "direction": _OPTIONAL_TEXT,
    "other": _OPTIONAL_NUMBER,
    "element": _OPTIONAL_TEXT,
    "failed": bool,
    "ratio": (int, float, type(None)),
    "confidence": (int, float),
    "partners": int,
    "explained": int,
    "evidence": list,
    "measured": int,
}


@dataclass(frozen=True)
class RecordedVerdicts:
    """inputs: see digest. hosts, rails: the names by position. measurements: the number of judged measurements.

    ports: (rail, host) of every measured port, in the order of the results. verdicts: all of them. stopping: those that stop the gate, or
    would if the level of the fleet were certain.
    """

    inputs: str
    hosts: Sequence[str]
    rails: Sequence[str]
    measurements: int
    ports: Sequence[tuple[int, int]]
    verdicts: Sequence[Verdict]
    stopping: Sequence[Verdict]

    def endpoints(self) -> Iterable[tuple[int, int]]:
        """Return (rail, host) of every measured port."""
        return self.ports

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        stopping = [self.verdicts.index(each) for each in self.stopping]
        verdicts = [asdict(each) for each in self.verdicts]
        numbers = {"measurements": self.measurements, "ports": self.ports, "stopping": stopping}
        return {"schema": SCHEMA, "inputs": self.inputs, "hosts": self.hosts, "rails": self.rails, "verdicts": verdicts, **numbers}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RecordedVerdicts:
        """Return the verdicts. Raises ParseError if the file has another form, or a position in it does not exist."""
        try:
            if data["schema"] != SCHEMA:
                raise ParseError(f"schema {data['schema']!r}, expected {SCHEMA}")
            hosts, rails, measurements = (data[name] for name in ("hosts", "rails", "measurements"))
            if not all(isinstance(name, str) for name in (data["inputs"], *hosts, *rails)):
                raise ParseError("a name is not a string")
            verdicts = [_verdict(each, len(hosts), len(rails), measurements) for each in data["verdicts"]]
            ports = [(_position(rail, len(rails)), _position(host, len(hosts))) for rail, host in data["ports"]]
            stopping = [verdicts[_position(number, len(verdicts))] for number in data["stopping"]]
            return cls(data["inputs"], hosts, rails, measurements, ports, verdicts, stopping)
        except (KeyError, TypeError, ValueError) as error:
            raise ParseError(f"not a verdicts file ({type(error).__name__}: {error})") from error


def _verdict(data: Any, hosts: int, rails: int, measurements: int) -> Verdict:
    is_verdict = isinstance(data, dict) and data.keys() == _TYPES.keys() and all(isinstance(data[name], of) for name, of in _TYPES.items())
    if not is_verdict:
        raise ParseError(f"not a verdict: {json.dumps(data)[:100]}")
    for number, end in ((data["host"], hosts), (data["other"], hosts), (data["rail"], rails)):
        if number is not None:
            _position(number, end)
    evidence = tuple(_position(at, measurements) for at in data["evidence"])
    return Verdict(**{**{each.name: data[each.name] for each in fields(Verdict)}, "evidence": evidence})


def _position(value: Any, end: int) -> int:
    if not is_whole(value) or not 0 <= value < end:
        raise ParseError(f"position {value!r} of {end}")
    return int(value)


def digest(*inputs: Any) -> str:
    """Return a digest of all inputs of verdicts, so that verdicts of other inputs are never used."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
