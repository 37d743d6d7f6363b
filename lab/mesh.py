# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cables of a lab without switches: which port of which node leads to which port of another one."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from lab.errors import LabError

End = tuple[int, int]
"""A node's number, from 1, and its port, from 0."""
Cable = tuple[End, End]

SHAPES = ("full", "ring", "line")
EXAMPLE = "[[node1/0, node2/0], [node1/1, node2/1]]"
_END = re.compile(r"node([1-9][0-9]{0,2})/(0|[1-9][0-9]?)")


def parse_end(text: object) -> End:
    """Return the end of "node1/0". Raises LabError for another form."""
    if (found := _END.fullmatch(str(text))) is None:
        raise LabError(f"An end of a cable is NODE/PORT, for example node1/0; got '{text}'.")
    return int(found[1]), int(found[2])


def end_name(end: End) -> str:
    """Return "node1/0"."""
    return f"node{end[0]}/{end[1]}"


def read_mesh(shape: str, nodes: int, most_ports: int) -> tuple[Cable, ...]:
    """Return the cables of a shape (SHAPES) or of a file among this many nodes. Raises LabError for cables that cannot be.

    most_ports: ports that a node can have.
    """
    found = tuple(_from_file(Path(shape)) if shape not in SHAPES else _next_ports(_pairs(shape, nodes)))
    _check(found, nodes, most_ports)
    return found


def _pairs(shape: str, nodes: int) -> Iterable[tuple[int, int]]:
    """Return the pairs of nodes that share a cable."""
    if shape == "ring" and nodes < 3:
        raise LabError(f"A ring has 3 nodes at least; got {nodes}.")
    if shape == "full":
        return itertools.combinations(range(1, nodes + 1), 2)
    line = list(itertools.pairwise(range(1, nodes + 1)))
    return [*line, (nodes, 1)] if shape == "ring" else line


def _next_ports(pairs: Iterable[tuple[int, int]]) -> Iterator[Cable]:
    """Yield a cable for each pair, at the lowest free port of both nodes."""
    used: Counter[int] = Counter()
    for a, b in pairs:
        yield (a, used[a]), (b, used[b])
        used.update((a, b))


def _from_file(path: Path) -> list[Cable]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"--mesh is {', '.join(SHAPES)} or a file with cables; there is no file '{path}'.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LabError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(data, list) or not data:
        raise LabError(f"{path} has no list of cables; expected {EXAMPLE}.")
    return [_cable(path, number, ends) for number, ends in enumerate(data, 1)]


def _cable(path: Path, number: int, ends: object) -> Cable:
    if not isinstance(ends, list) or len(ends) != 2:
        raise LabError(f"{path}: cable {number} has not two ends; expected a list of cables: {EXAMPLE}.")
    a, b = map(parse_end, ends)
    return a, b


def _check(cables: Sequence[Cable], nodes: int, most_ports: int) -> None:
    """Raise LabError for the first thing that is wrong with the cables."""
    ends = [end for cable in cables for end in cable]
    for a, b in cables:
        if a[0] == b[0]:
            raise LabError(f"The cable from {end_name(a)} to {end_name(b)} leads to the same node.")
    if twice := [end for end, count in Counter(ends).items() if count > 1]:
        raise LabError(f"{end_name(twice[0])} is an end of {Counter(ends)[twice[0]]} cables; a port has one.")
    ports = {node: sorted(port for at, port in ends if at == node) for node in range(1, max([nodes, *(end[0] for end in ends)]) + 1)}
    if len(ports) > nodes:
        raise LabError(f"The cables need {len(ports)} nodes, and the lab has {nodes}: lab up --nodes {len(ports)}.")
    for node, own in ports.items():
        if not own:
            raise LabError(f"node{node} has no cable: add one, or make a smaller lab with --nodes.")
        if len(own) > most_ports:
            raise LabError(f"node{node} has {len(own)} cables; a node has {most_ports} ports at most.")
        if missing := sorted(set(range(max(own))) - set(own)):
            raise LabError(f"node{node} has a cable in port {max(own)}, but none in port {missing[0]}: number the ports without a gap.")
