# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutants of parsers and judges, by the operators of cosmic-ray, and a seeded sample of them."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[2]
HOUSES, JUDGES = ("plugins/module_utils", "plugins/plugin_utils"), "plugins/plugin_utils/_checks"
OUTPUT = ROOT / "tests/output/mutation"
#: The functions of a parser or reader: these, and what they use of their file.
READERS = ("parse_", "read_")
#: These need arguments, or replace a number by a random one.
LEFT_OUT = ("core/VariableReplacer", "core/VariableInserter")
#: Nodes that no operator changes, most of a file; and the operators that some do.
NEVER = ("name", "string", "newline", "endmarker", "fstring_start", "fstring_end", "fstring_string")
BINARY = ("+", "-", "*", "/", "//", "%", "**", ">>", "<<", "|", "&", "^")
Place = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    file: below the root; line: its number; before, after: the changed lines, without what surrounds them; operator, occurrence: of
    cosmic-ray.
    """

    file: str
    line: int
    before: str
    after: str
    operator: str
    occurrence: int

    @property
    def package(self) -> str:
        """The room of the file, or the folder of a stage's checks."""
        parts = Path(self.file).parts[2:-1]
        return "/".join(parts[:2])

    @property
    def key(self) -> tuple[str, str, str]:
        """What remains the same if lines are added above it."""
        return self.file, self.before, self.after

    def code(self) -> str:
        """The text of the file with the change."""
        text = mutate_code((ROOT / self.file).read_text(encoding="utf-8"), operators()[self.operator], self.occurrence)
        assert isinstance(text, str)
        return text


@cache
def operators() -> Mapping[str, Operator]:
    return {name: get_operator(name)() for name in operator_names() if name not in LEFT_OUT}


def files() -> Iterator[str]:
    """The files with parsers, readers and judges, below the root."""
    for path in sorted(path for house in HOUSES for path in (ROOT / house).rglob("*.py")):
        file = str(path.relative_to(ROOT))
        if any(True for _each in wanted(file)):
            yield file


def wanted(file: str) -> Iterator[tuple[int, int]]:
    """The first and last lines of what is changed in a file.

    Of judges everything but imports and `declare`, which other tests compare with docs/checks.md. Of another file the functions named
    as READERS, and the functions, classes and constants of the file that they use.
    """
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    named = {name: node for node in tree.body for name in _names(node)}
    if file.startswith(JUDGES):
        chosen = set(named)
    else:
        chosen = {name for name, node in named.items() if name.startswith(READERS) and isinstance(node, ast.FunctionDef)}
    reached: set[str] = set()
    while chosen:
        name = chosen.pop()
        reached.add(name)
        used = {each.id for each in ast.walk(named[name]) if isinstance(each, ast.Name)}
        chosen |= (used & named.keys()) - reached
    for node in {id(named[name]): named[name] for name in reached}.values():
        yield node.lineno, node.end_lineno or node.lineno


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def places(file: str) -> Mapping[Place, tuple[tuple[str, int], ...]]:
    """Where a file can be changed → the operators, each with its occurrence. Annotations are left out: mypy checks them.

    The answer is kept below OUTPUT, because it takes a second for each file.
    """
    source = (ROOT / file).read_text(encoding="utf-8")
    kept = OUTPUT / "places" / f"{_digest(Path(__file__).read_text(encoding='utf-8'), file, source)}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps([*_places(file, source).items()]), encoding="utf-8")
    return {tuple(place): tuple((name, occurrence) for name, occurrence in each) for place, each in json.loads(kept.read_text("utf-8"))}


def _places(file: str, source: str) -> dict[Place, list[tuple[str, int]]]:
    lines, annotated = [*wanted(file)], [*_annotations(source)]
    nodes = [node for node in ast_nodes(get_ast(source)) if _can_change(node)]
    found: dict[Place, list[tuple[str, int]]] = {}
    for name, operator in operators().items():
        positions = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, (start, _end) in enumerate(positions):
            if any(first <= start[0] <= last for first, last in lines) and not any(low <= start < high for low, high in annotated):
                found.setdefault(start, []).append((name, occurrence))
    return dict(sorted(found.items()))


def _digest(*texts: object) -> str:
    return hashlib.sha256("\0".join(map(str, texts)).encode()).hexdigest()


def _can_change(node: Any) -> bool:
    """Whether any operator changes such a node. The star before keyword-only parameters is no product."""
    if node.type == "operator":
        return node.value in BINARY and node.parent.type != "parameters"
    return node.type not in NEVER


def _annotations(source: str) -> Iterator[tuple[Place, Place]]:
    for node in ast.walk(ast.parse(source)):
        for each in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(each, ast.expr):
                yield (each.lineno, each.col_offset), (each.end_lineno or each.lineno, each.end_col_offset or 0)


def mutant(file: str, operator: str, occurrence: int) -> Mutant | None:
    """The mutant; None if it is the same program as before, or if cosmic-ray cannot make it."""
    source = (ROOT / file).read_text(encoding="utf-8")
    try:
        text = mutate_code(source, operators()[operator], occurrence)
    except AttributeError:
        # cosmic-ray 8.7.0 cannot replace an exception with a dot in its name, such as struct.error.
        return None
    if text is None or _program(text) == _program(source):
        return None
    old, new = source.splitlines(), text.splitlines()
    head = next((number for number, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new)))
    tail = next((number for number, (one, other) in enumerate(zip(old[::-1], new[::-1], strict=False)) if one != other), 0)
    tail = min(tail, len(old) - head, len(new) - head)
    before, after = ("\n".join(line.strip() for line in lines[head : len(lines) - tail]) for lines in (old, new))
    return Mutant(file, head + 1, before, after, operator, occurrence)


def _program(text: str) -> str | None:
    """The program of a text, None if it is none."""
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return None


def sample(size: int, seed: int) -> list[Mutant]:
    """As many mutants of different places, drawn from all files: first a place, then one of its changes.

    A place is drawn by its line and its column, so that a change of the code changes the sample only there, and a smaller sample is the
    first part of a larger one.
    """
    drawn = []
    for file in files():
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        seen: dict[tuple[str, int], int] = {}
        for (line, column), changes in places(file).items():
            name = lines[line - 1].strip(), column
            seen[name] = seen.get(name, 0) + 1
            drawn.append((_digest(seed, file, *name, seen[name]), file, changes))
    found: list[Mutant] = []
    for digest, file, changes in sorted(drawn):
        if len(found) == size:
            break
        in_order = sorted(changes, key=lambda change: _digest(digest, change[0]))
        each = next((each for change in in_order if (each := mutant(file, *change)) is not None), None)
        found += [each] if each is not None else []
    return found
